"""The best split of every node by one feature column, from the sums of its gradients and Hessians by value.

Rows are in the order of nodes, then of the feature's dimensions, then of its values. Each candidate parts a
node's rows in two, and what both leaves gain more than the node's own is its gain; the first of equal
candidates counts. Sums are float32, and are made in the order of rows, so that trees are TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.forests.node_statistics import Penalties

__all__ = ["Best", "Rows", "best_of_ids", "best_of_sparse", "best_of_values", "best_of_whole_layer"]

Array = np.ndarray[Any, Any]


class Rows(NamedTuple):
    """Sums of gradients and Hessians by node, ascending, and by (value, dimension) of a feature."""

    nodes: Array
    features: Array
    gradients: Array
    hessians: Array

    def of_nodes(self) -> Iterator[tuple[int, slice]]:
        """Each node and where its rows are."""
        yield from _runs(self.nodes)


class Best(NamedTuple):
    """The best split of a node; `row` is the row of its value, `left` and `right` are the leaves, [outputs].

    `default_left` is whether examples without a value go left.
    """

    node: int
    gain: float
    row: int
    left: Array
    right: Array
    default_left: bool = False


class _Candidates:
    """What the sums [candidates, ...] on the left and on the right gain."""

    def __init__(self, penalties: Penalties, left: tuple[Array, Array], right: tuple[Array, Array]) -> None:
        self.left, self.right = penalties.leaves(*left), penalties.leaves(*right)
        self.gains = self.left.gains + self.right.gains

    def leaves(self, at: int) -> tuple[Array, Array]:
        """The leaves of a candidate: no numbers for one that stays as it is."""
        sides = (self.left, self.right)
        left, right = (side.weights[at] if side.heavy[at] else np.zeros(0, np.float32) for side in sides)
        return left, right


def _runs(keys: Array) -> Iterator[tuple[int, slice]]:
    starts = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))
    ends = [*starts[1:].tolist(), len(keys)] if len(starts) else []
    for start, end in zip(starts.tolist(), ends, strict=True):
        yield int(keys[start]), slice(start, end)


def _own_gain(penalties: Penalties, gradients: Array, hessians: Array) -> np.float32:
    gain: np.float32 = penalties.leaves(gradients[None], hessians[None]).gains[0]
    return gain


def _gain(best: np.float32, own: np.float32, penalties: Penalties) -> float:
    return float(best - own - np.float32(penalties.complexity))


def best_of_values(rows: Rows, penalties: Penalties) -> Iterator[Best]:
    """Of a feature that every example has: those of values up to one's go left."""
    for node, part in rows.of_nodes():
        left = tuple(np.cumsum(sums[part], 0, dtype=np.float32) for sums in rows[2:])
        totals = [sums[-1] for sums in left]
        right = tuple(total - sums for total, sums in zip(totals, left, strict=True))
        found = _Candidates(penalties, left, right)  # type: ignore[arg-type]
        at = int(found.gains.argmax())
        gain = _gain(found.gains[at], _own_gain(penalties, totals[0], totals[1]), penalties)
        yield Best(node, gain, part.start + at, *found.leaves(at))


def _bias(rows: Rows, part: slice, bias: int) -> tuple[Array, Array]:
    """The sums of all the node's examples, which its first row has."""
    if rows.features[part.start, 0] != bias:
        raise invalid("Bias feature ID missing.")
    return rows.gradients[part.start], rows.hessians[part.start]


def best_of_sparse(rows: Rows, penalties: Penalties, bias: int) -> Iterator[Best]:
    """Of a feature that some examples lack, which go left or right as is better.

    The node's first row, of the value `bias`, has the sums of all its examples.
    """
    for node, part in rows.of_nodes():
        totals = _bias(rows, part, bias)
        own = _own_gain(penalties, *totals)
        found: tuple[np.float32, int, _Candidates, int] | None = None
        inside = slice(part.start + 1, part.stop)
        for _, run in _runs(rows.features[inside, 1]):
            here = slice(inside.start + run.start, inside.start + run.stop)
            candidates = _both_ways(rows, here, totals, penalties)
            at = int(candidates.gains.argmax())
            if found is None or candidates.gains[at] > found[0]:
                found = candidates.gains[at], here.start + at // 2, candidates, at
        if found is not None:
            best, row, candidates, at = found
            yield Best(node, _gain(best, own, penalties), row, *candidates.leaves(at), at % 2 == 0)


def _both_ways(rows: Rows, here: slice, totals: tuple[Array, Array], penalties: Penalties) -> _Candidates:
    """Candidates in pairs: examples without a value go left, then right."""
    lefts, rights = [], []
    for sums, total in zip(rows[2:], totals, strict=True):
        below = np.cumsum(sums[here], 0, dtype=np.float32)
        above = below[-1] - below
        lefts.append(np.stack([total - above, below], 1).reshape(-1, *total.shape))
        rights.append(np.stack([above, total - below], 1).reshape(-1, *total.shape))
    return _Candidates(penalties, (lefts[0], lefts[1]), (rights[0], rights[1]))


def best_of_ids(rows: Rows, penalties: Penalties, bias: int) -> Iterator[Best]:
    """Of a feature of categories: those with one id go left.

    The node's first row, of the id `bias`, has the sums of all its examples.
    """
    for node, part in rows.of_nodes():
        totals = _bias(rows, part, bias)
        inside = slice(part.start + 1, part.stop)
        if inside.start == inside.stop:
            continue
        left = rows.gradients[inside], rows.hessians[inside]
        found = _Candidates(penalties, left, (totals[0] - left[0], totals[1] - left[1]))
        at = int(found.gains.argmax())
        gain = _gain(found.gains[at], _own_gain(penalties, *totals), penalties)
        yield Best(node, gain, inside.start + at, *found.leaves(at))


def best_of_whole_layer(rows: Rows, penalties: Penalties, bias: int | None) -> list[Best]:
    """The one question of a whole layer that gains most in all its nodes together: a split of each node.

    Args:
        bias: None for a feature of values; of one of ids, the id of the rows that have the sums of all
            examples.
    """
    nodes = list(rows.of_nodes())
    values = rows.features[:, 0]
    asked = np.unique(values if bias is None else values[values != bias])
    if not len(asked):
        return []
    found, gains = [], np.zeros(len(asked), np.float32)
    for _, part in nodes:
        totals, left = _at_values(rows, part, asked, bias)
        right = tuple(total - sums for total, sums in zip(totals, left, strict=True))
        found.append(_Candidates(penalties, left, right))  # type: ignore[arg-type]
        gains += found[-1].gains - _own_gain(penalties, *totals) - np.float32(penalties.complexity)
    at = int(gains.argmax())
    row = int(np.flatnonzero(values == asked[at])[0])
    return [
        Best(node, float(gains[at]), row, *each.leaves(at))
        for (node, _), each in zip(nodes, found, strict=True)
    ]


def _at_values(
    rows: Rows, part: slice, asked: Array, bias: int | None
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """A node's sums of all examples, and of those that go left at each of the values asked for."""
    sums = [rows.gradients[part], rows.hessians[part]]
    values = rows.features[part, 0]
    if bias is None:
        places = np.searchsorted(values, asked, side="right")
        sums = [np.cumsum(each, 0, dtype=np.float32) for each in sums]
        lefts = [np.concatenate([np.zeros_like(each[:1]), each])[places] for each in sums]
        return (sums[0][-1], sums[1][-1]), (lefts[0], lefts[1])
    totals = _bias(rows, part, bias)
    places = np.minimum(np.searchsorted(values, asked), len(values) - 1)
    here = values[places] == asked
    lefts = [np.where(here.reshape(-1, *[1] * (each.ndim - 1)), each[places], np.float32(0)) for each in sums]
    return totals, (lefts[0], lefts[1])
