"""Nodes that move elements, as statements: views, slices, rows, joins, parts, paddings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.lowering.programs.program_limits import Untranslatable, kind_of, static_dims, strides_of
from flowstone.lowering.programs.statement_parts import (
    constant_input,
    copy,
    places_of,
    put_into,
    result_of,
    spread,
    walk_of,
)
from flowstone.lowering.programs.translation import Translation
from flowstone.native.codegen.emitter import KINDS
from flowstone.native.programs.indexed_code import KINDS_OF_SEGMENTS

__all__ = ["MOVEMENTS"]


def _view(t: Translation, node: PlanNode) -> list[int]:
    kind_of(node, node.inputs[0])
    return [t.builder.view(t.of(node.inputs[0]), static_dims(node, node.outputs[0].dims))]


def _broadcast_to(t: Translation, node: PlanNode) -> list[int]:
    _, dims = result_of(node)
    x = t.of(node.inputs[-1] if node.type == "Fill" else node.inputs[0])
    if t.builder.values[x].size == math.prod(dims):
        return [t.builder.view(x, dims)]
    places = np.broadcast_to(np.arange(t.builder.values[x].size).reshape(t.builder.values[x].dims), dims)
    return [copy(t, node, x, places)]


def _transpose(t: Translation, node: PlanNode) -> list[int]:
    order = constant_input(node, 1).ravel().tolist()
    places = places_of(node)
    if sorted(order) != list(range(places.ndim)):
        raise Untranslatable(node, "its permutation is none")
    return [copy(t, node, t.of(node.inputs[0]), places.transpose(order))]


def _slice(t: Translation, node: PlanNode) -> list[int]:
    if node.constant(1) is None:
        return [_window(t, node)]
    begin = constant_input(node, 1).ravel()
    _, dims = result_of(node)
    chosen, places = tuple([slice(b, b + n) for b, n in zip(begin.tolist(), dims)]), places_of(node)
    if any(part.start < 0 or part.stop > size for part, size in zip(chosen, places.shape)):
        raise Untranslatable(node, "it reaches outside of its input")
    return [copy(t, node, t.of(node.inputs[0]), places[chosen])]


def _window(t: Translation, node: PlanNode) -> int:
    """A slice that begins where the step says."""
    (dtype, dims), source = result_of(node), static_dims(node, node.inputs[0].dims)
    if not dims:
        raise Untranslatable(node, "it is a slice of a scalar")
    limits = tuple([size - n for size, n in zip(source, dims)])
    operands = [t.of(x) for x in node.inputs[:2]]
    return t.add("Window", operands, (dtype, dims), sizes=dims, strides=strides_of(source), limits=limits)


def _strided_slice(t: Translation, node: PlanNode) -> list[int]:
    if node.constant(1) is None:
        return _row(t, node)
    places = np.asarray(places_of(node)[_chosen(node)])
    if places.shape != static_dims(node, node.outputs[0].dims):
        raise Untranslatable(node, "its slice has another shape than was inferred")
    return [copy(t, node, t.of(node.inputs[0]), places)]


def _chosen(node: PlanNode) -> tuple[Any, ...]:
    """The slices, of a StridedSlice or its gradient, as an index of NumPy's."""
    begin, end, strides = (constant_input(node, i).ravel().tolist() for i in (1, 2, 3))
    masks = {
        key: node.attributes[f"{key}_mask"] for key in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    chosen: list[Any] = []
    for i, (b, e, step) in enumerate(zip(begin, end, strides)):
        bit = 1 << i
        if masks["ellipsis"] & bit:
            chosen.append(Ellipsis)
        elif masks["new_axis"] & bit:
            chosen.append(np.newaxis)
        elif masks["shrink_axis"] & bit:
            chosen.append(b)
        else:
            chosen.append(slice(None if masks["begin"] & bit else b, None if masks["end"] & bit else e, step))
    return tuple(chosen)


def _strided_slice_gradient(t: Translation, node: PlanNode) -> list[int]:
    if node.constant(1) is None:
        return [_row_gradient(t, node)]
    dtype, dims = result_of(node)
    places = np.asarray(np.arange(math.prod(dims)).reshape(dims)[_chosen(node)])
    given = node.inputs[4]
    if places.shape != static_dims(node, given.dims):
        raise Untranslatable(node, "its slice has another shape than was inferred")
    sizes, strides, first = walk_of(node, np.atleast_1d(places))
    whole = t.add("Fill", [t.builder.constant(dtype, (), [0])], (dtype, dims))
    walk = {"sizes": sizes, "from_strides": strides_of(sizes), "to_strides": strides}
    t.add("Copy", [t.of(given)], None, into=whole, from_place=0, to_place=first, **walk)
    return [whole]


def _row(t: Translation, node: PlanNode) -> list[int]:
    """x[i] or x[:, i], of an index that a loop computes."""
    starts, axis = node.inputs[1].op, _axis_taken(node)
    if axis is None or starts.type != "Pack":
        raise Untranslatable(node, "where it begins is not known before the step")
    return [_at(t, node, t.of(starts.inputs[axis]), axis, wraps=True)]


def _axis_taken(node: PlanNode) -> int | None:
    """The dimension of which a slice, or its gradient, is of one place, all of the others being whole."""
    strides, count = node.constant(3), (node.inputs[1].dims or (None,))[0]
    masks = {key: node.attributes[f"{key}_mask"] for key in ("begin", "end", "shrink_axis")}
    more = node.attributes["ellipsis_mask"] | node.attributes["new_axis_mask"]
    shrunk = masks["shrink_axis"]
    if more or count is None or strides is None or strides.tolist() != [1] * count or shrunk.bit_count() != 1:
        return None
    is_whole = masks["begin"] & masks["end"] | shrunk == (1 << count) - 1
    axis: int = shrunk.bit_length() - 1
    return axis if is_whole and axis < count else None


def _row_gradient(t: Translation, node: PlanNode) -> int:
    """That of x[i], or x[:, i], of an index that a loop computes: zeros but in one place of a dimension."""
    dtype, dims = result_of(node)
    given, begin, axis = node.inputs[4], t.of(node.inputs[1]), _axis_taken(node)
    kind = kind_of(node, node.inputs[1])
    if axis is None or dtype in ("bool", "uint8"):
        raise Untranslatable(node, "where its slice begins is not known before the step")
    if static_dims(node, given.dims) != (*dims[:axis], *dims[axis + 1 :]):
        raise Untranslatable(node, "its slice has another shape than was inferred")
    outer, inner = math.prod(dims[:axis]), math.prod(dims[axis + 1 :])
    one: dict[str, Any] = {"sizes": (1,), "from_strides": (1,), "to_strides": (1,), "to_place": 0}
    index = t.add("Copy", [begin], (kind, ()), from_place=axis, **one)
    none, size = (t.builder.constant(kind, (), [n]) for n in (0, dims[axis]))
    is_negative = t.add("Less", [index, none], ("bool", ()))  # it counts from the end
    index = t.add("Select", [is_negative, t.add("Add", [index, size], (kind, ())), index], (kind, ()))
    _check_inside(t, index, dims[axis])
    first = t.builder.constant(kind, (outer,), range(0, outer * dims[axis], dims[axis]))
    places = t.add("Add", [first, spread(t, index, (outer,))], (kind, (outer,)))
    data = t.builder.view(t.of(given), (outer, inner))
    return t.add(
        "Segments", [data, places], (dtype, dims), kind="Sum", segments=outer * dims[axis], inner=inner
    )


def _check_inside(t: Translation, index: int, size: int) -> None:
    """The program fails unless the integers are places in a dimension of this size."""
    dtype, dims = t.builder.values[index].dtype, t.builder.values[index].dims
    none, end = (t.builder.constant(dtype, (), [n]) for n in (0, size))
    limits = [
        t.add(*each, ("bool", dims)) for each in (("GreaterEqual", [index, none]), ("Less", [index, end]))
    ]
    found, count = t.add("LogicalAnd", limits, ("bool", dims)), math.prod(dims)
    if count > 1:
        found = t.add("Reduce", [found], ("bool", ()), kind="All", outer=1, size=count, inner=1)
    t.add("Check", [found], None)


def _at(t: Translation, node: PlanNode, index: int, axis: int, wraps: bool) -> int:
    dims = static_dims(node, node.inputs[0].dims)
    dtype, result = result_of(node)
    outer, row = math.prod(dims[:axis]), math.prod(dims[axis + 1 :])
    sizes, strides = ((row,), (1,)) if outer == 1 else ((outer, row), (dims[axis] * row, 1))
    return t.add(
        "Copy",
        [t.of(node.inputs[0]), index],
        (dtype, result),
        sizes=sizes,
        from_strides=strides,
        to_strides=strides_of(sizes),
        from_place=0,
        to_place=0,
        scale=row,
        limit=dims[axis],
        wraps=wraps,
    )


def _gather(t: Translation, node: PlanNode) -> list[int]:
    axis = node.constant(2) if node.type == "GatherV2" else np.array(0)
    if axis is None or int(axis) != 0 or node.attributes.get("batch_dims", 0):
        raise Untranslatable(node, "it gathers along another dimension than the first")
    if node.inputs[1].dims == ():
        return [_at(t, node, t.of(node.inputs[1]), 0, wraps=False)]
    dtype, result = result_of(node)
    dims = static_dims(node, node.inputs[0].dims)
    operands = [t.of(x) for x in node.inputs[:2]]
    return [t.add("Rows", operands, (dtype, result), rows=dims[0], inner=math.prod(dims[1:]))]


def _gather_nd(t: Translation, node: PlanNode) -> list[int]:
    dtype, result = result_of(node)
    dims, indices = (static_dims(node, x.dims) for x in node.inputs)
    depth = indices[-1]
    if not 0 < depth <= len(dims):
        raise Untranslatable(node, "its indices say nothing")
    operands, inner = [t.of(x) for x in node.inputs], math.prod(dims[depth:])
    return [t.add("Tuples", operands, (dtype, result), sizes=dims[:depth], inner=inner)]


def _scatter_nd(t: Translation, node: PlanNode) -> list[int]:
    """Sums of rows: segments, by the places of the rows' indices."""
    dtype, dims = result_of(node)
    kind, indices = kind_of(node, node.inputs[0]), static_dims(node, node.inputs[0].dims)
    depth, count = indices[-1], math.prod(indices[:-1])
    if not 0 < depth <= len(dims) or dtype in ("bool", "uint8"):
        raise Untranslatable(node, "its indices say nothing, or its type has no sums")
    segments, inner = math.prod(dims[:depth]), math.prod(dims[depth:])
    if math.prod(static_dims(node, node.inputs[1].dims)) != count * inner:
        raise Untranslatable(node, "its updates have another shape")  # and it fails
    places = t.builder.constant(kind, (), [0])
    for axis, size in enumerate(dims[:depth]):
        walk = {"sizes": (count,), "from_strides": (depth,), "from_place": axis}
        index = t.moved(t.of(node.inputs[0]), (count,), **walk)
        _check_inside(t, index, size)
        scaled = t.add("Mul", [places, t.builder.constant(kind, (), [size])], (kind, (count,)[: axis > 0]))
        places = t.add("Add", [index, scaled], (kind, (count,)))
    data = t.builder.view(t.of(node.inputs[1]), (count, inner))
    return [t.add("Segments", [data, places], (dtype, dims), kind="Sum", segments=segments, inner=inner)]


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
            x = _joined(t, node, axis % len(dims), parts)
    return [x]


def _segments(t: Translation, node: PlanNode) -> list[int]:
    dtype, result = result_of(node)
    data, ids = static_dims(node, node.inputs[0].dims), static_dims(node, node.inputs[1].dims)
    if dtype not in KINDS or dtype in ("bool", "uint8"):
        raise Untranslatable(node, f"machine code has no segments of {dtype}")
    sizes = {"segments": result[0], "inner": math.prod(data[len(ids) :])}
    kind = node.type.removeprefix("UnsortedSegment")
    return [t.add("Segments", [t.of(x) for x in node.inputs[:2]], (dtype, result), kind=kind, **sizes)]


def _pack(t: Translation, node: PlanNode) -> list[int]:
    _, dims = result_of(node)
    axis = node.attributes["axis"] % len(dims)
    return [_joined(t, node, axis, [(t.of(x), 1) for x in node.inputs])]


def _concat(t: Translation, node: PlanNode) -> list[int]:
    _, dims = result_of(node)
    axis = 0 if node.type == "Concat" else len(node.inputs) - 1
    arguments = node.inputs[1:] if node.type == "Concat" else node.inputs[:-1]
    at = int(constant_input(node, axis)) % len(dims)
    parts = [(t.of(x), static_dims(node, x.dims)[at]) for x in arguments]
    return [_joined(t, node, at, parts)]


def _joined(
    t: Translation,
    node: PlanNode,
    axis: int,
    parts: Sequence[tuple[int, int]],
) -> int:
    """Parts of these sizes along the axis, one behind the other."""
    dtype, dims = result_of(node)
    result = t.builder.value(dtype, dims)
    outer, inner = math.prod(dims[:axis]), math.prod(dims[axis + 1 :])
    place = 0
    for x, size in parts:
        t.add(
            "Copy",
            [x],
            None,
            into=result,
            sizes=(outer, size * inner),
            from_strides=(size * inner, 1),
            to_strides=(dims[axis] * inner, 1),
            from_place=0,
            to_place=place * inner,
        )
        place += size
    return result


def _unpack(t: Translation, node: PlanNode) -> list[int]:
    x, places = t.of(node.inputs[0]), places_of(node)
    axis = node.attributes["axis"] % places.ndim
    return [copy(t, node, x, np.asarray(places.take(i, axis))) for i in range(len(node.outputs))]


def _split(t: Translation, node: PlanNode) -> list[int]:
    is_first = node.type == "Split"
    data = node.inputs[1 if is_first else 0]
    axis = int(constant_input(node, 0 if is_first else 2))
    dims = static_dims(node, data.dims)
    places = np.arange(math.prod(dims)).reshape(dims)
    sizes = [static_dims(node, x.dims)[axis] for x in node.outputs]
    parts = np.split(places, np.cumsum(sizes)[:-1], axis)
    return [copy(t, node, t.of(data), part) for part in parts]


def _tile(t: Translation, node: PlanNode) -> list[int]:
    places, times = places_of(node), constant_input(node, 1).ravel().tolist()
    _, dims = result_of(node)
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


def _padded(t: Translation, node: PlanNode) -> list[int]:
    dtype, dims = result_of(node)
    zero = t.builder.constant(dtype, (), [0]) if node.type == "Pad" else t.of(node.inputs[2])
    return [put_into(t, t.of(node.inputs[0]), zero, dims, constant_input(node, 1)[:, 0].tolist())]


def _about_shape(t: Translation, node: PlanNode) -> list[int]:
    """What is known of a shape is part of the code."""
    dtype, dims = result_of(node)
    source = static_dims(node, node.inputs[0].dims)
    numbers = {"Shape": source, "Size": (math.prod(source),), "Rank": (len(source),)}[node.type]
    return [t.builder.constant(dtype, dims, numbers)]


MOVEMENTS: dict[str, Callable[[Translation, PlanNode], list[int]]] = {
    **dict.fromkeys(
        ("Identity", "StopGradient", "PreventGradient", "Reshape", "ExpandDims", "Squeeze"), _view
    ),
    **dict.fromkeys(("BroadcastTo", "Fill"), _broadcast_to),
    **dict.fromkeys(("Gather", "GatherV2"), _gather),
    **dict.fromkeys(("Concat", "ConcatV2"), _concat),
    **dict.fromkeys(("Split", "SplitV"), _split),
    **dict.fromkeys(("Pad", "PadV2"), _padded),
    **dict.fromkeys((f"UnsortedSegment{kind}" for kind in KINDS_OF_SEGMENTS), _segments),
    **dict.fromkeys(("Shape", "Size", "Rank"), _about_shape),
    "GatherNd": _gather_nd,
    "Pack": _pack,
    "ReverseSequence": _reverse_sequence,
    "ReverseV2": _reverse,
    "Roll": _roll,
    "ScatterNd": _scatter_nd,
    "Slice": _slice,
    "StridedSlice": _strided_slice,
    "StridedSliceGrad": _strided_slice_gradient,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unpack": _unpack,
}
"""Nodes that move elements."""
