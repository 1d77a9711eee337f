"""The layer of sequence columns: a tensor [batch, steps, …] and the steps of each example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.layers.feature_columns import sequence
from flowstone.layers.feature_columns.column_lists import by_name, listed
from flowstone.layers.feature_columns.columns import (
    BothSequenceDenseColumn,
    _FeatureColumn,
    _SequenceDenseColumn,
)
from flowstone.layers.feature_columns.transformation import _LazyBuilder

__all__ = ["_SequenceNumericColumn", "sequence_input_layer", "sequence_numeric_column"]


class _SequenceNumericColumn(BothSequenceDenseColumn, sequence.SequenceNumericColumn):
    """The numbers of each step, for `sequence_input_layer`."""

    @property
    def _variable_shape(self) -> Any:
        return self.variable_shape


def sequence_numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: float = 0.0,
    dtype: tf.DType = tf.float32,
    normalizer_fn: Callable[[Any], Any] | None = None,
) -> _SequenceNumericColumn:
    """`tf.feature_column.sequence_numeric_column`, for `sequence_input_layer`."""
    column = sequence.sequence_numeric_column(key, shape, default_value, dtype, normalizer_fn)
    return _SequenceNumericColumn(*column)


def sequence_input_layer(
    features: Any, feature_columns: Any, weight_collections: Any = None, trainable: bool = True
) -> tuple[Any, Any]:
    """What sequence columns make of the features, side by side.

    Args:
        features: a dict from keys to SparseTensors [batch, steps, …].
        feature_columns: sequence columns of different names: numbers, embeddings or indicators.
        weight_collections: further collections for the embeddings' tables.
        trainable: whether these are.

    Returns:
        float32, [batch, steps, elements of all columns], in the order of the columns' names, and the steps of
        each example, int64, [batch]. A step fails with InvalidArgumentError if columns differ in those.

    Raises ValueError for another column, for none, and for two of a name.
    """
    columns = listed(feature_columns, _FeatureColumn, "_FeatureColumn")
    for column in columns:
        if not isinstance(column, _SequenceDenseColumn):
            raise ValueError(
                "All feature_columns must be of type _SequenceDenseColumn. You can wrap a "
                f"sequence_categorical_column with an embedding_column or indicator_column. Given (type "
                f"{type(column)}): {column}"
            )
    collections = list(weight_collections or [])
    if tf.GraphKeys.GLOBAL_VARIABLES not in collections:
        collections.append(tf.GraphKeys.GLOBAL_VARIABLES)
    with tf.variable_scope(None, default_name="sequence_input_layer", values=list(features.values())):
        builder, outputs, lengths = _LazyBuilder(features), [], []
        for column in by_name(columns):
            with tf.variable_scope(None, default_name=column._var_scope_name):
                dense, length = column._get_sequence_dense_tensor(
                    builder, weight_collections=collections, trainable=trainable
                )
                sizes = tf.shape(dense)
                elements = column._variable_shape.num_elements()
                outputs.append(tf.reshape(dense, tf.concat([sizes[:2], [elements]], axis=0)))
                lengths.append(length)
        return tf.concat(outputs, -1), sequence.all_equal(lengths)
