"""Metrics that are means over all values seen: of values, of errors, of what is right or below a bound."""

from __future__ import annotations

from typing import Any

from flowstone.framework.graphs.graph_functions import control_dependencies
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.layers.label_shapes import remove_squeezable_dimensions
from flowstone.layers.metrics.state import (
    Names,
    aligned,
    gathered,
    metric_variable,
    published,
    safe_ratio,
    with_fitting_weights,
)
from flowstone.layers.weights_broadcast import broadcast_weights
from flowstone.ops.arrays.choice import where
from flowstone.ops.arrays.constants import ones_like, zeros_like
from flowstone.ops.arrays.shapes import size
from flowstone.ops.numbers.arithmetic import abs, multiply, squared_difference, subtract
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.comparisons import equal, less
from flowstone.ops.numbers.division import div
from flowstone.ops.numbers.functions import sqrt
from flowstone.ops.numbers.reductions import reduce_sum
from flowstone.ops.variables.assignments import assign_add
from flowstone.ops.variables.variable_scope import variable_scope

__all__ = [
    "accuracy",
    "mean",
    "mean_absolute_error",
    "mean_cosine_distance",
    "mean_relative_error",
    "mean_squared_error",
    "mean_tensor",
    "percentage_below",
    "root_mean_squared_error",
]


def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The weighted mean of all elements of `values`: scalars. Variables: ``total`` and ``count``."""
    with variable_scope(name, "mean", (values, weights)):
        values = cast(values, dtypes.float32)
        total = metric_variable([], name="total")
        count = metric_variable([], name="count")
        if weights is None:
            number = cast(size(values), dtypes.float32)
        else:
            values, weights = with_fitting_weights(values, weights)
            weights = broadcast_weights(cast(weights, dtypes.float32), values)
            values = multiply(values, weights)
            number = reduce_sum(weights)
        new_total = assign_add(total, reduce_sum(values))
        with control_dependencies([values]):
            new_count = assign_add(count, number)
        value = safe_ratio(gathered(total), gathered(count), "value")
        update_op = safe_ratio(new_total, new_count, "update_op")
        return published(value, update_op, metrics_collections, updates_collections)


def mean_tensor(
    values: Any,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The weighted mean of each element of `values`, whose shape is known and the result's.

    Variables: ``total_tensor`` and ``count_tensor``, of that shape.
    """
    with variable_scope(name, "mean", (values, weights)):
        values = cast(values, dtypes.float32)
        total = metric_variable(values.shape, name="total_tensor")
        count = metric_variable(values.shape, name="count_tensor")
        number = ones_like(values)
        if weights is not None:
            values, weights = with_fitting_weights(values, weights)
            weights = broadcast_weights(cast(weights, dtypes.float32), values)
            values = multiply(values, weights)
            number = multiply(number, weights)
        new_total = assign_add(total, values)
        with control_dependencies([values]):
            new_count = assign_add(count, number)
        value = safe_ratio(gathered(total), gathered(count), "value")
        update_op = safe_ratio(new_total, new_count, "update_op")
        return published(value, update_op, metrics_collections, updates_collections)


def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How often `predictions` equal `labels`, of one shape: scalars. Predictions get the labels' type."""
    predictions, labels, weights = aligned(predictions, labels, weights)
    if labels.dtype is not predictions.dtype:
        predictions = cast(predictions, labels.dtype)
    is_correct = cast(equal(predictions, labels), dtypes.float32)
    return mean(is_correct, weights, metrics_collections, updates_collections, name or "accuracy")


def percentage_below(
    values: Any,
    threshold: Any,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The fraction of `values` that are less than `threshold`: scalars."""
    is_below = cast(less(values, threshold), dtypes.float32)
    name = name or "percentage_below_threshold"
    return mean(is_below, weights, metrics_collections, updates_collections, name)


# ---- errors


def mean_absolute_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean of |predictions - labels|: scalars."""
    predictions, labels, weights = aligned(predictions, labels, weights)
    errors = abs(predictions - labels)
    return mean(errors, weights, metrics_collections, updates_collections, name or "mean_absolute_error")


def mean_relative_error(
    labels: Any,
    predictions: Any,
    normalizer: Any,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean of |labels - predictions| / normalizer, of one shape; 0 where the normalizer is: scalars."""
    predictions, labels, weights = aligned(predictions, labels, weights)
    normalizer, predictions = remove_squeezable_dimensions(normalizer, predictions)
    predictions.shape.assert_is_compatible_with(normalizer.shape)
    errors = where(equal(normalizer, 0.0), zeros_like(labels), div(abs(labels - predictions), normalizer))
    return mean(errors, weights, metrics_collections, updates_collections, name or "mean_relative_error")


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean of the square of predictions - labels: scalars."""
    predictions, labels, weights = aligned(predictions, labels, weights)
    errors = squared_difference(labels, predictions)
    return mean(errors, weights, metrics_collections, updates_collections, name or "mean_squared_error")


def root_mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The square root of `mean_squared_error`: scalars."""
    predictions, labels, weights = aligned(predictions, labels, weights)
    value, update_op = mean_squared_error(
        labels, predictions, weights, None, None, name or "root_mean_squared_error"
    )
    return published(sqrt(value), sqrt(update_op), metrics_collections, updates_collections)


def mean_cosine_distance(
    labels: Any,
    predictions: Any,
    dim: int,
    weights: Any = None,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """1 - the mean inner product of unit vectors along dimension `dim`: scalars.

    `weights` have size 1 in that dimension.
    """
    predictions, labels, weights = aligned(predictions, labels, weights)
    products = reduce_sum(multiply(predictions, labels), axis=[dim], keepdims=True)
    value, update_op = mean(products, weights, None, None, name or "mean_cosine_distance")
    return published(subtract(1.0, value), subtract(1.0, update_op), metrics_collections, updates_collections)
