"""Losses of examples of `tf.keras.losses` whose nodes, or types of labels, are others than the package's.

Each takes labels and predictions of the same shape, or what converts to them, and gives a number for each
example; labels get the predictions' type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.keras.published import own

__all__ = ["FUNCTIONS"]


def _both(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    y_pred = tf.convert_to_tensor(y_pred)
    return tf.cast(y_true, y_pred.dtype.base_dtype), y_pred


def mean_squared_error(y_true: Any, y_pred: Any) -> Any:
    """The mean of the squared differences along the last axis."""
    y_true, y_pred = _both(y_true, y_pred)
    return tf.reduce_mean(tf.squared_difference(y_pred, y_true), -1)


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Any:
    """The mean of the squared differences of log(1 + y) along the last axis."""
    y_true, y_pred = _both(y_true, y_pred)
    backend = own("backend")
    of_pred, of_true = (tf.log(backend.clip(y, backend.epsilon(), None) + 1.0) for y in (y_pred, y_true))
    return tf.reduce_mean(tf.squared_difference(of_pred, of_true), -1)


def _signs(y_true: Any) -> Any:
    """Labels of 0 and 1 as -1 and 1; others as they are."""
    is_binary = tf.reduce_all(tf.logical_or(tf.equal(y_true, 0), tf.equal(y_true, 1)))
    return tf.cond(is_binary, lambda: 2.0 * y_true - 1.0, lambda: y_true)


def _margin(y_true: Any, y_pred: Any) -> Any:
    y_true, y_pred = _both(y_true, y_pred)
    return tf.maximum(1.0 - _signs(y_true) * y_pred, 0.0)


def hinge(y_true: Any, y_pred: Any) -> Any:
    """The mean of max(1 - y_true · y_pred, 0) along the last axis."""
    return tf.reduce_mean(_margin(y_true, y_pred), -1)


def squared_hinge(y_true: Any, y_pred: Any) -> Any:
    """The mean of max(1 - y_true · y_pred, 0)² along the last axis."""
    return tf.reduce_mean(tf.square(_margin(y_true, y_pred)), -1)


def huber_loss(y_true: Any, y_pred: Any, delta: float = 1.0) -> Any:
    """Half the squares of the differences up to `delta`, and beyond it `delta` times what is left."""
    y_true, y_pred = (tf.cast(y, tf.keras.backend.floatx()) for y in (y_true, y_pred))
    sizes = tf.abs(tf.subtract(y_pred, y_true))
    small = tf.minimum(sizes, delta)
    rest = tf.subtract(sizes, small)
    half = tf.convert_to_tensor(0.5, small.dtype)
    return tf.add(tf.multiply(half, tf.multiply(small, small)), tf.multiply(delta, rest))


def _smoothed(y_true: Any, label_smoothing: Any, rest: Callable[[Any], Any]) -> Any:
    """The labels times 1 - label_smoothing, plus the rest of it; the labels where it is 0."""
    smoothing = tf.convert_to_tensor(label_smoothing, tf.keras.backend.floatx())

    def smooth() -> Any:
        return rest(smoothing)

    known = label_smoothing if isinstance(label_smoothing, (int, float)) else None
    if known is None:
        return tf.cond(tf.cast(smoothing, tf.bool), smooth, lambda: y_true)
    return smooth() if known else y_true


def categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: Any = 0
) -> Any:
    """The cross entropies of distributions along the last axis."""
    y_true, y_pred = _both(y_true, y_pred)

    def rest(smoothing: Any) -> Any:
        count = tf.cast(tf.shape(y_true)[1], y_pred.dtype)
        return y_true * (1.0 - smoothing) + smoothing / count

    y_true = _smoothed(y_true, label_smoothing, rest)
    return own("backend").categorical_crossentropy(y_true, y_pred, from_logits=from_logits)


def binary_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: Any = 0) -> Any:
    """The mean of the cross entropies of probabilities along the last axis."""
    y_true, y_pred = _both(y_true, y_pred)
    y_true = _smoothed(y_true, label_smoothing, lambda s: y_true * (1.0 - s) + 0.5 * s)
    return tf.reduce_mean(own("backend").binary_crossentropy(y_true, y_pred, from_logits=from_logits), -1)


FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "mean_squared_error": (mean_squared_error, "mse MSE"),
    "mean_squared_logarithmic_error": (mean_squared_logarithmic_error, "msle MSLE"),
    "hinge": (hinge, ""),
    "squared_hinge": (squared_hinge, ""),
    "huber_loss": (huber_loss, ""),
    "categorical_crossentropy": (categorical_crossentropy, ""),
    "binary_crossentropy": (binary_crossentropy, ""),
}
"""The functions by name, with their other names."""
