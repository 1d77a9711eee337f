"""Control flow and calls whose parts are functions of the graph's library, as in later TensorFlow versions.

==============================================  =======================================================
op                                              meaning
==============================================  =======================================================
If, StatelessIf                                 ``then_branch(input)`` or ``else_branch(input)`` Case,
StatelessCase                             ``branches[branch_index](input)``; the last if out of range While,
StatelessWhile                           ``while cond(x): x = body(x)`` For
``for i in range(start, limit, delta): x = body(i, x)`` PartitionedCall, StatefulPartitionedCall
``f(args)`` RemoteCall                                      ``f(args)`` on another device SymbolicGradient
the gradient of ``f`` with respect to its arguments
==============================================  =======================================================

None of them has a kernel: a plan replaces them by the functions' nodes
(`rewriting/functions/function_inlining.py`). The gradient of such an op is again such an op, whose functions
hold a SymbolicGradient. So a graph with gradients exports and imports like any other.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.function_library import (
    FunctionLibrary,
    gradient_types,
    has_gradient,
    symbolic_gradient,
)
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.tensor_proto import messages

__all__: list[str] = []

_TYPES = "Tin: list(type) >= 0 ; Tout: list(type) >= 0"
_SHAPES = "output_shapes: list(shape) = []"
_IF = f"{_TYPES} ; then_branch: func ; else_branch: func ; {_SHAPES}"
_CASE = f"{_TYPES} ; branches: list(func) >= 1 ; {_SHAPES}"
_WHILE = f"T: list(type) >= 0 ; cond: func ; body: func ; {_SHAPES} ; parallel_iterations: int = 10"
_CALL = f"{_TYPES} ; f: func ; config: string = '' ; config_proto: string = '' ; executor_type: string = ''"

if_op = op("If", "cond: Tcond, input: *Tin -> output: *Tout", _IF, Tcond=None, stateful=True)
stateless_if = op("StatelessIf", "cond: Tcond, input: *Tin -> output: *Tout", _IF, Tcond=None)
case_op = op("Case", "branch_index: int32, input: *Tin -> output: *Tout", _CASE, stateful=True)
stateless_case = op("StatelessCase", "branch_index: int32, input: *Tin -> output: *Tout", _CASE)
while_op = op("While", "input: *T -> output: *T", _WHILE, stateful=True)
stateless_while = op("StatelessWhile", "input: *T -> output: *T", _WHILE)
for_op = op(
    "For",
    "start: int32, limit: int32, delta: int32, input: *T -> output: *T",
    "T: list(type) >= 0 ; body: func",
)
partitioned_call = op("PartitionedCall", "args: *Tin -> output: *Tout", _CALL)
stateful_partitioned_call = op("StatefulPartitionedCall", "args: *Tin -> output: *Tout", _CALL, stateful=True)
remote_call = op(
    "RemoteCall",
    "target: string, args: *Tin -> output: *Tout",
    "Tin: list(type) >= 1 ; Tout: list(type) >= 1 ; f: func",
)
symbolic_gradient_op = op(
    "SymbolicGradient",
    "input: *Tin -> output: *Tout",
    "Tin: list(type) >= 1 ; Tout: list(type) >= 1 ; f: func",
)
to_bool = op("ToBool", "input: T -> output: bool", T=None)

_CONDITIONALS = (if_op, stateless_if, case_op, stateless_case)
_LOOPS = (while_op, stateless_while, for_op)
_CALLS = (partitioned_call, stateful_partitioned_call, remote_call)
FUNCTIONAL_FORMS = frozenset(
    declaration.name for declaration in (*_CONDITIONALS, *_LOOPS, *_CALLS, symbolic_gradient_op)
)
"""The types of the operations whose attributes name functions to put in their place."""


# ---- shapes and kernels


def _told_shapes(node: Node) -> list[Any]:
    shapes = node.attributes.get("output_shapes", ())
    return list(shapes) if len(shapes) == len(node.outputs) else [None] * len(node.outputs)


def _loop_shapes(node: Node) -> list[Any]:
    """The shapes of the attribute; without it those of the first values."""
    if node.attributes.get("output_shapes"):
        return _told_shapes(node)
    return [x.dims for x in node.group(len(node.declaration.inputs) - 1)]


def _gradient_shapes(node: Node) -> list[Any]:
    """Gradients have their arguments' shapes, those of handles their variables'."""
    pairs = zip(node.outputs, node.inputs)
    return [_variable_dims(x) if x.dtype is dtypes.resource else x.dims for _, x in pairs]


def _variable_dims(handle: Any) -> Any:
    """The shape of the variable behind a handle, if its node is in the graph."""
    return handle.op.attributes.get("shape") if handle.op.type == "VarHandleOp" else None


def _no_kernel(node: Node, env: Environment) -> Kernel:
    def unreachable(*inputs: Any) -> Any:
        raise AssertionError(f"{node.name}: its functions take its place in a plan")

    return unreachable


for _declaration in (*_CONDITIONALS, *_CALLS):
    _declaration.infer(_told_shapes)
while_op.infer(_loop_shapes)
stateless_while.infer(_loop_shapes)
for_op.infer(lambda node: [None] * len(node.outputs))
symbolic_gradient_op.infer(_gradient_shapes)
for _declaration in (*_CONDITIONALS, *_LOOPS, *_CALLS, symbolic_gradient_op):
    _declaration.kernel(CPU, GPU)(_no_kernel)
    _declaration.value()(lambda node: [None] * len(node.outputs))
for_op.no_gradient()
remote_call.no_gradient()

to_bool.infer(lambda node: ())
to_bool.not_differentiable()


@to_bool.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    """A scalar is true unless it is zero or an empty string, any other tensor if it has elements."""
    if node.dtype(0) is dtypes.string:
        return lambda x: torch.tensor(bool(x.item()) if x.ndim == 0 else x.size > 0)
    if node.dims(0) == ():
        return Call(torch.ne, X0, 0)
    device = env.device
    return lambda x: x != 0 if x.ndim == 0 else torch.tensor(x.numel() > 0, device=device)


# ---- gradients


@partitioned_call.gradient
@stateful_partitioned_call.gradient
def _(op: Operation, *dys: Tensor) -> Gradients:
    return symbolic_gradient(op, op.attributes["f"], list(op.inputs), list(op.outputs), dys)


@symbolic_gradient_op.gradient
def _(op: Operation, *dys: Tensor) -> Gradients:
    name = _gradient_function(op.graph._functions, op.attributes["f"], op.inputs, [], op.attributes["Tout"])
    return symbolic_gradient(op, name, list(op.inputs), list(op.outputs), dys)


@if_op.gradient
@stateless_if.gradient
def _(op: Operation, *dys: Tensor) -> Gradients:
    attributes = op.attributes
    names = attributes["then_branch"], attributes["else_branch"]
    inputs, (then, otherwise), flows, types = _branch_gradients(op, names, dys)
    results = F.StatelessIf.several(
        op.inputs[0], [*inputs, *flows], Tout=types, then_branch=then, else_branch=otherwise
    )
    return [None, *_differentiable(results, inputs)]


@case_op.gradient
@stateless_case.gradient
def _(op: Operation, *dys: Tensor) -> Gradients:
    inputs, names, flows, types = _branch_gradients(op, op.attributes["branches"], dys)
    results = F.StatelessCase.several(op.inputs[0], [*inputs, *flows], Tout=types, branches=names)
    return [None, *_differentiable(results, inputs)]


@while_op.gradient
@stateless_while.gradient
def _(op: Operation, *dys: Tensor) -> Gradients:
    """The gradient of a function that holds only the loop; the loop is run again to keep the values that the
    gradient needs."""
    name = _loop_function(op)
    return symbolic_gradient(op, name, list(op.inputs), list(op.outputs), dys)


def _loop_function(op: Operation) -> str:
    """The name of a function that holds only this loop."""
    message = messages("function_pb2").FunctionDef()
    message.signature.name = f"{op.attributes['body']}_loop"
    node = message.node_def.add()
    node.CopyFrom(op.node_def)
    node.name, node.device = "loop", ""
    node.ClearField("input")
    for key in [key for key in node.attr if key.startswith("_")]:
        del node.attr[key]
    for i, dtype in enumerate(op.attributes["T"]):
        message.signature.input_arg.add(name=f"x{i}", type=dtype.as_datatype_enum)
        message.signature.output_arg.add(name=f"y{i}", type=dtype.as_datatype_enum)
        node.input.append(f"x{i}")
        message.ret[f"y{i}"] = f"loop:output:{i}"
    message.signature.is_stateful = op.declaration.stateful
    return _add_distinct(op.graph._functions, message)


def _branch_gradients(
    op: Operation, names: Any, dys: Any
) -> tuple[list[Any], list[str], list[Any], list[Any]]:
    """The arguments for the conditional of the branches' gradients: inputs, functions, gradients with respect
    to the results, result types.
    """
    inputs, outputs = list(op.group(1)), list(op.outputs)
    flows = [F.ZerosLike(y) if dy is None else convert_to_tensor(dy) for y, dy in zip(outputs, dys)]
    types = gradient_types(op, names[0], inputs)
    library = op.graph._functions
    return inputs, [_gradient_function(library, name, inputs, flows, types) for name in names], flows, types


def _differentiable(results: list[Any], inputs: list[Any]) -> list[Any]:
    """The gradients, with their inputs' static shapes; None for types without gradients."""
    found: list[Any] = []
    for result, x in zip(results, inputs):
        if not has_gradient(result.dtype):
            found.append(None)
            continue
        if x.dtype is not dtypes.resource:
            result.set_shape(x.shape)
        found.append(result)
    return found


def _gradient_function(library: FunctionLibrary, name: str, inputs: Any, flows: Any, types: Any) -> str:
    """The name of a function that is the gradient of function `name`: one SymbolicGradient node."""
    message = messages("function_pb2").FunctionDef()
    message.signature.name = f"{name}_grad"
    node = message.node_def.add(name="gradient", op="SymbolicGradient")
    node.attr["f"].func.name = name
    for i, x in enumerate([*inputs, *flows]):
        argument = f"x{i}" if i < len(inputs) else f"dy{i - len(inputs)}"
        dtype = x.dtype.base_dtype.as_datatype_enum
        message.signature.input_arg.add(name=argument, type=dtype)
        node.input.append(argument)
        node.attr["Tin"].list.type.append(dtype)
    for i, dtype in enumerate(types):
        message.signature.output_arg.add(name=f"dx{i}", type=dtype.as_datatype_enum)
        node.attr["Tout"].list.type.append(dtype.as_datatype_enum)
        message.ret[f"dx{i}"] = f"gradient:output:{i}"
    return _add_distinct(library, message)


def _add_distinct(library: FunctionLibrary, message: Any) -> str:
    """Adds a function, under a longer name if another function has its name; returns the name."""
    while message.signature.name in library and library[message.signature.name] != message:
        message.signature.name += "_"
    library.add(message)
    return str(message.signature.name)


# ---- building


def _used(functions: list[Any], inputs: Any) -> list[Any]:
    """The inputs and the tensors that the functions captured, which must be the same; adds the functions to
    the default graph."""
    graph = get_default_graph()
    captured = [list(function.captured_inputs) for function in functions]
    for function in functions:
        function.add_to_graph(graph)
    if any(extra != captured[0] for extra in captured):
        raise ValueError("The functions must capture the same tensors, in the same order.")
    return [*inputs, *captured[0]]


def _result_types(function: Any) -> list[Any]:
    return [dtypes.as_dtype(out.type) for out in function.definition.signature.output_arg]


def Gradient(inputs: Any, f: Any, name: str | None = None) -> list[Tensor]:
    """The gradients of function `f` with respect to its arguments: `inputs` are the arguments, then the
    gradients with respect to its results.
    """
    f.add_to_graph(get_default_graph())
    types = list(f.declared_input_types)
    gradients: list[Tensor] = F.SymbolicGradient.several(list(inputs), Tout=types, f=f.name, name=name)
    return gradients


def If(cond: Any, inputs: Any, then_branch: Any, else_branch: Any, name: str | None = None) -> Any:
    """The results of one of two functions of `inputs`, chosen by a scalar."""
    values = _used([then_branch, else_branch], inputs)
    return F.If(
        cond,
        values,
        Tout=_result_types(then_branch),
        then_branch=then_branch.name,
        else_branch=else_branch.name,
        name=name,
    )


def While(input_: Any, cond: Any, body: Any, name: str | None = None) -> Any:
    """Applies function `body` to values, beginning with `input_`, as long as function `cond` is true; returns
    the last values.
    """
    values = _used([cond], input_)
    _used([body], input_)
    return F.While(values, cond=cond.name, body=body.name, name=name)


def For(start: Any, limit: Any, delta: Any, inputs: Any, body: Any, name: str | None = None) -> Any:
    """`inputs` after ``body(i, *values)`` for each i of ``range(start, limit, delta)``."""
    return F.For(start, limit, delta, _used([body], inputs), body=body.name, name=name)


def Case(branch_index: Any, inputs: Any, branches: list[Any], name: str | None = None) -> Any:
    """The results of the function with this index; of the last one if the index is out of range."""
    values = _used(list(branches), inputs)
    names = [branch.name for branch in branches]
    return F.Case(branch_index, values, Tout=_result_types(branches[0]), branches=names, name=name)


def call(f: Any, args: Any, name: str | None = None) -> Any:
    """A PartitionedCall of function `f`, stateful if the function is."""
    stateful = f.definition.signature.is_stateful
    declaration = stateful_partitioned_call if stateful else partitioned_call
    return declaration(_used([f], args), Tout=_result_types(f), f=f.name, name=name)
