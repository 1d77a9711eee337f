"""The heads of canned estimators, under the names of TensorFlow's module `canned.head`."""

from __future__ import annotations

from typing import Any

from flowstone.estimator.head.base_head import Head, LossSpec
from flowstone.estimator.head.binary_class_head import BinaryClassHead
from flowstone.estimator.head.multi_class_head import MultiClassHead
from flowstone.estimator.head.regression_head import RegressionHead

__all__ = ["LossSpec", "classification_head"]

_SUM = "weighted_sum"
_Head = Head


def _binary_logistic_head_with_sigmoid_cross_entropy_loss(
    weight_column: Any = None,
    thresholds: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = _SUM,
    loss_fn: Any = None,
    name: str | None = None,
) -> BinaryClassHead:
    """A head of two classes, whose losses are summed."""
    return BinaryClassHead(weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name)


def _multi_class_head_with_softmax_cross_entropy_loss(
    n_classes: int,
    weight_column: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = _SUM,
    loss_fn: Any = None,
    name: str | None = None,
) -> MultiClassHead:
    """A head of several classes, whose losses are summed."""
    return MultiClassHead(n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name)


def _regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = _SUM,
    loss_fn: Any = None,
    inverse_link_fn: Any = None,
    name: str | None = None,
) -> RegressionHead:
    """A head of regression, whose losses are summed."""
    return RegressionHead(label_dimension, weight_column, loss_reduction, loss_fn, inverse_link_fn, name)


_regression_head_with_mean_squared_error_loss = _regression_head


def classification_head(
    n_classes: int, weight_column: Any = None, label_vocabulary: Any = None, loss_reduction: str = _SUM
) -> Head:
    """A head of two or more classes; ValueError for fewer."""
    if n_classes < 2:
        raise ValueError(f"Invalid n_classes: {n_classes}. n_classes must be >= 2")
    if n_classes == 2:
        return BinaryClassHead(weight_column, None, label_vocabulary, loss_reduction)
    return MultiClassHead(n_classes, weight_column, label_vocabulary, loss_reduction)


_binary_logistic_or_multi_class_head = classification_head
