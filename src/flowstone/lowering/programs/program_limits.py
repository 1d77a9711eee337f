"""Which values of nodes programs may have: types, shapes that are known before the step, and sizes.

`Untranslatable` says why a node stays outside of programs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.framework.types.shape import Dims, num_elements
from flowstone.native.codegen.emitter import KINDS
from flowstone.native.programs.open_sizes import typical

__all__ = [
    "MOST_ELEMENTS",
    "NARROW",
    "WIDE",
    "Limits",
    "Untranslatable",
    "check_size",
    "kind_of",
    "static_dims",
    "strides_of",
]


class Limits(NamedTuple):
    """What a program may have: the elements of a value, the terms of a product, the bytes of all values, and
    of those that are small enough for loops; the terms of a product in a loop, and of one whose rows
    threads share."""

    elements: int
    terms: int
    memory: int
    in_loops: int = 1 << 19
    looped_terms: int = 1 << 18
    shared_terms: int = 1 << 18


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


class TooMuch(Untranslatable):
    """The nodes from this one on are too much together, though each alone may be part of a program."""


def static_dims(node: PlanNode, dims: Dims) -> tuple[int, ...]:
    """The shape, which must be known and not too large."""
    if dims is None or any(n is None for n in dims):
        raise Untranslatable(node, "a shape is not known before the step")
    found = tuple([n for n in dims if n is not None])
    if not 0 < typical(math.prod(found)) <= WIDE.elements:
        raise Untranslatable(node, "an array is empty or large")
    return found


def check_size(node: PlanNode, dims: Dims, limits: Limits) -> None:
    """Raises Untranslatable for more elements than the limits allow."""
    size = num_elements(dims)
    if size is not None and typical(size) > limits.elements:
        raise Untranslatable(node, "an array is large")


def kind_of(node: PlanNode, x: PlanOutput) -> str:
    """The name of a type that programs have."""
    name = x.dtype.base_dtype.name
    if name not in KINDS:
        raise Untranslatable(node, f"there are no {x.dtype.name} in machine code")
    return name


def strides_of(dims: Sequence[int]) -> tuple[int, ...]:
    """The steps between elements of a contiguous array."""
    return tuple([math.prod(dims[i + 1 :]) for i in range(len(dims))])
