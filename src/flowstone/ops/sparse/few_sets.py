"""Sets of few numbers are combined by Python's sets: calls on tensors would take longer than what they do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from flowstone.ops.arrays.arrays import whole_numbers
from flowstone.ops.sparse.index_rows import rows_at

__all__ = ["FEW", "few_combined"]

FEW = 256
"""Elements, up to which calls take longer than what they do."""
Element = tuple[torch.Tensor, Any]  # of each element: the number of its set, and its value
_OF_FEW: dict[str, Callable[[set[Any], set[Any]], set[Any]]] = {
    "a-b": set.difference,
    "b-a": lambda a, b: b.difference(a),
    "intersection": set.intersection,
    "union": set.union,
}


def _of_one_set(
    kind: str, first: torch.Tensor, second: torch.Tensor, sizes: Sequence[int]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The same where there is one set, as programs have them that pick rows by several conditions."""
    found = sorted(_OF_FEW[kind](set(first.tolist()), set(second.tolist())))
    count = len(found)
    rows = torch.zeros((count, len(sizes) + 1), dtype=torch.int64)
    torch.arange(count, out=rows[:, -1])
    return rows, whole_numbers(found, first.dtype), whole_numbers([*sizes, count])


def few_combined(
    kind: str, first: Element, second: Element, sizes: Sequence[int]
) -> tuple[torch.Tensor, Any, torch.Tensor]:
    """The sparse tensor of results of few numbers, by Python's sets."""
    if math.prod(sizes) == 1:
        return _of_one_set(kind, first[1], second[1], sizes)
    a, b = (set(zip(sets.tolist(), values.tolist())) for sets, values in (first, second))
    found = sorted(_OF_FEW[kind](a, b))
    places: list[int] = []
    before = -1
    for each, _ in found:
        places.append(places[-1] + 1 if each == before else 0)
        before = each
    numbers = [each for each, _ in found]
    if len(sizes) == 1:
        rows = whole_numbers([n for pair in zip(numbers, places) for n in pair]).view(-1, 2)
    else:
        rows = torch.cat((rows_at(whole_numbers(numbers), sizes), whole_numbers(places)[:, None]), 1)
    values = whole_numbers([value for _, value in found], first[1].dtype)
    return rows, values, whole_numbers([*sizes, max(places, default=-1) + 1])
