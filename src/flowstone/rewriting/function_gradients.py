"""The gradient of a function as a function: what a SymbolicGradient node stands for in a plan.

`gradient_body(library, name)` has the function's arguments and then one gradient for each result as its
inputs, and the gradients by the arguments as its outputs. It is the library's own gradient function, if one
was given for `name`; else the function's nodes with those that `gradients` adds to them. Its forward nodes
have the same names as the function's, so a plan can take them from a call that it computes anyway.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework import dtypes
from flowstone.framework.function_library import FunctionBody, FunctionLibrary
from flowstone.framework.operation import F
from flowstone.framework.tensor import convert_to_tensor
from flowstone.gradients.gradient_computation import gradients, is_trainable


def gradient_body(library: FunctionLibrary, name: str, types: Any) -> FunctionBody:
    """The gradient of function `name`; `types` are those of the gradients by its arguments."""
    if name in library.gradients:
        return library.body(library.gradients[name])
    key = "gradient", name, tuple(types)
    return library.recall(key) or library.remember(key, _differentiated(library, name, types))


def _differentiated(library: FunctionLibrary, name: str, types: Any) -> FunctionBody:
    body = _fresh(library, name)
    with body.graph.as_default():
        flows = [F.Placeholder(dtype=y.dtype.base_dtype, shape=None, name="dy") for y in body.outputs]
        pairs = [(y, dy) for y, dy in zip(body.outputs, flows) if is_trainable(y)]
        xs = [x for x in body.inputs if is_trainable(x)]
        ys = [y for y, _ in pairs]
        found = dict(zip(xs, gradients(ys, xs, [dy for _, dy in pairs]))) if ys and xs else {}
        results = [_dense(x, found.get(x), dtype) for x, dtype in zip(body.inputs, types)]
    return FunctionBody(f"gradient of {name}", body.graph, body.inputs + flows, results, [])


def _fresh(library: FunctionLibrary, name: str) -> FunctionBody:
    """A body to add to. A function that is but the gradient of another has the other's body, differentiated,
    since SymbolicGradient itself says nothing that could be.
    """
    definition = library.get(name)
    nodes = [] if definition is None else definition.node_def
    if len(nodes) == 1 and nodes[0].op == "SymbolicGradient":
        node = nodes[0]
        arguments = [argument.name for argument in definition.signature.input_arg]
        inner = node.attr["f"].func.name
        if list(node.input) == arguments and inner not in library.gradients:
            types = [dtypes.as_dtype(number) for number in node.attr["Tout"].list.type]
            return _differentiated(library, inner, types)
    return library.fresh_body(name)


def _dense(x: Any, gradient: Any, dtype: Any) -> Any:
    """The gradient as a tensor, zeros if there is none."""
    if gradient is not None:
        return convert_to_tensor(gradient)
    if x.dtype is dtypes.resource:
        shape = F.VariableShape(x, out_type=dtypes.int32)
        return F.Fill(shape, F.Cast(0, DstT=dtype))
    if dtype.is_floating or dtype.is_complex or dtype.is_integer or dtype.is_bool:
        return F.ZerosLike(x)
    return x  # a type without zeros; nobody takes it
