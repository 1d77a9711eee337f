"""The older feature columns of `tf.contrib.layers`, and what `tf.parse_example` has to read for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import flowstone as tf
from flowstone.contrib import lookup
from flowstone.contrib.framework import checkpoint_utils
from flowstone.contrib.layers import bucketization_op, embedding_ops, layers, sparse_feature_cross_op
from flowstone.contrib.layers.column_interface import _FeatureColumn
from flowstone.contrib.layers.embedding_columns import (
    _EmbeddingColumn,
    _ScatteredEmbeddingColumn,
    embedding_column,
    scattered_embedding_column,
    shared_embedding_columns,
)
from flowstone.contrib.layers.real_valued_columns import (
    _BucketizedColumn,
    _CrossedColumn,
    _RealValuedColumn,
    bucketized_column,
    crossed_column,
    real_valued_column,
)
from flowstone.contrib.layers.sparse_columns import (
    _OneHotColumn,
    _SparseColumn,
    _SparseColumnHashed,
    _SparseColumnIntegerized,
    _SparseColumnKeys,
    _SparseColumnVocabulary,
    _SparseIdLookupConfig,
    _WeightedSparseColumn,
    one_hot_column,
    sparse_column_with_hash_bucket,
    sparse_column_with_integerized_feature,
    sparse_column_with_keys,
    sparse_column_with_vocabulary_file,
    weighted_sparse_column,
)

__all__ = [
    "_BucketizedColumn",
    "_CrossedColumn",
    "_EmbeddingColumn",
    "_FeatureColumn",
    "_OneHotColumn",
    "_RealValuedColumn",
    "_ScatteredEmbeddingColumn",
    "_SparseColumn",
    "_SparseColumnHashed",
    "_SparseColumnIntegerized",
    "_SparseColumnKeys",
    "_SparseColumnVocabulary",
    "_SparseIdLookupConfig",
    "_WeightedSparseColumn",
    "bucketization_op",
    "bucketized_column",
    "checkpoint_utils",
    "create_feature_spec_for_parsing",
    "crossed_column",
    "embedding_column",
    "embedding_ops",
    "layers",
    "lookup",
    "make_place_holder_tensors_for_base_features",
    "one_hot_column",
    "real_valued_column",
    "scattered_embedding_column",
    "shared_embedding_columns",
    "sparse_column_with_hash_bucket",
    "sparse_column_with_integerized_feature",
    "sparse_column_with_keys",
    "sparse_column_with_vocabulary_file",
    "sparse_feature_cross_op",
    "weighted_sparse_column",
]


def create_feature_spec_for_parsing(feature_columns: Iterable[Any]) -> dict[str, Any]:
    """What `tf.parse_example` has to read for the columns: a dict from keys to features' configurations.

    Raises TypeError for what is no column.
    """
    found: dict[str, Any] = {}
    for column in feature_columns:
        if not isinstance(column, _FeatureColumn):
            raise TypeError(
                f"feature_columns should only contain instances of _FeatureColumn. Given column is {column}"
            )
        found.update(column.config)
    return found


def _create_sequence_feature_spec_for_parsing(
    sequence_feature_columns: Iterable[Any], allow_missing_by_default: bool = False
) -> dict[str, Any]:
    """The same for columns of steps: what has a fixed length in a step is a sequence of such."""
    found = {}
    for key, feature in create_feature_spec_for_parsing(sequence_feature_columns).items():
        if isinstance(feature, tf.FixedLenFeature):
            may_lack = allow_missing_by_default or feature.default_value is not None
            feature = tf.FixedLenSequenceFeature(feature.shape, feature.dtype, allow_missing=may_lack)
        found[key] = feature
    return found


def make_place_holder_tensors_for_base_features(feature_columns: Iterable[Any]) -> dict[str, Any]:
    """A placeholder for each feature that the columns read, by key: sparse, or [None, *shape]."""
    found: dict[str, Any] = {}
    for key, feature in create_feature_spec_for_parsing(feature_columns).items():
        name = f"Placeholder_{key}"
        if isinstance(feature, tf.VarLenFeature):
            found[key] = tf.sparse_placeholder(feature.dtype, name=name)
        else:
            found[key] = tf.placeholder(feature.dtype, [None, *feature.shape], name=name)
    return found
