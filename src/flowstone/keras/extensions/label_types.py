"""Losses of mixed types: Keras 2.3's cast labels and weights; those that 2.2 makes do so by this."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import flowstone as tf
from flowstone.keras.published import own

__all__ = ["extend"]

_HALVES = (tf.float16, tf.bfloat16)


def _changed(published: Callable[..., Any]) -> Callable[..., Any]:
    def weighted_masked_objective(fn: Callable[..., Any] | None) -> Any:
        """The weighted mean of `fn`: of any labels, if `fn` is the package's own, and of halves as floats."""
        if fn is None:
            return None
        is_own = vars(own("losses")).get(getattr(fn, "__name__", "")) is fn

        def scores(y_true: Any, y_pred: Any) -> Any:
            labels = tf.cast(y_true, y_pred.dtype.base_dtype) if is_own else y_true
            values = fn(labels, y_pred)
            return tf.cast(values, tf.float32) if values.dtype.base_dtype in _HALVES else values

        return published(scores)

    return weighted_masked_objective


def extend(module: ModuleType) -> None:
    """Changes the function of `keras.engine.training_utils`, which Keras 2.2 has."""
    names = vars(module)
    if "weighted_masked_objective" in names:
        names["weighted_masked_objective"] = _changed(names["weighted_masked_objective"])
