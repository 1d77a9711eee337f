"""Counts at several thresholds: a prediction, between 0 and 1, is positive where it exceeds the threshold.

`counts_at` gathers them in variables of a value a threshold, of which precision, recall and the metrics of
`curves.py` are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.graphs.graph_functions import control_dependencies
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.layers.metrics.state import Names, aligned, gathered, metric_variable, published
from flowstone.layers.weights_broadcast import broadcast_weights
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.identities import identity
from flowstone.ops.arrays.packing import stack
from flowstone.ops.arrays.padding import tile
from flowstone.ops.arrays.rearranging import transpose
from flowstone.ops.arrays.shapes import expand_dims, reshape
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.control.checks import assert_greater_equal, assert_less_equal
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.comparisons import greater, logical_and, logical_not
from flowstone.ops.numbers.division import div
from flowstone.ops.numbers.reductions import reduce_sum
from flowstone.ops.variables.assignments import assign_add
from flowstone.ops.variables.variable_scope import variable_scope

__all__ = [
    "false_negatives_at_thresholds",
    "false_positives_at_thresholds",
    "precision_at_thresholds",
    "recall_at_thresholds",
    "true_negatives_at_thresholds",
    "true_positives_at_thresholds",
]

# Each count by its variable's name: whether it counts true labels, and positive predictions.
COUNTS = {
    "true_positives": (True, True),
    "false_negatives": (True, False),
    "true_negatives": (False, False),
    "false_positives": (False, True),
}
SMALL = 1e-7  # what keeps quotients of counts finite


def counts_at(
    thresholds: Sequence[float], labels: Any, predictions: Any, weights: Any, wanted: Sequence[str] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The variables, each ``[len(thresholds)]``, and their updates, of the `wanted` counts (default: all).

    InvalidArgumentError in the step for predictions outside [0, 1].
    """
    wanted = wanted or list(COUNTS)
    predictions, labels, weights = _checked(labels, predictions, weights)
    repeats = [len(thresholds), 1]
    column = reshape(predictions, [-1, 1])
    row = reshape(cast(labels, dtypes.bool), [1, -1])
    number = column.shape[0].value
    if number is None:
        number = shape_of(column)[0]
    bounds = tile(expand_dims(constant(thresholds), [1]), stack([1, number]))
    is_positive = greater(tile(transpose(column), repeats), bounds)
    is_negative = None
    if any(not COUNTS[name][1] for name in wanted):
        is_negative = logical_not(is_positive)
    is_true = tile(row, repeats)
    is_false = None
    if any(not COUNTS[name][0] for name in wanted):
        is_false = logical_not(is_true)
    if weights is not None:
        weights = broadcast_weights(cast(weights, dtypes.float32), predictions)
        weights = tile(reshape(weights, [1, -1]), repeats)
    values, updates = {}, {}
    for name in (each for each in COUNTS if each in wanted):
        label, prediction = COUNTS[name]
        variable = metric_variable([len(thresholds)], name=name)
        truths = is_true if label else is_false
        found = cast(logical_and(truths, is_positive if prediction else is_negative), dtypes.float32)
        if weights is not None:
            found *= weights
        updates[name] = assign_add(variable, reduce_sum(found, 1))
        values[name] = gathered(variable)
    return values, updates


def _checked(labels: Any, predictions: Any, weights: Any) -> tuple[Tensor, Tensor, Any]:
    predictions = convert_to_tensor(predictions)
    message = "predictions must be in [0, 1]"
    checks = [
        assert_greater_equal(predictions, cast(0.0, predictions.dtype), message=message),
        assert_less_equal(predictions, cast(1.0, predictions.dtype), message=message),
    ]
    with control_dependencies(checks):
        return aligned(cast(predictions, dtypes.float32), cast(labels, dtypes.bool), weights)


def _counted(
    count: str,
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any,
    metrics_collections: Names,
    updates_collections: Names,
    name: str | None,
) -> tuple[Tensor, Tensor]:
    with variable_scope(name, count, (predictions, labels, weights)):
        values, updates = counts_at(thresholds, labels, predictions, weights, [count])
        return published(identity(values[count]), updates[count], metrics_collections, updates_collections)


def true_positives_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How many predictions are rightly positive: ``[thresholds]``."""
    given = (labels, predictions, thresholds, weights, metrics_collections, updates_collections, name)
    return _counted("true_positives", *given)


def true_negatives_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How many predictions are rightly negative: ``[thresholds]``."""
    given = (labels, predictions, thresholds, weights, metrics_collections, updates_collections, name)
    return _counted("true_negatives", *given)


def false_positives_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How many predictions are positive though their labels are false: ``[thresholds]``."""
    given = (labels, predictions, thresholds, weights, metrics_collections, updates_collections, name)
    return _counted("false_positives", *given)


def false_negatives_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How many predictions are negative though their labels are true: ``[thresholds]``."""
    given = (labels, predictions, thresholds, weights, metrics_collections, updates_collections, name)
    return _counted("false_negatives", *given)


def _share_of_true_positives(
    kind: str,
    rest: str,
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any,
    metrics_collections: Names,
    updates_collections: Names,
    name: str | None,
) -> tuple[Tensor, Tensor]:
    """true positives / (true positives + the count `rest`)."""
    with variable_scope(name, f"{kind}_at_thresholds", (predictions, labels, weights)):
        values, updates = counts_at(thresholds, labels, predictions, weights, ["true_positives", rest])
        value, update_op = (
            div(found["true_positives"], SMALL + found["true_positives"] + found[rest], name=f"{kind}_{part}")
            for found, part in ((values, "value"), (updates, "update_op"))
        )
        return published(value, update_op, metrics_collections, updates_collections)


def precision_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How many of the positive predictions are right: ``[thresholds]``."""
    given = (labels, predictions, thresholds, weights, metrics_collections, updates_collections, name)
    return _share_of_true_positives("precision", "false_positives", *given)


def recall_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How many of the true labels are predicted: ``[thresholds]``."""
    given = (labels, predictions, thresholds, weights, metrics_collections, updates_collections, name)
    return _share_of_true_positives("recall", "false_negatives", *given)
