"""What translating nodes to statements has in common: arguments, copies and broadcasts."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.lowering.programs.program_limits import Untranslatable, kind_of, static_dims, strides_of
from flowstone.lowering.programs.translation import Translation
from flowstone.native.programs.open_sizes import is_open

__all__ = [
    "Places",
    "broadcast",
    "check_inside",
    "constant_input",
    "copy",
    "joined",
    "places_in",
    "places_of",
    "put_into",
    "result_of",
    "spread",
    "walk_of",
]


def result_of(node: PlanNode, i: int = 0) -> tuple[str, tuple[int, ...]]:
    """The type and shape of an output."""
    return kind_of(node, node.outputs[i]), static_dims(node, node.outputs[i].dims)


def constant_input(node: PlanNode, i: int) -> np.ndarray[Any, Any]:
    """An input that is part of the code."""
    found = node.constant(i)
    if found is None:
        raise Untranslatable(node, "an argument is not known before the step")
    return found


def broadcast(t: Translation, node: PlanNode, x: int, dims: tuple[int, ...]) -> int:
    """The value with as many elements as the shape, or one."""
    value = t.builder.values[x]
    if value.size in (1, math.prod(dims)):
        return x
    try:
        return spread(t, x, dims)
    except ValueError:
        raise Untranslatable(node, "its shapes do not fit each other") from None


def spread(t: Translation, x: int, dims: tuple[int, ...]) -> int:
    """The elements of a value as often as the shape says, made where the value is made. ValueError if it does
    not fit."""
    source = t.builder.values[x].dims
    if is_open(math.prod(dims)):
        wide = Places.whole(source).broadcast_to(dims)
        sizes, strides, first = wide.shape, wide.strides, wide.first
    else:
        sizes, strides, first = _spread_walk(source, dims)
    return t.moved(x, dims, sizes=sizes, from_strides=strides, from_place=first)


@functools.lru_cache(maxsize=1024)
def _spread_walk(dims: tuple[int, ...], to: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    found = _walk(np.broadcast_to(np.arange(math.prod(dims)).reshape(dims), to))
    assert found is not None  # all steps along a dimension are the same
    return found


def copy(t: Translation, node: PlanNode, x: int, places: Any) -> int:
    """The elements of a value at these places, made where the value is made."""
    sizes, strides, first = walk_of(node, places)
    dims = tuple(places.shape)
    if is_open(math.prod(dims)) and not isinstance(places, Places):
        raise Untranslatable(node, "it moves elements of a size that is not known before the step")
    return t.moved(x, dims, sizes=sizes, from_strides=strides, from_place=first)


def put_into(
    t: Translation,
    x: int,
    filling: int,
    dims: tuple[int, ...],
    first: Sequence[int],
    apart: Sequence[int] = (),
) -> int:
    """A value of this shape that holds the scalar `filling`, and from place `first` on a value, whose
    elements lie `apart`."""
    source, strides = t.builder.values[x], strides_of(dims)
    around = t.add("Fill", [filling], (source.dtype, dims))
    walk = {"sizes": source.dims, "from_strides": strides_of(source.dims)}
    steps = tuple([step * n for step, n in zip(strides, apart or [1] * len(dims))])
    place = sum(n * step for n, step in zip(first, strides))
    t.add("Copy", [x], None, into=around, **walk, to_strides=steps, from_place=0, to_place=place)
    return around


def joined(
    t: Translation,
    node: PlanNode,
    axis: int,
    parts: Sequence[tuple[int, int]],
    to: tuple[int, ...] | None = None,
) -> int:
    """Parts of these sizes along the axis, one behind the other; of the shape of the output, or another."""
    dtype, dims = result_of(node)
    dims = dims if to is None else to
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


def check_inside(t: Translation, index: int, size: int) -> None:
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


def walk_of(node: PlanNode, places: Any) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Places as a walk with steps of one length along each dimension."""
    if isinstance(places, Places):
        return places.shape, places.strides, places.first
    found = _walk(np.asarray(places))
    if found is None:
        raise Untranslatable(node, "it moves elements in no regular way")
    return found


def _walk(places: np.ndarray[Any, Any]) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
    first = int(places.flat[0])
    sizes, strides = [], []
    for axis, size in enumerate(places.shape):
        step = int(places.take(1, axis).flat[0]) - first if size > 1 else 0
        sizes.append(size)
        strides.append(step)
    walked = np.full(places.shape, first)
    for axis, (size, step) in enumerate(zip(sizes, strides)):
        shape = [1] * len(sizes)
        shape[axis] = size
        walked = walked + (np.arange(size) * step).reshape(shape)
    if not np.array_equal(walked, places):
        return None
    return tuple(sizes), tuple(strides), first


def places_of(node: PlanNode) -> Any:
    """The place of each element of the first input in memory."""
    return places_in(static_dims(node, node.inputs[0].dims))


def places_in(dims: tuple[int, ...]) -> Any:
    """The place of each element of an array: another array, or `Places` if some size is open."""
    if is_open(math.prod(dims)):
        return Places.whole(dims)
    return np.arange(math.prod(dims)).reshape(dims)


class Places:
    """Places as a walk, of sizes of which some are open; what of NumPy's arrays keeps it one."""

    __slots__ = ("first", "shape", "strides")

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], first: int) -> None:
        self.shape, self.strides, self.first = shape, strides, first

    @staticmethod
    def whole(dims: tuple[int, ...]) -> Places:
        """Those of all elements."""
        return Places(dims, strides_of(dims), 0)

    @property
    def ndim(self) -> int:
        """How many dimensions there are."""
        return len(self.shape)

    def transpose(self, order: Sequence[int]) -> Places:
        """The dimensions in this order."""
        return Places(
            tuple([self.shape[i] for i in order]), tuple([self.strides[i] for i in order]), self.first
        )

    def broadcast_to(self, dims: tuple[int, ...]) -> Places:
        """The same place all along dimensions of size 1. ValueError if it does not fit."""
        more = len(dims) - self.ndim
        own, steps = (1,) * more + self.shape, (0,) * more + self.strides
        if more < 0 or any([n not in (1, m) for n, m in zip(own, dims)]):
            raise ValueError("shapes do not fit each other")
        return Places(dims, tuple([0 if n == 1 else step for n, step in zip(own, steps)]), self.first)

    def take(self, i: int, axis: int) -> Places:
        """Those of one index of a dimension."""
        return self[(slice(None),) * axis + (i,)]

    def __getitem__(self, chosen: Any) -> Places:
        """Slices with steps of 1, of places that are counted from the begin, or up to the end."""
        shape, strides, first = [], [], self.first
        given = [each for each in chosen if each is not np.newaxis and each is not Ellipsis]
        rest = (slice(None),) * (self.ndim - len(given))
        if Ellipsis in chosen:
            at = chosen.index(Ellipsis)
            chosen = (*chosen[:at], *rest, *chosen[at + 1 :])
        else:
            chosen = (*chosen, *rest)
        own = iter(zip(self.shape, self.strides))
        for each in chosen:
            if each is np.newaxis:
                shape.append(1)
                strides.append(0)
                continue
            size, step = next(own)
            if not isinstance(each, slice):
                each = each + size if each < 0 else each
                if not 0 <= each < size:
                    raise IndexError("there is no such element")
                first = first + each * step
                continue
            begin, end, apart = each.start or 0, size if each.stop is None else each.stop, each.step or 1
            begin, end = (n + size if n < 0 else n for n in (begin, end))
            if apart != 1 or not 0 <= begin < end <= size:
                raise ValueError("the slice is not a part whose size is known")
            shape.append(end - begin)
            strides.append(step)
            first = first + begin * step
        return Places(tuple(shape), tuple(strides), first)
