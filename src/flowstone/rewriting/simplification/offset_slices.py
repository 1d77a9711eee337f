"""Slices at the offsets that parts have in a concatenation, as one split.

    begin:2 = ConcatOffset(axis, shape_a, shape_b)
    Slice(dy, begin:0, shape_a)                          a, b = SplitV(dy, (3, 5), 1)
    Slice(dy, begin:1, shape_b)

So gradients of concatenations are written; those of many parts as ``SplitV(dy, sizes, axis)``, whose sizes
are cut from the packed shapes. The axis and the sizes along it must be known; other sizes need not be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.tensors.node import value_where_alive
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, is_compatible, merge
from flowstone.rewriting.matching import Number, Op, Pattern
from flowstone.rewriting.patterns import Replacement, rewrite

__all__ = ["split_at_offsets"]


class _Packed(NamedTuple):
    """Shapes that are packed side by side, of which one row is cut: their sizes along an axis."""

    begin: Any
    shapes: tuple[PlanOutput, ...]


_ONE_ROW = Number(where=lambda size: size.tolist() == [1, -1])
_SHAPES = Op("Pack", others="shapes", axis=1, waits=False)
_SIZES = Pattern(
    Op("Squeeze", Op("Slice", _SHAPES, Number("begin"), _ONE_ROW, waits=False)), _Packed, waits=False
)


def split_at_offsets(subgraph: Subgraph) -> None:
    """Replaces slices at the offsets of a concatenation's parts, and splits by the shapes of the parts."""
    types = {node.type for node in subgraph.nodes}
    if "ConcatOffset" not in types and not types >= {"SplitV", "Pack"}:
        return
    splits: dict[tuple[PlanOutput, PlanNode], PlanNode] = {}

    def rule(node: PlanNode) -> Replacement | None:
        if node.type == "SplitV":
            return _by_packed_shapes(subgraph, node)
        if node.type != "Slice" or node.control_inputs:
            return None
        dy, begin, shape = node.inputs
        offsets = begin.op
        if offsets.type != "ConcatOffset" or shape is not offsets.inputs[1 + begin.value_index]:
            return None
        nodes: tuple[PlanNode, ...] = ()
        if (dy, offsets) not in splits:
            nodes = _split(subgraph, node, dy, offsets.inputs[0], offsets.inputs[1:])
            if not nodes:
                return None
            splits[dy, offsets] = nodes[-1]
        part = splits[dy, offsets].outputs[begin.value_index]
        return Replacement([part], "a part of what is concatenated", nodes)

    rewrite(subgraph, "split_at_offsets", rule)


def _by_packed_shapes(subgraph: Subgraph, node: PlanNode) -> Replacement | None:
    found = _SIZES.match(node.inputs[1].op)
    axis = value_where_alive(node.inputs[2])
    if found is None or not isinstance(axis, np.ndarray) or found.begin.tolist() != [int(axis), 0]:
        return None
    nodes = _split(subgraph, node, node.inputs[0], node.inputs[2], found.shapes)
    return Replacement(nodes[-1].outputs, "the sizes are known", nodes) if nodes else None


def _split(
    subgraph: Subgraph, like: PlanNode, dy: PlanOutput, axis: PlanOutput, shapes: Sequence[PlanOutput]
) -> tuple[PlanNode, ...]:
    """The constants and the split of `dy` into parts of these `shapes`; none if the sizes are not known."""
    at, known = value_where_alive(axis), [_known_dims(x) for x in shapes]
    if not isinstance(at, np.ndarray) or dy.dtype.is_ref:
        return ()
    sizes = [None if dims is None else dims[int(at)] for dims in known]
    if None in sizes or not all(_tiles(dy.dims, dims, int(at), sum(sizes)) for dims in known):  # type: ignore[arg-type]
        return ()
    if (waiting := _waiting([axis, *shapes])) is None:
        return ()
    constants = [
        subgraph.new_constant(np.array(sizes, np.int32), like, "sizes"),
        subgraph.new_constant(np.array(at, np.int32), like, "axis"),
    ]
    for each in constants:
        each.control_inputs = waiting
    attributes = {"T": dy.dtype.base_dtype, "Tlen": dtypes.int32, "num_split": len(sizes)}
    inputs = [dy, *(each.outputs[0] for each in constants)]
    split = subgraph.new_node(registry["SplitV"], inputs, attributes, like)
    for x, dims in zip(split.outputs, known):
        x.dims = merge(x.dims, dims)
    return (*constants, split)


def _tiles(whole: Dims, part: Any, axis: int, size: int) -> bool:
    """Whether a part of these sizes may be one of those that make up what has `size` along the axis."""
    return is_compatible(whole, (*part[:axis], size, *part[axis + 1 :]))


def _known_dims(shape: PlanOutput) -> tuple[int | None, ...] | None:
    value = value_where_alive(shape)
    return tuple(value.tolist()) if isinstance(value, np.ndarray) else value


def _waiting(inputs: Sequence[PlanOutput]) -> list[PlanNode] | None:
    """What constants among these inputs wait for: that they are in their loop. None if others wait, too."""
    waiting: dict[PlanNode, None] = {}
    for x in inputs:
        if x.op.is_constant:
            waiting.update(dict.fromkeys(x.op.control_inputs))
        elif x.op.control_inputs:
            return None
    return list(waiting)
