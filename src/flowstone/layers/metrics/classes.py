"""Metrics of classifications into several classes, each of which counts alike."""

from __future__ import annotations

from typing import Any

from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.layers.confusion_matrix import confusion_matrix
from flowstone.layers.metrics.state import Names, gathered, metric_variable, published, safe_ratio
from flowstone.ops.algebra.diagonals import diag_part
from flowstone.ops.arrays.choice import where
from flowstone.ops.arrays.constants import ones, ones_like
from flowstone.ops.arrays.shapes import reshape, size
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.comparisons import equal, greater, not_equal
from flowstone.ops.numbers.division import div
from flowstone.ops.numbers.reductions import reduce_mean, reduce_sum
from flowstone.ops.variables.assignments import assign_add, scatter_add
from flowstone.ops.variables.variable_scope import variable_scope

__all__ = ["mean_iou", "mean_per_class_accuracy"]


def _flat(x: Tensor) -> Tensor:
    return reshape(x, [-1]) if x.ndim is not None and x.ndim > 1 else x


def mean_iou(
    labels: Any,
    predictions: Any,
    num_classes: Any,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean over classes that occur of tp / (tp + fp + fn), their intersection over union: a scalar.

    `labels` and `predictions` are class numbers below `num_classes`. `update_op` returns the confusion matrix
    ``[num_classes, num_classes]`` of type float64, which is also the variable's, ``total_confusion_matrix``.
    """
    with variable_scope(name, "mean_iou", (predictions, labels, weights)):
        predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
        predictions.shape.assert_is_compatible_with(labels.shape)
        total, update_op = _streaming_confusion_matrix(labels, predictions, num_classes, weights)
        value = _mean_ratio(total)
        return published(value, update_op, metrics_collections, updates_collections)


def _streaming_confusion_matrix(
    labels: Tensor, predictions: Tensor, num_classes: Any, weights: Any
) -> tuple[Any, Any]:
    total = metric_variable([num_classes, num_classes], dtypes.float64, name="total_confusion_matrix")
    predictions, labels = cast(predictions, dtypes.int64), cast(labels, dtypes.int64)
    num_classes = cast(num_classes, dtypes.int64)
    predictions, labels = _flat(predictions), _flat(labels)
    if weights is not None:
        weights = _flat(convert_to_tensor(weights))
    batch = confusion_matrix(labels, predictions, num_classes, dtypes.float64, weights=weights)
    return gathered(total), assign_add(total, batch)


def _mean_ratio(total: Any) -> Tensor:
    """The mean ratio of diagonal elements to the sum of their row and column, of those that are not 0."""
    of_rows = cast(reduce_sum(total, 0), dtypes.float32)
    of_columns = cast(reduce_sum(total, 1), dtypes.float32)
    diagonal = cast(diag_part(total), dtypes.float32)
    union = of_rows + of_columns - diagonal
    number = reduce_sum(cast(not_equal(union, 0), dtypes.float32))
    union = where(greater(union, 0), union, ones_like(union))
    ratios = reduce_sum(div(diagonal, union), name="mean_iou")
    return where(greater(number, 0), ratios / number, 0)


def mean_per_class_accuracy(
    labels: Any,
    predictions: Any,
    num_classes: Any,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean over classes of how many of a class's labels are predicted: a scalar.

    `update_op` returns these accuracies, ``[num_classes]``. Variables of that shape: ``total`` and ``count``.
    """
    with variable_scope(name, "mean_accuracy", (predictions, labels, weights)):
        labels = cast(labels, dtypes.int64)
        predictions = convert_to_tensor(predictions)
        labels, predictions = _flat(labels), _flat(predictions)
        predictions.shape.assert_is_compatible_with(labels.shape)
        total = metric_variable([num_classes], name="total")
        count = metric_variable([num_classes], name="count")
        number = ones([size(labels)], dtypes.float32)
        if predictions.dtype != labels.dtype:
            predictions = cast(predictions, labels.dtype)
        is_correct = cast(equal(predictions, labels), dtypes.float32)
        if weights is not None:
            weights = cast(_flat(convert_to_tensor(weights)), dtypes.float32)
            is_correct *= weights
            number *= weights
        new_total = scatter_add(total, labels, number)
        new_count = scatter_add(count, labels, is_correct)
        per_class = safe_ratio(gathered(count), gathered(total), "div_no_nan")
        value = reduce_mean(per_class, name="mean_accuracy")
        update_op = safe_ratio(new_count, new_total, "update_op")
        return published(value, update_op, metrics_collections, updates_collections)
