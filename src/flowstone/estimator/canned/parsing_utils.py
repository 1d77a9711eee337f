"""How serialised Examples with features, label and weight are parsed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import flowstone as tf

__all__ = ["classifier_parse_example_spec", "regressor_parse_example_spec"]


def classifier_parse_example_spec(
    feature_columns: Iterable[Any], label_key: str, label_dtype: Any = tf.int64, label_default: Any = None,
    weight_column: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """The configuration with which `tf.parse_example` reads the examples of a classifier.

    Args:
        feature_columns: the columns; `label_key`: the label's name.
        label_dtype: the labels' type; `label_default`: where an example has none.
        weight_column: a key or a numeric column.

    Raises ValueError for a label or weight that is a feature, TypeError for other kinds of weights.
    """
    return _with_label(feature_columns, label_key, (1,), label_dtype, label_default, weight_column)


def regressor_parse_example_spec(
    feature_columns: Iterable[Any], label_key: str, label_dtype: Any = tf.float32, label_default: Any = None,
    label_dimension: int = 1, weight_column: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """As `classifier_parse_example_spec`, for a regressor, whose labels have `label_dimension` values."""
    return _with_label(
        feature_columns, label_key, (label_dimension,), label_dtype, label_default, weight_column
    )


def _with_label(
    columns: Iterable[Any], key: str, shape: tuple[int, ...], dtype: Any, default: Any, weight: Any
) -> dict[str, Any]:
    spec: dict[str, Any] = tf.feature_column.make_parse_example_spec(columns)
    if key in spec:
        raise ValueError(f"label should not be used as feature. label_key: {key}, features: {spec.keys()}")
    spec[key] = tf.FixedLenFeature(shape, dtype, default)
    if weight is None:
        return spec
    if isinstance(weight, str):
        weight = tf.feature_column.numeric_column(weight)
    if not hasattr(weight, "normalizer_fn"):
        raise ValueError(
            "weight_column should be an instance of tf.feature_column.numeric_column. Given type: "
            f"{type(weight)} value: {weight}"
        )
    if weight.key in spec:
        raise ValueError(
            f"weight_column should not be used as feature. weight_column: {weight.key}, features: "
            f"{spec.keys()}"
        )
    spec.update(tf.feature_column.make_parse_example_spec([weight]))
    return spec
