"""What is known of a leaf that may be split: candidates for the test, and how examples would part by each.

The first examples that come to a leaf give the candidates: a feature drawn at random, compared with the
example's own value. Those that follow are counted. A leaf of classes is ready once it has counted
`split_after` examples of more than one class, a leaf of numbers once it has counted so many. It then splits
by the candidate whose parts are purest, of those that part the examples at all:

- classes: the least sum, over both parts, of the examples times the Gini impurity of the part's counts, each
  of which is taken to be one more;
- numbers: the least sum of the variances of both parts and all outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flowstone.ops.forests.decision_tree import EQUAL, Test, read_test, set_vector, test_message
from flowstone.ops.forests.forest_examples import Examples

__all__ = ["LeafStatistics", "Rules", "Split", "read_statistics"]

Array = np.ndarray[Any, Any]


class Rules(NamedTuple):
    """How leaves of one depth behave; `is_regression` leaves have sums and sums of squares, not counts."""

    outputs: int
    is_regression: bool
    kind: int
    candidates: int
    split_after: float
    sparse: bool


class Split(NamedTuple):
    """A test, and the values of the two new leaves."""

    test: Test
    left: list[float]
    right: list[float]


class LeafStatistics:
    """The candidates of one leaf; `totals` and each of `lefts` are a row [outputs], of numbers two rows."""

    def __init__(self, rules: Rules, depth: int) -> None:
        self.depth = depth
        self._rules = rules
        self.clear()

    def clear(self) -> None:
        """Forgets all examples."""
        rows = 2 if self._rules.is_regression else 1
        self._shape = (rows, self._rules.outputs)
        self._tests: list[Test] = []
        self._lefts = np.zeros((0, *self._shape), np.float32)
        self._left_weights = np.zeros(0, np.float32)
        self._totals = np.zeros(self._shape, np.float32)
        self._weight = np.float32(0)

    # ---- examples

    def add(
        self, examples: Examples, rows: Array, targets: Array, weights: Array, draws: np.random.RandomState
    ) -> int | None:
        """Takes the rows of a batch in; at which of them the leaf was ready to be split, None if at none.

        `targets` float32 [rows, outputs] are classes' indicators, or numbers.
        """
        ready = 0 if self.is_ready and len(rows) else None
        used = 0
        while used < len(rows) and not self._has_candidates:
            self._add_candidate(examples, int(rows[used]), draws)
            used += 1
        if used == len(rows):
            return ready
        rows, targets, weights = rows[used:], targets[used:], weights[used:]
        if self._rules.is_regression:
            counted, weights = np.stack([targets, targets * targets], 1), np.ones_like(weights)
        else:
            counted = (targets * weights[:, None])[:, None]
        passing = [test.passes(examples.column(test.feature, rows)) for test in self._tests]
        left = np.array(passing, np.float32)
        if ready is None:
            ready = self._ready_at(counted, weights, used)
        self._lefts += np.tensordot(left, counted, 1).astype(np.float32)
        self._left_weights += left @ weights
        self._totals += counted.sum(0)
        self._weight += weights.sum()
        return ready

    def _ready_at(self, counted: Array, weights: Array, used: int) -> int | None:
        """Which of the batch's rows makes the leaf ready; `used` rows came before these."""
        enough = self._weight + np.cumsum(weights) >= self._rules.split_after
        if not self._rules.is_regression:
            seen = (self._totals + np.cumsum(counted, 0))[:, 0] > 0
            enough &= seen.sum(1) > 1
        at = np.flatnonzero(enough)
        return used + int(at[0]) if len(at) else None

    @property
    def _has_candidates(self) -> bool:
        return bool(self._weight > 0) or len(self._tests) == self._rules.candidates

    def _add_candidate(self, examples: Examples, row: int, draws: np.random.RandomState) -> None:
        feature = examples.draw_feature(row, draws)
        if feature is None:
            return
        kind = EQUAL if examples.is_category(feature) else self._rules.kind
        self._put_candidate(Test(feature, kind, float(examples.column(feature, np.array([row]))[0])))

    def _put_candidate(self, test: Test) -> None:
        self._tests.append(test)
        self._lefts = np.concatenate([self._lefts, np.zeros((1, *self._shape), np.float32)])
        self._left_weights = np.append(self._left_weights, np.float32(0))

    # ---- splitting

    @property
    def is_ready(self) -> bool:
        """Whether the leaf has counted enough."""
        enough = bool(self._weight >= self._rules.split_after)
        return enough and (self._rules.is_regression or int(np.count_nonzero(self._totals)) > 1)

    def best_split(self) -> Split | None:
        """The best of the candidates that part the examples, the first of equals; None if none does."""
        lefts, rights = self._lefts, self._totals - self._lefts
        if self._rules.is_regression:
            left_weights, right_weights = self._left_weights, self._weight - self._left_weights
        else:
            left_weights, right_weights = lefts.sum((1, 2)), rights.sum((1, 2))
        parting = np.flatnonzero((left_weights > 0) & (right_weights > 0))
        if not len(parting):
            return None
        lefts, rights = lefts[parting], rights[parting]
        left_weights, right_weights = left_weights[parting], right_weights[parting]
        score = _variance if self._rules.is_regression else _gini
        best = int(np.argmin(score(lefts, left_weights) + score(rights, right_weights)))
        left, right = lefts[best, 0], rights[best, 0]
        if self._rules.is_regression:
            left, right = left / left_weights[best], right / right_weights[best]
        return Split(self._tests[parting[best]], left.tolist(), right.tolist())

    # ---- messages

    def write(self, node: int, message: Any) -> None:
        """Fills the message FertileSlot."""
        message.node_id, message.depth = node, self.depth
        self._write_part(self._totals, float(self._weight), message.post_init_leaf_stats)
        for test, left, weight in zip(self._tests, self._lefts, self._left_weights, strict=True):
            candidate = message.candidates.add()
            test_message(test, candidate.split)
            self._write_part(left, float(weight) * self._rules.is_regression, candidate.left_stats)

    def _write_part(self, values: Array, weight: float, message: Any) -> None:
        message.weight_sum = weight
        if self._rules.is_regression:
            set_vector(message.regression.mean_output, values[0].tolist())
            set_vector(message.regression.mean_output_squares, values[1].tolist())
        elif self._rules.sparse:
            message.classification.sparse_counts.SetInParent()
            for at, value in enumerate(values[0].tolist()):
                if value:
                    message.classification.sparse_counts.sparse_value[at].float_value = value
        else:
            set_vector(message.classification.dense_counts, values[0].tolist())

    def read(self, message: Any) -> None:
        """Becomes what the message FertileSlot holds."""
        self.clear()
        self._weight = np.float32(message.post_init_leaf_stats.weight_sum)
        self._totals = self._read_part(message.post_init_leaf_stats)
        for candidate in message.candidates:
            self._put_candidate(read_test(candidate.split))
            self._lefts[-1] = self._read_part(candidate.left_stats)
            self._left_weights[-1] = candidate.left_stats.weight_sum

    def _read_part(self, message: Any) -> Array:
        if self._rules.is_regression:
            parts = (message.regression.mean_output, message.regression.mean_output_squares)
            rows = [[each.float_value for each in part.value] for part in parts]
        elif message.classification.HasField("sparse_counts"):
            entries = message.classification.sparse_counts.sparse_value
            row = [entries[at].float_value if at in entries else 0.0 for at in range(self._rules.outputs)]
            rows = [row]
        else:
            rows = [[each.float_value for each in message.classification.dense_counts.value]]
        found = np.zeros(self._shape, np.float32)
        for at, row in enumerate(rows):
            found[at, : len(row)] = row
        return found


def _gini(counts: Array, weights: Array) -> Array:
    """The smoothed Gini impurity of counts [candidates, 1, classes], times the examples: [candidates]."""
    counts = counts[:, 0] + np.float32(1)
    sums = counts.sum(1)
    return np.asarray(weights * (1 - np.square(counts).sum(1) / np.square(sums)))


def _variance(sums: Array, weights: Array) -> Array:
    means = sums / weights[:, None, None]
    return np.asarray((means[:, 1] - np.square(means[:, 0])).sum(1))


def read_statistics(serialized: bytes, rules_of: Any) -> dict[int, LeafStatistics]:
    """The leaves of a serialized message FertileStats; `rules_of(depth)` are the Rules."""
    from flowstone.io.proto import fertile_stats_pb2

    found: dict[int, LeafStatistics] = {}
    for slot in fertile_stats_pb2.FertileStats.FromString(serialized).node_to_slot:
        found[slot.node_id] = LeafStatistics(rules_of(slot.depth), slot.depth)
        found[slot.node_id].read(slot)
    return found


def serialize_statistics(leaves: dict[int, LeafStatistics], nodes: Sequence[int]) -> bytes:
    """The message FertileStats of these nodes."""
    from flowstone.io.proto import fertile_stats_pb2

    message = fertile_stats_pb2.FertileStats()
    for node in nodes:
        leaves[node].write(node, message.node_to_slot.add())
    return bytes(message.SerializeToString())
