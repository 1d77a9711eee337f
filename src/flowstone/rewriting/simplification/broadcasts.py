"""Broadcasts: drops those of operands that the operation itself would broadcast.

- ``Tile(x)`` along axes of size 1 alone is ``BroadcastTo(x)``, as TensorFlow's gradients of sums have it;
- ``op(BroadcastTo(x), y)`` is ``op(x, y)`` where y alone already has the result's shape; likewise
  ``op(Fill(dims, x), y)``, of ``ones_like`` that are too large to be constants;
- ``op(BroadcastTo(x), scalar)`` is ``BroadcastTo(op(x, scalar))``, so that the arithmetic is done once an
  element of x;
- a reshape of ``BroadcastTo(x)`` that only adds or drops axes of size 1 is ``BroadcastTo`` of such a reshape
  of x.

All give the same bits. They serve ops whose declaration says that they broadcast; gradients of means and of
normalisation are full of them.
"""

from __future__ import annotations

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.tensors.node import static_value
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import is_text
from flowstone.rewriting.patterns import Replacement, rewrite

Dims = tuple[int | None, ...] | None
_REPEATED = {"BroadcastTo": 0, "Fill": 1}  # which input is repeated


def narrow_broadcasts(subgraph: Subgraph) -> None:
    """Applies the rules to every Tile, reshape and broadcasting op of two inputs, inputs first."""

    def rule(node: PlanNode) -> Replacement | None:
        if node.type == "Tile":
            return _broadcast(subgraph, node)
        if node.declaration.reshapes:
            return _reshaped_before(subgraph, node)
        if not (node.declaration.broadcasts or node.type == "RealDiv") or len(node.inputs) != 2:
            return None
        dims = node.outputs[0].dims
        if dims is None or None in dims:
            return None
        for i in (0, 1):
            x, other = node.inputs[i], node.inputs[1 - i]
            if x.op.declaration.name not in _REPEATED:
                continue
            if other.dims == dims:
                return _replacement(subgraph, node, i, "the other operand has the result's shape")
            if other.dims == () and x.dims == dims and x.op.type == "BroadcastTo":
                return _broadcast_afterwards(subgraph, node, i)
        return None

    rewrite(subgraph, "narrow_broadcasts", rule)


def _broadcast(subgraph: Subgraph, node: PlanNode) -> Replacement | None:
    """A Tile that repeats nothing but axes of size 1 as a broadcast."""
    x, counts = node.inputs[0], node.constant(1)
    shape, dims = x.static_shape, node.outputs[0].dims
    if counts is None or shape is None or dims is None or is_text(node) or dims == shape:
        return None
    if not all(size == 1 or count == 1 for size, count in zip(shape, counts.tolist())):
        return None
    size = subgraph.new_constant(np.array(dims, np.int32), node, "shape")
    attributes = {"T": x.dtype.base_dtype, "Tidx": dtypes.int32}
    new = subgraph.new_node(registry["BroadcastTo"], [x, size.outputs[0]], attributes, like=node)
    return Replacement([new.outputs[0]], "only axes of size 1 are repeated", (size, new))


def _reshaped_before(subgraph: Subgraph, node: PlanNode) -> Replacement | None:
    """A reshape of a broadcast as a broadcast of a reshape."""
    broadcast, dims = node.inputs[0].op, node.outputs[0].dims
    if broadcast.type != "BroadcastTo" or broadcast.control_inputs or node.control_inputs:
        return None
    x, before = broadcast.inputs[0], broadcast.outputs[0].dims
    axes, shape = kept_axes(before, dims), x.static_shape
    if axes is None or shape is None or before is None or not is_told_shape(node):
        return None
    inner = with_axes(shape, len(before), axes)
    sizes = [
        subgraph.new_constant(np.array(shape, np.int32), node, name)
        for shape, name in ((inner, "inner"), (dims, "shape"))
    ]
    attributes = {"T": x.dtype.base_dtype, "Tshape": dtypes.int32}
    reshaped = subgraph.new_node(registry["Reshape"], [x, sizes[0].outputs[0]], attributes, like=node)
    attributes = {"T": x.dtype.base_dtype, "Tidx": dtypes.int32}
    source = x if inner == x.dims else reshaped.outputs[0]
    after = subgraph.new_node(broadcast.declaration, [source, sizes[1].outputs[0]], attributes, like=node)
    added = (sizes[1], after) if source is x else (sizes[0], reshaped, sizes[1], after)
    return Replacement([after.outputs[0]], "reshaped before the broadcast", added)


def is_told_shape(node: PlanNode) -> bool:
    """Whether a reshape knows the shape that it is to give. Else what is inferred of the result may only hold
    if the step does not fail."""
    if node.type != "Reshape" or node.constant(1) is not None:
        return True
    told = node.constant_dims(1)
    return told is not None and None not in told


def kept_axes(before: Dims, after: Dims) -> list[int | None] | None:
    """Of a reshape that only adds or drops axes of size 1: for each axis of the result, that of the operand,
    or None for one that is added. None for other reshapes and unknown shapes."""
    if before is None or after is None or None in before or None in after:
        return None
    axes: list[int | None] = []
    at = 0
    for size in after:
        while size != 1 and at < len(before) and before[at] == 1:
            at += 1
        if at < len(before) and before[at] == size:
            axes.append(at)
            at += 1
        elif size == 1:
            axes.append(None)
        else:
            return None
    return axes if all(size == 1 for size in before[at:]) else None


def with_axes(dims: tuple[int, ...], rank: int, axes: list[int | None]) -> tuple[int, ...]:
    """The shape of an operand, which was broadcast to `rank` axes, after only those axes are kept."""
    full = (1,) * (rank - len(dims)) + dims
    return tuple(1 if axis is None else full[axis] for axis in axes)


def _narrowed(subgraph: Subgraph, node: PlanNode, i: int) -> PlanNode:
    inputs: list[PlanOutput] = list(node.inputs)
    repeated = inputs[i].op
    inputs[i] = repeated.inputs[_REPEATED[repeated.type]]
    return subgraph.new_node(node.declaration, inputs, node.attributes, like=node)


def _replacement(subgraph: Subgraph, node: PlanNode, i: int, reason: str) -> Replacement:
    new = _narrowed(subgraph, node, i)
    return Replacement([new.outputs[0]], reason, (new,))


def _broadcast_afterwards(subgraph: Subgraph, node: PlanNode, i: int) -> Replacement:
    broadcast = node.inputs[i].op
    new = _narrowed(subgraph, node, i)
    value = static_value(new.outputs[0])
    if isinstance(value, np.ndarray):
        waits = [control for x in new.inputs for control in x.op.control_inputs]
        new = subgraph.new_constant(value, node, "number")
        new.control_inputs = waits
    attributes = {**broadcast.attributes, "T": new.outputs[0].dtype}
    inputs = [new.outputs[0], broadcast.inputs[1]]
    after = subgraph.new_node(
        broadcast.declaration, inputs, attributes, like=node, name=f"{node.name}/broadcast"
    )
    return Replacement([after.outputs[0]], "the scalar is applied before the broadcast", (new, after))
