"""Heads by functions, whose losses are means over the batch unless another reduction is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.estimator.head.base_head import Head
from flowstone.estimator.head.binary_class_head import BinaryClassHead
from flowstone.estimator.head.multi_class_head import MultiClassHead
from flowstone.estimator.head.multi_head import MultiHead
from flowstone.estimator.head.multi_label_head import MultiLabelHead
from flowstone.estimator.head.regression_head import (
    LogisticRegressionHead,
    PoissonRegressionHead,
    RegressionHead,
)

__all__ = [
    "binary_classification_head",
    "logistic_regression_head",
    "multi_class_head",
    "multi_head",
    "multi_label_head",
    "poisson_regression_head",
    "regression_head",
]

_MEAN = "weighted_sum_over_batch_size"


def binary_classification_head(
    weight_column: Any = None,
    thresholds: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = _MEAN,
    loss_fn: Any = None,
    name: str | None = None,
) -> BinaryClassHead:
    """A head of two classes; see `tf.estimator.BinaryClassHead`."""
    return BinaryClassHead(weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name)


def multi_class_head(
    n_classes: int,
    weight_column: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = _MEAN,
    loss_fn: Any = None,
    name: str | None = None,
) -> MultiClassHead:
    """A head of several classes; see `tf.estimator.MultiClassHead`."""
    return MultiClassHead(n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name)


def multi_label_head(
    n_classes: int,
    weight_column: Any = None,
    thresholds: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = _MEAN,
    loss_fn: Any = None,
    classes_for_class_based_metrics: Any = None,
    name: str | None = None,
) -> MultiLabelHead:
    """A head of any of several classes; see `tf.estimator.MultiLabelHead`."""
    return MultiLabelHead(
        n_classes,
        weight_column,
        thresholds,
        label_vocabulary,
        loss_reduction,
        loss_fn,
        classes_for_class_based_metrics,
        name,
    )


def multi_head(heads: Sequence[Head], head_weights: Sequence[float] | None = None) -> MultiHead:
    """Several heads over one network; see `tf.estimator.MultiHead`."""
    return MultiHead(heads, head_weights)


def regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = _MEAN,
    loss_fn: Any = None,
    inverse_link_fn: Any = None,
    name: str | None = None,
) -> RegressionHead:
    """A head of regression; see `tf.estimator.RegressionHead`."""
    return RegressionHead(label_dimension, weight_column, loss_reduction, loss_fn, inverse_link_fn, name)


def poisson_regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = _MEAN,
    compute_full_loss: bool = True,
    name: str | None = None,
) -> PoissonRegressionHead:
    """A head of counts; see `tf.estimator.PoissonRegressionHead`."""
    return PoissonRegressionHead(label_dimension, weight_column, loss_reduction, compute_full_loss, name)


def logistic_regression_head(
    weight_column: Any = None, loss_reduction: str = _MEAN, name: str | None = None
) -> LogisticRegressionHead:
    """A head of probabilities; see `tf.estimator.LogisticRegressionHead`."""
    return LogisticRegressionHead(weight_column, loss_reduction, name)
