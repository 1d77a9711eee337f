"""Counts of right and wrong answers to yes-or-no questions, and precision and recall made of them.

Labels and predictions are cast to bool and have one shape.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.graphs.graph_functions import control_dependencies
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.layers.metrics.state import Names, aligned, gathered, metric_variable, published
from flowstone.ops.arrays.choice import where
from flowstone.ops.arrays.identities import identity
from flowstone.ops.arrays.shapes import rank
from flowstone.ops.control.checks import assert_rank_in
from flowstone.ops.control.type_checks import assert_type
from flowstone.ops.numbers.arithmetic import multiply
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.comparisons import equal, greater, logical_and
from flowstone.ops.numbers.division import div
from flowstone.ops.numbers.reductions import reduce_sum
from flowstone.ops.variables.assignments import assign_add
from flowstone.ops.variables.variable_scope import variable_scope

__all__ = [
    "false_negatives",
    "false_positives",
    "precision",
    "recall",
    "true_negatives",
    "true_positives",
]


def _aligned_truths(predictions: Any, labels: Any, weights: Any) -> tuple[Tensor, Tensor, Any]:
    return aligned(cast(predictions, dtypes.bool), cast(labels, dtypes.bool), weights)


def _counted(
    default_name: str,
    is_label: bool,
    is_prediction: bool,
    labels: Any,
    predictions: Any,
    weights: Any,
    metrics_collections: Names,
    updates_collections: Names,
    name: str | None,
) -> tuple[Tensor, Tensor]:
    """The metric that counts where labels and predictions are these truths."""
    with variable_scope(name, default_name, (predictions, labels, weights)):
        predictions, labels, weights = _aligned_truths(predictions, labels, weights)
        found = logical_and(equal(labels, is_label), equal(predictions, is_prediction))
        return _sum_of(found, weights, metrics_collections, updates_collections)


def _sum_of(
    found: Tensor, weights: Any, metrics_collections: Names, updates_collections: Names
) -> tuple[Tensor, Tensor]:
    assert_type(found, dtypes.bool)
    count = metric_variable([], name="count")
    values = cast(found, dtypes.float32)
    if weights is not None:
        with control_dependencies((assert_rank_in(weights, (0, rank(values))),)):
            values = multiply(values, cast(weights, dtypes.float32))
    value = identity(gathered(count))
    update_op = assign_add(count, reduce_sum(values))
    return published(value, update_op, metrics_collections, updates_collections)


def true_positives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How many predictions are rightly true: scalars."""
    given = (labels, predictions, weights, metrics_collections, updates_collections, name)
    return _counted("true_positives", True, True, *given)


def true_negatives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How many predictions are rightly false: scalars."""
    given = (labels, predictions, weights, metrics_collections, updates_collections, name)
    return _counted("true_negatives", False, False, *given)


def false_positives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How many predictions are true though their labels are false: scalars."""
    given = (labels, predictions, weights, metrics_collections, updates_collections, name)
    return _counted("false_positives", False, True, *given)


def false_negatives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How many predictions are false though their labels are true: scalars."""
    given = (labels, predictions, weights, metrics_collections, updates_collections, name)
    return _counted("false_negatives", True, False, *given)


def _share(part: Tensor, rest: Tensor, name: str) -> Tensor:
    """part / (part + rest), and 0 where both are."""
    return where(greater(part + rest, 0), div(part, part + rest), 0, name)


def precision(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How many of the predictions that are true are right: scalars, 0 where none is true."""
    with variable_scope(name, "precision", (predictions, labels, weights)):
        predictions, labels, weights = _aligned_truths(predictions, labels, weights)
        right, right_now = true_positives(labels, predictions, weights)
        wrong, wrong_now = false_positives(labels, predictions, weights)
        value, update_op = _share(right, wrong, "value"), _share(right_now, wrong_now, "update_op")
        return published(value, update_op, metrics_collections, updates_collections)


def recall(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How many of the labels that are true are predicted: scalars, 0 where none is true."""
    with variable_scope(name, "recall", (predictions, labels, weights)):
        predictions, labels, weights = _aligned_truths(predictions, labels, weights)
        found, found_now = true_positives(labels, predictions, weights)
        missed, missed_now = false_negatives(labels, predictions, weights)
        value, update_op = _share(found, missed, "value"), _share(found_now, missed_now, "update_op")
        return published(value, update_op, metrics_collections, updates_collections)
