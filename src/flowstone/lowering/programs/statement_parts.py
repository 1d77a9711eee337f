"""What translating nodes to statements has in common: shapes and types that programs have, and copies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.framework.types.shape import Dims, num_elements
from flowstone.native.codegen.emitter import KINDS

if TYPE_CHECKING:
    from flowstone.lowering.programs.translation import Translation

__all__ = [
    "MOST_ELEMENTS",
    "NARROW",
    "WIDE",
    "Limits",
    "Untranslatable",
    "broadcast",
    "check_size",
    "constant_input",
    "copy",
    "kind_of",
    "places_of",
    "put_into",
    "result_of",
    "static_dims",
    "strides_of",
    "walk_of",
]


class Limits(NamedTuple):
    """What a program may have: the elements of a value, the terms of a product, the bytes of all values, and
    of those that are small enough for loops."""

    elements: int
    terms: int
    memory: int
    in_loops: int = 1 << 19


NARROW = Limits(elements=1 << 14, terms=1 << 18, memory=1 << 19)
"""Beyond, ATen's kernels are as fast, and have threads."""
WIDE = Limits(elements=1 << 18, terms=1 << 22, memory=1 << 22)
"""Of what is computed once, outside of loops, where it keeps a loop from being compiled."""
MOST_ELEMENTS = NARROW.elements  # of a value that is made within a statement


class Untranslatable(Exception):
    """The node cannot be part of a program."""

    def __init__(self, node: PlanNode, reason: str) -> None:
        super().__init__(reason)
        self.node, self.reason = node, reason


def static_dims(node: PlanNode, dims: Dims) -> tuple[int, ...]:
    """The shape, which must be known and not too large."""
    if dims is None or any(n is None for n in dims):
        raise Untranslatable(node, "a shape is not known before the step")
    found = tuple([n for n in dims if n is not None])
    if not 0 < math.prod(found) <= WIDE.elements:
        raise Untranslatable(node, "an array is empty or large")
    return found


def check_size(node: PlanNode, dims: Dims, limits: Limits) -> None:
    """Raises Untranslatable for more elements than the limits allow."""
    if (num_elements(dims) or 0) > limits.elements:
        raise Untranslatable(node, "an array is large")


def kind_of(node: PlanNode, x: PlanOutput) -> str:
    """The name of a type that programs have."""
    name = x.dtype.base_dtype.name
    if name not in KINDS:
        raise Untranslatable(node, f"there are no {x.dtype.name} in machine code")
    return name


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
        places = np.broadcast_to(np.arange(value.size).reshape(value.dims), dims)
    except ValueError:
        raise Untranslatable(node, "its shapes do not fit each other") from None
    return copy(t, node, x, places)


def copy(t: Translation, node: PlanNode, x: int, places: np.ndarray[Any, Any]) -> int:
    """The elements of a value at these places, made where the value is made."""
    sizes, strides, first = walk_of(node, places)
    dims = tuple(places.shape)
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


def walk_of(node: PlanNode, places: np.ndarray[Any, Any]) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Places as a walk with steps of one length along each dimension."""
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
        raise Untranslatable(node, "it moves elements in no regular way")
    return tuple(sizes), tuple(strides), first


def strides_of(dims: Sequence[int]) -> tuple[int, ...]:
    """The steps between elements of a contiguous array."""
    return tuple([math.prod(dims[i + 1 :]) for i in range(len(dims))])


def places_of(node: PlanNode) -> np.ndarray[Any, Any]:
    """The place of each element of the first input in memory."""
    dims = static_dims(node, node.inputs[0].dims)
    return np.arange(math.prod(dims)).reshape(dims)
