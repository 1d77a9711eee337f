"""Nodes that move elements, as statements: views, slices, rows, joins, parts, paddings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.lowering.programs.program_limits import Untranslatable, kind_of, static_dims, strides_of
from flowstone.lowering.programs.row_statements import ROWS
from flowstone.lowering.programs.slice_statements import SLICES
from flowstone.lowering.programs.statement_parts import (
    constant_input,
    copy,
    joined,
    places_in,
    places_of,
    result_of,
    spread,
)
from flowstone.lowering.programs.translation import Translation
from flowstone.native.programs.open_sizes import is_open

__all__ = ["MOVEMENTS"]


def _view(t: Translation, node: PlanNode) -> list[int]:
    kind_of(node, node.inputs[0])
    return [t.builder.view(t.of(node.inputs[0]), static_dims(node, node.outputs[0].dims))]


def _views(t: Translation, node: PlanNode) -> list[int]:
    return [t.of(x) for x in node.inputs]


def _broadcast_to(t: Translation, node: PlanNode) -> list[int]:
    _, dims = result_of(node)
    x = t.of(node.inputs[-1] if node.type == "Fill" else node.inputs[0])
    if t.builder.values[x].size == math.prod(dims):
        return [t.builder.view(x, dims)]
    return [spread(t, x, dims)]


def _transpose(t: Translation, node: PlanNode) -> list[int]:
    order = constant_input(node, 1).ravel().tolist()
    places = places_of(node)
    if sorted(order) != list(range(places.ndim)):
        raise Untranslatable(node, "its permutation is none")
    return [copy(t, node, t.of(node.inputs[0]), places.transpose(order))]


def _roll(t: Translation, node: PlanNode) -> list[int]:
    x, (_, dims) = t.of(node.inputs[0]), result_of(node)
    for shift, axis in zip(
        constant_input(node, 1).ravel().tolist(), constant_input(node, 2).ravel().tolist()
    ):
        if not -len(dims) <= axis < len(dims):
            raise Untranslatable(node, "it has no such dimension")  # and fails
        cut = -shift % dims[axis]
        if cut:
            end, begin = np.split(places_of(node), [cut], axis)
            parts = [(copy(t, node, x, each), each.shape[axis]) for each in (begin, end)]
            x = joined(t, node, axis % len(dims), parts)
    return [x]


def _pack(t: Translation, node: PlanNode) -> list[int]:
    _, dims = result_of(node)
    axis = node.attributes["axis"] % len(dims)
    return [joined(t, node, axis, [(t.of(x), 1) for x in node.inputs])]


def _concat(t: Translation, node: PlanNode) -> list[int]:
    _, dims = result_of(node)
    axis = 0 if node.type == "Concat" else len(node.inputs) - 1
    arguments = node.inputs[1:] if node.type == "Concat" else node.inputs[:-1]
    at = int(constant_input(node, axis)) % len(dims)
    parts = [(t.of(x), static_dims(node, x.dims)[at]) for x in arguments]
    return [joined(t, node, at, parts)]


def _unpack(t: Translation, node: PlanNode) -> list[int]:
    x, places = t.of(node.inputs[0]), places_of(node)
    axis = node.attributes["axis"] % places.ndim
    return [copy(t, node, x, places.take(i, axis)) for i in range(len(node.outputs))]


def _split(t: Translation, node: PlanNode) -> list[int]:
    is_first = node.type == "Split"
    data = node.inputs[1 if is_first else 0]
    axis = int(constant_input(node, 0 if is_first else 2))
    dims = static_dims(node, data.dims)
    sizes = [static_dims(node, x.dims)[axis] for x in node.outputs]
    ends = list(itertools.accumulate(sizes))
    whole, before = places_in(dims), (slice(None),) * (axis % len(dims))
    chosen = [(*before, slice(end - size, end)) for size, end in zip(sizes, ends)]
    return [copy(t, node, t.of(data), whole[each]) for each in chosen]


def _tile(t: Translation, node: PlanNode) -> list[int]:
    _, dims = result_of(node)
    if is_open(math.prod(dims)):  # and so are the times, which the shape tells
        return [spread(t, t.of(node.inputs[0]), dims)]
    places, times = places_of(node), constant_input(node, 1).ravel().tolist()
    apart = places.reshape([n for size in places.shape for n in (1, size)])
    repeated = np.broadcast_to(apart, [n for pair in zip(times, places.shape) for n in pair])
    return [t.builder.view(copy(t, node, t.of(node.inputs[0]), repeated), dims)]


def _reverse(t: Translation, node: PlanNode) -> list[int]:
    axes = tuple(constant_input(node, 1).ravel().tolist())
    return [copy(t, node, t.of(node.inputs[0]), np.flip(places_of(node), axes))]


def _reverse_sequence(t: Translation, node: PlanNode) -> list[int]:
    dtype, dims = result_of(node)
    axes = batch, sequence = node.attributes["batch_dim"], node.attributes["seq_dim"]
    if batch == sequence or not 0 <= min(axes) <= max(axes) < len(dims):
        raise Untranslatable(node, "its dimensions are none")
    if static_dims(node, node.inputs[0].dims) != dims or node.inputs[1].dims != (dims[batch],):
        raise Untranslatable(node, "its shapes do not fit each other")
    outer = slice(max(axes) + 1)
    walk = {"sizes": dims[outer], "strides": strides_of(dims)[outer], "batch": batch, "sequence": sequence}
    return [t.add("ReverseParts", [t.of(x) for x in node.inputs], (dtype, dims), **walk)]


def _about_shape(t: Translation, node: PlanNode) -> list[int]:
    """What is known of a shape is part of the code."""
    dtype, dims = result_of(node)
    source = static_dims(node, node.inputs[0].dims)
    numbers = {"Shape": source, "Size": (math.prod(source),), "Rank": (len(source),)}[node.type]
    return [t.builder.constant(dtype, dims, numbers)]


def _shapes(t: Translation, node: PlanNode) -> list[int]:
    kinds = [result_of(node, i) for i in range(len(node.outputs))]
    return [t.builder.constant(*each, static_dims(node, x.dims)) for each, x in zip(kinds, node.inputs)]


def _range(t: Translation, node: PlanNode) -> list[int]:
    """Integers as many as is known, from where the step says, so far apart as it says."""
    dtype, dims = result_of(node)
    if dtype not in ("int32", "int64"):
        raise Untranslatable(node, f"machine code has no {node.type} of {dtype}")
    start, _, apart = (spread(t, t.of(x), dims) for x in node.inputs)
    if is_open(dims[0]):
        count = t.add("Count", [], (dtype, dims))
    else:
        count = t.builder.constant(dtype, dims, range(dims[0]))
    steps = t.add("Mul", [count, apart], (dtype, dims))
    return [t.add("Add", [start, steps], (dtype, dims))]


MOVEMENTS: dict[str, Callable[[Translation, PlanNode], list[int]]] = {
    **ROWS,
    **SLICES,
    **dict.fromkeys(
        ("Identity", "StopGradient", "PreventGradient", "Reshape", "ExpandDims", "Squeeze"), _view
    ),
    **dict.fromkeys(("BroadcastTo", "Fill"), _broadcast_to),
    **dict.fromkeys(("Concat", "ConcatV2"), _concat),
    **dict.fromkeys(("Split", "SplitV"), _split),
    **dict.fromkeys(("Shape", "Size", "Rank"), _about_shape),
    "IdentityN": _views,
    "Pack": _pack,
    "ReverseSequence": _reverse_sequence,
    "ReverseV2": _reverse,
    "Range": _range,
    "Roll": _roll,
    "ShapeN": _shapes,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unpack": _unpack,
}
"""Nodes that move elements."""
