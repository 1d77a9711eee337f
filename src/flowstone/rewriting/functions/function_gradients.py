"""The gradient of a function as a function: what a SymbolicGradient node stands for in a plan.

`gradient_body(library, name)` has the function's arguments and then one gradient for each result as its
inputs, and the gradients with respect to the arguments as its outputs. It is the library's own gradient
function, if one was given for `name`; else the function's nodes with those that `gradients` adds to them. Its
forward nodes have the same names as the function's, so a plan can take them from a call that it computes
anyway.

Two kinds of function are differentiated in another form, since their nodes do not tell enough: one that is
but the gradient of another (as that one's body with its gradient) and one that is but a While (as
`tf.while_loop`, whose gradient runs backwards over what stacks have kept).
"""

from __future__ import annotations

from typing import Any

from flowstone.framework import errors
from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.function_library import FunctionBody, FunctionLibrary
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.graphs.graph_def import read_shape
from flowstone.framework.tensors.tensor import convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.gradients.gradient_computation import gradients, is_trainable
from flowstone.ops.control.loops import while_loop
from flowstone.rewriting.analyses.frames import ENTERS
from flowstone.rewriting.simplification.partial_execution import _in_order, needed_operations


def gradient_body(library: FunctionLibrary, name: str, types: Any) -> FunctionBody:
    """The gradient of function `name`; `types` are those of the gradients with respect to its arguments.

    InvalidArgumentError if a node of it has no gradient, NotFoundError if the function is not defined.
    """
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
        try:
            found = dict(zip(xs, gradients(ys, xs, [dy for _, dy in pairs]))) if ys and xs else {}
        except LookupError as error:
            raise errors.InvalidArgumentError(None, None, f"Gradient of function {name}: {error}") from error
        results = [_dense(x, found.get(x), dtype) for x, dtype in zip(body.inputs, types)]
    gradient = FunctionBody(f"gradient of {name}", body.graph, body.inputs + flows, results, [])
    needed = needed_operations(results, [], set()).union(x.op for x in gradient.inputs)
    gradient.operations = _in_order(needed, set())  # not the function's effects: the call has them
    return gradient


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


# ---- the forward nodes


def _fresh(library: FunctionLibrary, name: str) -> FunctionBody:
    """A body to add to."""
    node = _only_node(library, name)
    if node is not None and node.op == "SymbolicGradient":
        inner = node.attr["f"].func.name
        if inner not in library.gradients:
            types = [dtypes.as_dtype(number) for number in node.attr["Tout"].list.type]
            return _differentiated(library, inner, types)
    if node is not None and node.op in ("While", "StatelessWhile"):
        return _loop(library, name, node)
    body = library.fresh_body(name)
    for op in body.graph.get_operations():
        if op.type in ENTERS and op._control_flow_context is None:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Gradient of function {name}: it is not known how the loop of {op.name} was built",
            )
    return body


def _only_node(library: FunctionLibrary, name: str) -> Any:
    """The node of a function that is nothing but an operation on all its arguments; else None."""
    definition = library.get(name)
    if definition is None or len(definition.node_def) != 1:
        return None
    node = definition.node_def[0]
    arguments = [argument.name for argument in definition.signature.input_arg]
    return node if list(node.input) == arguments else None


def _loop(library: FunctionLibrary, name: str, node: Any) -> FunctionBody:
    """A While as `tf.while_loop`, each of whose iterations calls the condition and the body."""
    types = [dtypes.as_dtype(number) for number in node.attr["T"].list.type]
    condition, body = node.attr["cond"].func.name, node.attr["body"].func.name
    told = [read_shape(shape) for shape in node.attr["output_shapes"].list.shape] or [None] * len(types)
    graph = Graph()
    graph._functions = library
    with graph.as_default():
        inputs = [
            F.Placeholder(dtype=dtype, shape=dims, name=f"x{i}")
            for i, (dtype, dims) in enumerate(zip(types, told))
        ]

        def go_on(*values: Any) -> Any:
            (result,) = F.StatefulPartitionedCall(list(values), Tout=[dtypes.bool], f=condition)
            result.set_shape(())
            return result

        def step(*values: Any) -> Any:
            results = F.StatefulPartitionedCall(list(values), Tout=types, f=body)
            for result, dims in zip(results, told):
                result.dims = dims
            return results

        invariants = [TensorShape(dims) for dims in told]
        outputs = while_loop(go_on, step, inputs, invariants, return_same_structure=True)
    return FunctionBody(name, graph, inputs, list(outputs), [])


__all__ = ["gradient_body"]
