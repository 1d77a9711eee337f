"""Slices, paddings and their gradients as statements, also of places that a step computes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.framework.types.shape import Dims
from flowstone.lowering.programs.program_limits import Untranslatable, kind_of, static_dims, strides_of
from flowstone.lowering.programs.row_statements import one_row
from flowstone.lowering.programs.statement_parts import (
    check_inside,
    constant_input,
    copy,
    joined,
    places_in,
    places_of,
    put_into,
    result_of,
    spread,
    walk_of,
)
from flowstone.lowering.programs.translation import Translation
from flowstone.native.programs.open_sizes import is_open

__all__ = ["SLICES"]


class _Part(NamedTuple):
    """A part of an array: how many elements each dimension has, and the value that says where they begin."""

    sizes: tuple[int, ...]
    begins: int


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
    _, dims = result_of(node)
    if not dims:
        raise Untranslatable(node, "it is a slice of a scalar")
    return _taken(t, node, t.of(node.inputs[1]), dims)


def _taken(t: Translation, node: PlanNode, begins: int, sizes: Sequence[int]) -> int:
    """The part of the first input of these sizes that begins there."""
    (dtype, dims), source = result_of(node), static_dims(node, node.inputs[0].dims)
    limits = tuple([size - n for size, n in zip(source, sizes)])
    walk: dict[str, Any] = {"sizes": tuple(sizes), "strides": strides_of(source), "limits": limits}
    return t.add("Window", [t.of(node.inputs[0]), begins], (dtype, dims), **walk)


def _put(t: Translation, node: PlanNode, x: int, around: int, part: _Part) -> int:
    """Writes a value into another one, as the part that the step says."""
    dims = t.builder.values[around].dims
    limits = tuple([size - n for size, n in zip(dims, part.sizes)])
    walk: dict[str, Any] = {"sizes": part.sizes, "strides": strides_of(dims), "limits": limits}
    t.add("PutWindow", [x, part.begins], None, into=around, **walk)
    return around


def _strided_slice(t: Translation, node: PlanNode) -> list[int]:
    if node.constant(1) is None:
        return [_row(t, node)]
    places = places_of(node)[_chosen(node)]
    if places.shape != static_dims(node, node.outputs[0].dims):
        raise Untranslatable(node, "its slice has another shape than was inferred")
    return [copy(t, node, t.of(node.inputs[0]), places)]


def _masks(node: PlanNode) -> dict[str, int]:
    names = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    return {key: node.attributes[f"{key}_mask"] for key in names}


def _chosen(node: PlanNode) -> tuple[Any, ...]:
    """The slices, of a StridedSlice or its gradient, as an index of NumPy's."""
    begin, end, strides = (constant_input(node, i).ravel().tolist() for i in (1, 2, 3))
    masks = _masks(node)
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
    places = places_in(dims)[_chosen(node)]
    given = node.inputs[4]
    if places.shape != static_dims(node, given.dims):
        raise Untranslatable(node, "its slice has another shape than was inferred")
    sizes, strides, first = walk_of(node, places if is_open(math.prod(dims)) else np.atleast_1d(places))
    whole = t.add("Fill", [t.builder.constant(dtype, (), [0])], (dtype, dims))
    walk = {"sizes": sizes, "from_strides": strides_of(sizes), "to_strides": strides}
    t.add("Copy", [t.of(given)], None, into=whole, from_place=0, to_place=first, **walk)
    return [whole]


def _row(t: Translation, node: PlanNode) -> int:
    """x[i], x[:, i], x[i, 2:] …, of indices that a loop computes."""
    starts, axis = node.inputs[1].op, _axis_taken(node)
    if axis is not None and starts.type == "Pack":
        return one_row(t, node, t.of(starts.inputs[axis]), axis, wraps=True)
    (_, dims), source = result_of(node), static_dims(node, node.inputs[0].dims)
    sizes, begins = _part(t, node, source, dims)
    return _taken(t, node, begins, sizes)


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
        around = t.add("Fill", [t.builder.constant(dtype, (), [0])], (dtype, dims))
        return _put(t, node, t.of(given), around, _part(t, node, dims, given.dims))
    if static_dims(node, given.dims) != (*dims[:axis], *dims[axis + 1 :]):
        raise Untranslatable(node, "its slice has another shape than was inferred")
    outer, inner = math.prod(dims[:axis]), math.prod(dims[axis + 1 :])
    one: dict[str, Any] = {"sizes": (1,), "from_strides": (1,), "to_strides": (1,), "to_place": 0}
    index = t.add("Copy", [begin], (kind, ()), from_place=axis, **one)
    none, size = (t.builder.constant(kind, (), [n]) for n in (0, dims[axis]))
    is_negative = t.add("Less", [index, none], ("bool", ()))  # it counts from the end
    index = t.add("Select", [is_negative, t.add("Add", [index, size], (kind, ())), index], (kind, ()))
    check_inside(t, index, dims[axis])
    first = t.builder.constant(kind, (outer,), range(0, outer * dims[axis], dims[axis]))
    places = t.add("Add", [first, spread(t, index, (outer,))], (kind, (outer,)))
    data = t.builder.view(t.of(given), (outer, inner))
    return t.add(
        "Segments", [data, places], (dtype, dims), kind="Sum", segments=outer * dims[axis], inner=inner
    )


def _part(t: Translation, node: PlanNode, source: tuple[int, ...], dims: Dims) -> _Part:
    """The part of a whole of these dimensions that a StridedSlice, of these dimensions, or its gradient is
    about. The program fails where that has other sizes."""
    kind, strides = kind_of(node, node.inputs[1]), node.constant(3)
    if strides is None or set(strides.ravel().tolist()) - {1} or not source:
        raise Untranslatable(node, "where it begins is not known before the step")
    left, masks = list(static_dims(node, dims)), _masks(node)
    axes: list[tuple[int, int]] = []  # for each dimension its number of elements, and which index begins it
    for i in range(strides.size):
        bit = 1 << i
        if masks["new_axis"] & bit:
            left.pop(0)
        elif masks["ellipsis"] & bit:
            later = [j for j in range(i + 1, strides.size) if not masks["new_axis"] & (1 << j)]
            for size in source[len(axes) : len(source) - len(later)]:
                axes.append((size, -1))
                left.pop(0)
        else:
            axes.append((1, i) if masks["shrink_axis"] & bit else (left.pop(0), i))
    axes += [(size, -1) for size in source[len(axes) :]]
    begins = t.builder.value(kind, (len(source),))
    t.add("Fill", [t.builder.constant(kind, (), [0])], None, into=begins)
    one: dict[str, Any] = {"sizes": (1,), "from_strides": (1,), "to_strides": (1,), "from_place": 0}
    for axis, (size, i) in enumerate(axes):
        if i >= 0:
            begin = _begin(t, node, kind, source[axis], size, i)
            t.add("Copy", [begin], None, into=begins, to_place=axis, **one)
    return _Part(tuple([size for size, _ in axes]), begins)


def _begin(t: Translation, node: PlanNode, kind: str, length: int, size: int, i: int) -> int:
    """Where a slice of so many of the elements of a dimension begins, as the index says."""
    masks, bit = _masks(node), 1 << i
    none, whole = (t.builder.constant(kind, (), [n]) for n in (0, length))

    def index(which: int) -> int:
        where: dict[str, Any] = {
            "sizes": (1,),
            "from_strides": (1,),
            "to_strides": (1,),
            "from_place": i,
            "to_place": 0,
        }
        found = t.add("Copy", [t.of(node.inputs[which])], (kind, ()), **where)
        is_negative = t.add("Less", [found, none], ("bool", ()))  # it counts from the end
        return t.add("Select", [is_negative, t.add("Add", [found, whole], (kind, ())), found], (kind, ()))

    if masks["shrink_axis"] & bit:
        return index(1)  # where it is outside of the dimension a window fails
    ends = []
    for which, name, otherwise in ((1, "begin", none), (2, "end", whole)):
        if masks[name] & bit:
            ends.append(otherwise)
            continue
        above = t.add("Maximum", [index(which), none], (kind, ()))
        ends.append(t.add("Minimum", [above, whole], (kind, ())))
    found = t.add("Sub", [ends[1], ends[0]], (kind, ()))
    t.add("Check", [t.add("Equal", [found, t.builder.constant(kind, (), [size])], ("bool", ()))], None)
    return ends[0]


def _padded(t: Translation, node: PlanNode) -> list[int]:
    dtype, dims = result_of(node)
    zero = t.builder.constant(dtype, (), [0]) if node.type == "Pad" else t.of(node.inputs[2])
    if node.constant(1) is None:
        around = t.add("Fill", [zero], (dtype, dims))
        return [_put(t, node, t.of(node.inputs[0]), around, _inner_part(t, node, dims))]
    return [put_into(t, t.of(node.inputs[0]), zero, dims, constant_input(node, 1)[:, 0].tolist())]


def _inner_part(t: Translation, node: PlanNode, dims: tuple[int, ...]) -> _Part:
    """What is not padding. The program fails where the paddings do not make up the dimensions."""
    kind, sizes = kind_of(node, node.inputs[1]), static_dims(node, node.inputs[0].dims)
    count = len(dims)
    if not count:
        raise Untranslatable(node, "it pads a scalar")
    before, after = (
        t.moved(t.of(node.inputs[1]), (count,), sizes=(count,), from_strides=(2,), from_place=i)
        for i in (0, 1)
    )
    more = t.builder.constant(kind, (count,), [whole - n for whole, n in zip(dims, sizes)])
    found = t.add("Equal", [t.add("Add", [before, after], (kind, (count,))), more], ("bool", (count,)))
    t.add("Check", [t.add("Reduce", [found], ("bool", ()), kind="All", outer=1, size=count, inner=1)], None)
    return _Part(sizes, before)


def _mirrored(t: Translation, node: PlanNode) -> list[int]:
    x, skip = t.of(node.inputs[0]), int(node.attributes["mode"] == "REFLECT")
    for axis, (before, after) in enumerate(constant_input(node, 1).tolist()):
        dims = t.builder.values[x].dims
        if max(before, after) > dims[axis] - skip or min(before, after) < 0:
            raise Untranslatable(node, "it is short of elements")  # and it fails
        places, n = np.arange(math.prod(dims)).reshape(dims), dims[axis]
        first = np.flip(places.take(range(skip, skip + before), axis), axis)
        last = np.flip(places.take(range(n - skip - after, n - skip), axis), axis)
        parts = [each for each in (first, places, last) if each.size]
        pairs = [(copy(t, node, x, each), each.shape[axis]) for each in parts]
        x = joined(t, node, axis, pairs, (*dims[:axis], n + before + after, *dims[axis + 1 :]))
    return [x]


def _unmirrored(t: Translation, node: PlanNode) -> list[int]:
    """The gradient of such a padding: edges are added to where they are from."""
    dtype, _ = result_of(node)
    x, skip = t.of(node.inputs[0]), int(node.attributes["mode"] == "REFLECT")
    if dtype in ("bool", "uint8"):
        raise Untranslatable(node, f"machine code has no {node.type} of {dtype}")
    zero = t.builder.constant(dtype, (), [0])
    for axis, (before, after) in enumerate(constant_input(node, 1).tolist()):
        whole = t.builder.values[x].dims
        places, n = np.arange(math.prod(whole)).reshape(whole), whole[axis] - before - after
        if max(before, after) > n - skip or min(before, after) < 0:
            raise Untranslatable(node, "it is short of elements")  # and it fails
        dims = (*whole[:axis], n, *whole[axis + 1 :])
        total = copy(t, node, x, places.take(range(before, before + n), axis))
        for start, count, place in ((0, before, skip), (before + n, after, n - skip - after)):
            if count:
                edge = np.flip(places.take(range(start, start + count), axis), axis)
                first = [place if i == axis else 0 for i in range(len(dims))]
                added = put_into(t, copy(t, node, x, edge), zero, dims, first)
                total = t.add("Add", [total, added], (dtype, dims))
        x = total
    return [x]


SLICES: dict[str, Callable[[Translation, PlanNode], list[int]]] = {
    **dict.fromkeys(("Pad", "PadV2"), _padded),
    "MirrorPad": _mirrored,
    "MirrorPadGrad": _unmirrored,
    "Slice": _slice,
    "StridedSlice": _strided_slice,
    "StridedSliceGrad": _strided_slice_gradient,
}
"""Slices and paddings."""
