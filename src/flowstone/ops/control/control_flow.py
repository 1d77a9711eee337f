"""Order of nodes (no-op, group, tuple) and the primitives of control flow (white paper 4.4).

Switch passes its input to one of two outputs; nodes that need the other one are *dead* and do not run. Merge
passes on the input that is alive. Enter brings a value into a loop's *frame*, NextIteration to the next
iteration, Exit (the paper's Leave) out of it; LoopCond marks the predicate. A session compiles them away
(`rewriting/analyses/branches.py`, `runtime/code/segments.py`); `conditionals.py` builds `tf.cond` of them,
`loops.py` `tf.while_loop`.

>>> from flowstone.framework.graphs.graph import Graph
>>> with Graph().as_default():
...     print(group(no_op(), no_op(), name="both").name)
both
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel, Value
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.composite import IndexedSlices, SparseTensor
from flowstone.framework.tensors.node import Node, static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor, register_tensor_conversion_function
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.constants import constant

__all__ = ["group", "no_op", "tuple"]

no_op_declaration = op("NoOp", "->", free=True, role="no_op")
no_op_declaration.infer(lambda node: None)
no_op_declaration.kernel(CPU, GPU)(lambda node, env: Value(None))
no_op_declaration.not_differentiable()


def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing, for others to wait for."""
    return no_op_declaration.operation(name=name)


# ---- Switch and Merge: a plan knows when each output is alive, so their kernels serve node-by-node runs only

switch_op = op(
    "Switch", "data: T, pred: bool -> output_false: T, output_true: T", T=None, aliases=[0], role="switch"
)
ref_switch_op = op(
    "RefSwitch",
    "data: Ref(T), pred: bool -> output_false: Ref(T), output_true: Ref(T)",
    T=None,
    aliases=[0],
    role="switch",
)
merge_op = op(
    "Merge", "inputs: N*T -> output: T, value_index: int32", "N: int >= 1", T=None, aliases=[0], role="merge"
)
ref_merge_op = op(
    "RefMerge",
    "inputs: Ref(N*T) -> output: Ref(T), value_index: int32",
    "N: int >= 1",
    T=None,
    aliases=[0],
    role="merge",
)


def _switch_dims(node: Node) -> list[Any]:
    pred = node.dims(1)
    if pred:
        raise ValueError(f"Shape must be rank 0 but is rank {len(pred)}")
    return [node.dims(0), node.dims(0)]


def _scalar_dims(node: Node) -> Dims:
    dims = node.dims(0)
    if dims:
        raise ValueError(f"Shape must be rank 0 but is rank {len(dims)}")
    return ()


def _merge_dims(node: Node) -> list[Any]:
    known = [x.dims for x in node.inputs if x.dims is not None]
    if len(known) < len(node.inputs) or len({len(dims) for dims in known}) > 1:
        return [None, ()]
    return [(*[first if all([n == first for n in others]) else None for first, *others in zip(*known)],), ()]


def _no_kernel(node: Node, env: Environment) -> Kernel:
    def unreachable(*inputs: Any) -> Any:
        raise AssertionError(f"{node.name}: Switch and Merge are control flow of the plan, not calls")

    return unreachable


_FRAME = "frame_name: string ; is_constant: bool = false ; parallel_iterations: int = 10"
enter_op = op("Enter", "data: T -> output: T", _FRAME, T=None, aliases=[0], role="enter")
ref_enter_op = op("RefEnter", "data: Ref(T) -> output: Ref(T)", _FRAME, T=None, aliases=[0], role="enter")
exit_op = op("Exit", "data: T -> output: T", T=None, aliases=[0], role="exit")
ref_exit_op = op("RefExit", "data: Ref(T) -> output: Ref(T)", T=None, aliases=[0], role="exit")
next_iteration_op = op("NextIteration", "data: T -> output: T", T=None, aliases=[0], role="next_iteration")
ref_next_iteration_op = op(
    "RefNextIteration", "data: Ref(T) -> output: Ref(T)", T=None, aliases=[0], role="next_iteration"
)
loop_cond_op = op("LoopCond", "input: bool[] -> output: bool", role="loop_condition")
control_trigger_op = op("ControlTrigger", "->", free=True, role="trigger")

for _declaration in (enter_op, ref_enter_op):
    _declaration.infer(lambda node: node.dims(0))
    _declaration.kernel(CPU, GPU)(_no_kernel)
    # a loop variable's first value does not determine the later ones
    _declaration.value(0)(
        lambda node: static_value(node.inputs[0]) if node.attributes["is_constant"] else None
    )
for _declaration in (exit_op, ref_exit_op, next_iteration_op, ref_next_iteration_op, loop_cond_op):
    _declaration.infer(_scalar_dims if _declaration is loop_cond_op else lambda node: node.dims(0))
    _declaration.kernel(CPU, GPU)(_no_kernel)
    _declaration.value()(lambda node: None)
for _declaration in (enter_op, ref_enter_op, exit_op, ref_exit_op, next_iteration_op, ref_next_iteration_op):
    _declaration.no_gradient()  # `gradients/loop_gradients.py` computes it from the whole loop
control_trigger_op.infer(lambda node: None)
control_trigger_op.kernel(CPU, GPU)(lambda node, env: Value(None))
loop_cond_op.not_differentiable()
control_trigger_op.not_differentiable()

for _declaration in (switch_op, ref_switch_op):
    _declaration.infer(_switch_dims)
    _declaration.kernel(CPU, GPU)(_no_kernel)
for _declaration in (merge_op, ref_merge_op):
    _declaration.infer(_merge_dims)
    _declaration.kernel(CPU, GPU)(_no_kernel)
    _declaration.value()(lambda node: [None, None])


def switch(data: Any, pred: Any, name: str | None = None) -> Any:
    """(output_false, output_true): `data` on the output that `pred`, a scalar bool, chooses; the other one is
    dead.

    A reference stays one. Slices and sparse tensors are switched part by part.
    """
    if isinstance(data, (IndexedSlices, SparseTensor)):
        return _switch_parts(data, pred, name)
    data = convert_to_tensor(data, name="data", as_ref=True)
    return (ref_switch_op if data.dtype.is_ref else switch_op)(data, pred, name=name)


def _switch_parts(data: Any, pred: Any, name: str | None) -> Any:
    with data.graph.name_scope(name or "Switch"):
        pairs = [switch(part, pred) for part in nest.components(data)]
    return nest.rebuilt(data, [pair[0] for pair in pairs]), nest.rebuilt(data, [pair[1] for pair in pairs])


def colocated_switch(data: Any, pred: Any, name: str = "Switch") -> Any:
    """`switch` on the device of `data`."""
    if isinstance(data, (IndexedSlices, SparseTensor)):
        return switch(data, pred, name)
    with data.graph.colocate_with(data.op, ignore_existing=True):
        return switch(data, pred, name)


def merge(inputs: Iterable[Any], name: str | None = None) -> Any:
    """(output, value_index): the one of `inputs` that is alive, and its index.

    Tensors of one type, or slices (dense ones among them become slices; if the types of their indices or
    shapes differ, all become int64). ValueError for an input that is None."""
    values = list(inputs)
    if any(value is None for value in values):
        raise ValueError(f"At least one of the merge inputs is None: {values}")
    values = [
        x if isinstance(x, (IndexedSlices, SparseTensor)) else convert_to_tensor(x, as_ref=True)
        for x in values
    ]
    if all(isinstance(x, Tensor) for x in values):
        declaration = ref_merge_op if all(x.dtype.is_ref for x in values) else merge_op
        return declaration(values, name=name)
    with get_default_graph().name_scope(name or "Merge"):
        values = [_as_slices(x) if isinstance(x, Tensor) else x for x in values]
        first, *others = zip(*map(nest.components, values))
        merged = [merge(first), *(merge(_of_one_type(list(parts))) for parts in others)]
    return nest.rebuilt(values[0], [output for output, _ in merged]), merged[0][1]


def with_equal_indices(slices: list[IndexedSlices]) -> list[IndexedSlices]:
    """The same slices, with 64-bit indices where the types of their indices differ."""
    indices = _of_one_type([x.indices for x in slices])
    return [IndexedSlices(x.values, y, x.dense_shape) for x, y in zip(slices, indices)]


def _of_one_type(integers: list[Tensor]) -> list[Tensor]:
    """The same integers, of 64 bits if some have 32."""
    if {x.dtype.base_dtype for x in integers} != {dtypes.int32, dtypes.int64}:
        return integers
    return [x if x.dtype is dtypes.int64 else F.Cast(x, DstT=dtypes.int64) for x in integers]


def _as_slices(dense: Tensor) -> IndexedSlices:
    shape = F.Shape(dense)
    rows = F.Range(0, shape[0], 1, name="range")
    return IndexedSlices(dense, rows, shape)


def _slices_to_tensor(
    value: IndexedSlices, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> Any:
    """The dense tensor of slices; equal indices add up."""
    if as_ref or (dtype is not None and not dtype.is_compatible_with(value.dtype)):
        if as_ref:
            return NotImplemented
        raise ValueError(
            f"Tensor conversion requested dtype {dtype.name} for IndexedSlices with dtype {value.dtype.name}"
        )
    if value.dense_shape is None:
        raise ValueError(f"Tensor conversion requested for IndexedSlices without dense_shape: {value}")
    return F.UnsortedSegmentSum(value.values, value.indices, value.dense_shape[0], name=name)


register_tensor_conversion_function(IndexedSlices, _slices_to_tensor)


# ---- gradients


@switch_op.gradient
def _switch_gradient(op: Operation, *dys: Any) -> Gradients:
    context = op._control_flow_context
    if not hasattr(context, "branch"):  # not made by tf.cond
        pred = op.inputs[1]
        if dys[0] is None or dys[1] is None:
            return None, None
        return merge([switch(dys[0], pred)[0], switch(dys[1], pred)[1]])[0], None
    if dys[1 - context.branch] is None:  # a type without zeros, such as a handle of no variable
        return None, None
    if context.loop is not None:
        return merge([_dying_together(dy) for dy in dys], name="cond_grad")[0], None
    return merge(dys, name="cond_grad")[0], None


def _dying_together(dy: Any) -> Any:
    """Slices whose indices are dead where their values are. In the gradient of a loop, indices that are the
    same in all iterations do not pass through the branch by themselves.
    """
    if not isinstance(dy, IndexedSlices):
        return dy
    with dy.values.graph.control_dependencies([dy.values]):
        return IndexedSlices(dy.values, *(F.Identity(part) for part in nest.components(dy)[1:]))


ref_switch_op.gradient(_switch_gradient)


@merge_op.gradient
def _merge_gradient(op: Operation, dy: Tensor, _: Any) -> Gradients:
    context = op.inputs[0].op._control_flow_context
    if hasattr(context, "branch"):
        around = op.graph._scopes.control_flow_context
        is_in_loop = around is not None and around.loop is around
        pred = around.add_value(context.pred) if is_in_loop else context.pred
        branches: Sequence[Tensor] = colocated_switch(dy, pred, name="cond_grad")
        return branches
    chosen = [F.Equal(op.outputs[1], i) for i in range(len(op.inputs))]
    return [colocated_switch(dy, test)[1] for test in chosen]


ref_merge_op.gradient(_merge_gradient)


def zeros_for_gradient(op: Operation, output: Tensor) -> Tensor:
    """The gradient with respect to an output that no gradient arrived at, while one arrived at another output
    of `op`.

    For a branch's Switch the zeros are made on the branch that was not taken.
    """
    context = op._control_flow_context
    if not hasattr(context, "branch") or op.type not in ("Switch", "RefSwitch"):
        if output.dtype is dtypes.resource:
            return _filled_zeros(F.VariableShape(output, out_type=dtypes.int32), variable_type(output))
        return F.ZerosLike(output, name="zeros_like")
    data = op.inputs[0]
    other = switch(data, context.pred)[1 - context.branch]
    pivot = F.Identity(other)  # the zeros must be dead where `other` is
    graph = op.graph
    if data.dtype is dtypes.resource:
        with graph.control_dependencies([pivot]):
            return _filled_zeros(F.VariableShape(other, out_type=dtypes.int32), variable_type(data))
    shape = F.Shape(other)
    with graph.control_dependencies([pivot]):
        return _filled_zeros(shape, output.dtype.base_dtype)


def _filled_zeros(shape: Tensor, dtype: Any) -> Tensor:
    with shape.graph.name_scope("zeros") as name:
        return F.Fill(shape, constant(0, dtype), name=name)


def variable_type(handle: Tensor) -> Any:
    """The element type of the variable behind a handle."""
    return variable_behind(handle).attributes["dtype"]


def variable_behind(handle: Tensor) -> Operation:
    """The operation that makes a handle; also behind a branch's, a loop's or a function's name for it."""
    while handle.op.attributes.get("dtype", dtypes.resource) is dtypes.resource:
        if handle.op.inputs:
            handle = handle.op.inputs[0]
        else:  # what stands for a tensor from outside of a function
            captures = handle.op.graph.captures.items()  # type: ignore[attr-defined]
            handle = next(outer for outer, inner in captures if inner is handle)
    return handle.op


# ---- waiting


def group(*inputs: Any, name: str | None = None, **keywords: Any) -> Operation:
    """An operation that is done when all `inputs` are: operations, tensors, or nested structures of them.

    TypeError for other inputs or unknown keywords, ValueError for another name argument.
    """
    if keywords:
        raise ValueError(f"Unknown keyword arguments: {', '.join(keywords)}")
    if not inputs:
        return no_op(name=name or "group_deps")
    by_device: dict[str, list[Operation]] = {}
    for item in nest.flatten(inputs, expand_composites=False):
        if not hasattr(item, "device"):
            raise TypeError(
                f"'inputs' should be zero or more (nested) Tensors. Received '{item}' "
                f"with type '{type(item)}'."
            )
        by_device.setdefault(item.device, []).append(_operation(item))
    graph = get_default_graph() if not by_device else next(iter(by_device.values()))[0].graph
    if len(by_device) == 1:
        ((device, deps),) = by_device.items()
        return _group(graph, deps, device, name or "group_deps")
    with graph.name_scope(name or "group_deps") as scope:
        parts = [_group(graph, by_device[device], device, None) for device in sorted(by_device)]
        with graph.control_dependencies(parts):
            return no_op(name=scope)


def _operation(item: Any) -> Operation:
    item = getattr(item, "_as_graph_element", lambda: item)()
    return item if isinstance(item, Operation) else item.op


def _group(graph: Any, deps: list[Operation], device: str, name: str | None) -> Operation:
    where = graph.device(device) if device else contextlib.nullcontext()
    with graph.control_dependencies(deps), where:
        return no_op(name=name)


def with_dependencies(dependencies: Any, output_tensor: Any, name: str | None = None) -> Any:
    """The same value as `output_tensor`, available only after `dependencies`."""
    graph = output_tensor.graph
    with (
        graph.name_scope(name or "control_dependency") as scope,
        graph.colocate_with(output_tensor.op),
        graph.control_dependencies(dependencies),
    ):
        if isinstance(output_tensor, Tensor):
            return F.Identity(output_tensor, name=scope)
        parts = nest.components(output_tensor)
        return nest.rebuilt(output_tensor, [F.Identity(part) for part in parts])


def tuple_(tensors: Any, name: str | None = None, control_inputs: Any = None) -> list[Any]:
    """The same values as `tensors`, each available only when all are, and all `control_inputs` too.

    `tensors`: Tensors, IndexedSlices or None (stays None), at least one of them not None (else ValueError);
    `control_inputs`: operations and tensors (else TypeError).
    """
    known = (Tensor, IndexedSlices, Operation)
    tensors = [x if x is None or isinstance(x, known) else convert_to_tensor(x) for x in tensors]
    gating = [x if isinstance(x, Operation) else x.op for x in tensors if x is not None]
    for item in control_inputs or ():
        if isinstance(item, Tensor):
            item = item.op
        elif not isinstance(item, Operation):
            raise TypeError(f"'control_inputs' must only contain Operation or Tensor. Received: {type(item)}")
        gating.append(item)
    if not gating:
        raise ValueError(f"'tensors' must have at least one Tensor. Received: {tensors}.")
    gating = sorted(set(gating), key=lambda x: x.order)
    with gating[0].graph.name_scope(name or "tuple"):
        gate = group(*gating)
        return [
            x if x is None else group(gate, x) if isinstance(x, Operation) else with_dependencies([gate], x)
            for x in tensors
        ]


tuple = tuple_  # the public name; nothing above uses the built-in
