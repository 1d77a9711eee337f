"""`confusion_matrix`, as `tf.confusion_matrix` with other places for two arguments."""

from __future__ import annotations

from typing import Any

import flowstone as tf


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: int | None = None,
    dtype: Any = tf.int32,
    name: str | None = None,
    weights: Any = None,
) -> Any:
    """How often each label (row) was predicted as each class (column); see `tf.confusion_matrix`."""
    return tf.confusion_matrix(
        labels=labels,
        predictions=predictions,
        num_classes=num_classes,
        dtype=dtype,
        name=name,
        weights=weights,
    )
