"""`SparseFeatureColumn`: the entries of a sparse matrix of features."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["SparseFeatureColumn"]


class SparseFeatureColumn:
    """Entries of a matrix of examples and features.

    Args:
        example_indices: the example of each entry, int64 [entries], in order.
        feature_indices: its feature, int64 [entries].
        feature_values: its value, float32 [entries]; None: all are 1.
    """

    def __init__(self, example_indices: Any, feature_indices: Any, feature_values: Any) -> None:
        with tf.name_scope(None, "SparseFeatureColumn", [example_indices, feature_indices]):
            self._example_indices = tf.convert_to_tensor(
                example_indices, name="example_indices", dtype=tf.int64
            )
            self._feature_indices = tf.convert_to_tensor(
                feature_indices, name="feature_indices", dtype=tf.int64
            )
            self._feature_values = (
                None
                if feature_values is None
                else tf.convert_to_tensor(feature_values, name="feature_values", dtype=tf.float32)
            )

    @property
    def example_indices(self) -> Any:
        """The example of each entry, int64 [entries]."""
        return self._example_indices

    @property
    def feature_indices(self) -> Any:
        """The feature of each entry, int64 [entries]."""
        return self._feature_indices

    @property
    def feature_values(self) -> Any:
        """The value of each entry, float32 [entries], or None."""
        return self._feature_values
