"""Categorical columns of `tf.contrib.layers`: hashes, integers, keys, vocabularies, weights; one-hot ones."""

from __future__ import annotations

from abc import abstractmethod
from collections import namedtuple
from typing import Any

import flowstone as tf
from flowstone.contrib.layers.column_interface import (
    _CategoricalOfBoth,
    _DenseOfBoth,
    inner_flatten,
)
from flowstone.layers.feature_columns.transformation import (
    _to_sparse_input_and_drop_ignore_values as as_sparse,
)
from flowstone.ops.lookup.vocabularies import index_table_from_file, index_table_from_tensor

__all__ = [
    "_OneHotColumn",
    "_SparseColumn",
    "_SparseColumnHashed",
    "_SparseColumnIntegerized",
    "_SparseColumnKeys",
    "_SparseColumnVocabulary",
    "_SparseIdLookupConfig",
    "_WeightedSparseColumn",
    "one_hot_column",
    "sparse_column_with_hash_bucket",
    "sparse_column_with_integerized_feature",
    "sparse_column_with_keys",
    "sparse_column_with_vocabulary_file",
    "weighted_sparse_column",
]

_SparseIdLookupConfig = namedtuple(
    "_SparseIdLookupConfig",
    ["vocabulary_file", "keys", "num_oov_buckets", "vocab_size", "default_value"],
    defaults=[None, None, 0, None, -1],
)


class _SparseColumn(
    _CategoricalOfBoth,
    namedtuple(
        "_SparseColumn",
        ["column_name", "is_integerized", "bucket_size", "lookup_config", "combiner", "dtype"],
    ),
):
    """A categorical column of one feature."""

    def __new__(
        cls,
        column_name: str,
        is_integerized: bool = False,
        bucket_size: int | None = None,
        lookup_config: Any = None,
        combiner: str = "sum",
        dtype: Any = tf.string,
    ) -> _SparseColumn:
        if is_integerized and bucket_size is None:
            raise ValueError(f"bucket_size must be set if is_integerized is True. column_name: {column_name}")
        if is_integerized and not dtype.is_integer:
            raise ValueError(
                f"dtype must be an integer if is_integerized is True. dtype: {dtype}, "
                f"column_name: {column_name}."
            )
        if dtype != tf.string and not dtype.is_integer:
            raise ValueError(f"dtype must be string or integer. dtype: {dtype}, column_name: {column_name}")
        if bucket_size is None and lookup_config is None:
            raise ValueError(f"one of bucket_size or lookup_config must be set. column_name: {column_name}")
        if bucket_size is not None and bucket_size < 1:
            raise ValueError(
                f"bucket_size must be at least 1. bucket_size: {bucket_size}, column_name: {column_name}"
            )
        fields = (column_name, is_integerized, bucket_size, lookup_config, combiner, dtype)
        return super().__new__(cls, *fields)

    @property
    def name(self) -> str:
        return str(self.column_name)

    @property
    def length(self) -> int:  # type: ignore[override]
        """How many ids there are."""
        if self.lookup_config is None:
            return int(self.bucket_size)
        return int(self.lookup_config.vocab_size) + int(self.lookup_config.num_oov_buckets)

    @property
    def config(self) -> dict[str, Any]:
        return {self.column_name: tf.VarLenFeature(self.dtype)}

    def id_tensor(self, input_tensor: Any) -> Any:
        return input_tensor

    def _to_dnn_input_layer(self, *arguments: Any, **options: Any) -> Any:
        raise ValueError(
            "SparseColumn is not supported in DNN. Please use embedding_column or one_hot_column. "
            f"column: {self}"
        )

    def is_compatible(self, other_column: Any) -> bool:
        """Whether both columns make the same ids of the same values."""
        if self.lookup_config is not None:
            return bool(self.lookup_config == other_column.lookup_config)
        return bool(self.length == other_column.length)

    @abstractmethod
    def _do_transform(self, input_tensor: Any) -> Any:
        """The ids of a SparseTensor of values."""

    def insert_transformed_feature(self, columns_to_tensors: dict[Any, Any]) -> None:
        columns_to_tensors[self] = self._do_transform(as_sparse(columns_to_tensors[self.column_name]))


class _SparseColumnIntegerized(_SparseColumn):
    """Integers modulo the number of ids."""

    def _do_transform(self, input_tensor: Any) -> Any:
        ids = tf.mod(input_tensor.values, self.bucket_size, name="mod")
        return tf.SparseTensor(input_tensor.indices, ids, input_tensor.dense_shape)


class _SparseColumnHashed(_SparseColumn):
    """Hashes of strings, or of integers as text."""

    def _do_transform(self, input_tensor: Any) -> Any:
        values = tf.as_string(input_tensor.values) if self.dtype.is_integer else input_tensor.values
        ids = tf.string_to_hash_bucket_fast(values, self.bucket_size, name="lookup")
        return tf.SparseTensor(input_tensor.indices, ids, input_tensor.dense_shape)


class _SparseColumnKeys(_SparseColumn):
    """Places in a tuple of keys."""

    def _do_transform(self, input_tensor: Any) -> Any:
        table = index_table_from_tensor(
            self.lookup_config.keys,
            default_value=self.lookup_config.default_value,
            dtype=self.dtype,
            name="lookup",
        )
        return table.lookup(input_tensor)


class _SparseColumnVocabulary(_SparseColumn):
    """Places among the lines of a file."""

    def _do_transform(self, input_tensor: Any) -> Any:
        table = index_table_from_file(
            vocabulary_file=self.lookup_config.vocabulary_file,
            num_oov_buckets=self.lookup_config.num_oov_buckets,
            vocab_size=self.lookup_config.vocab_size,
            default_value=self.lookup_config.default_value,
            key_dtype=self.dtype,
            name=f"{self.name}_lookup",
        )
        return table.lookup(input_tensor)


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: tf.DType = tf.int64
) -> _SparseColumn:
    """A column whose ids are the feature's integers, modulo `bucket_size`.

    `combiner` is how a linear model combines the weights of an example's ids: "sum", "mean" or "sqrtn".
    Raises ValueError for a size below 1, and a type that is no integer's.
    """
    return _SparseColumnIntegerized(column_name, True, bucket_size, combiner=combiner, dtype=dtype)


def sparse_column_with_hash_bucket(
    column_name: str, hash_bucket_size: int, combiner: str = "sum", dtype: tf.DType = tf.string
) -> _SparseColumn:
    """A column whose ids are hashes of the feature's strings, or of its integers as text.

    Raises ValueError for fewer than one bucket, and another type.
    """
    return _SparseColumnHashed(column_name, bucket_size=hash_bucket_size, combiner=combiner, dtype=dtype)


def sparse_column_with_keys(
    column_name: str, keys: Any, default_value: int = -1, combiner: str = "sum", dtype: tf.DType = tf.string
) -> _SparseColumn:
    """A column whose ids are places in `keys`, strings or integers; `default_value` for other values."""
    keys = tuple(keys)
    config = _SparseIdLookupConfig(keys=keys, vocab_size=len(keys), default_value=default_value)
    return _SparseColumnKeys(column_name, lookup_config=config, combiner=combiner, dtype=dtype)


def sparse_column_with_vocabulary_file(
    column_name: str,
    vocabulary_file: str,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    combiner: str = "sum",
    dtype: tf.DType = tf.string,
) -> _SparseColumn:
    """A column whose ids are places among the first `vocab_size` lines of a file.

    Other values are hashed to `num_oov_buckets` further ids, or have the id `default_value`. Raises
    ValueError without a size.
    """
    if vocab_size is None:
        raise ValueError(f"vocab_size should be defined. column_name: {column_name}")
    config = _SparseIdLookupConfig(vocabulary_file, None, num_oov_buckets, vocab_size, default_value)
    return _SparseColumnVocabulary(column_name, lookup_config=config, combiner=combiner, dtype=dtype)


# ---- weights


class _WeightedSparseColumn(
    _CategoricalOfBoth,
    namedtuple("_WeightedSparseColumn", ["sparse_id_column", "weight_column_name", "dtype"]),
):
    """Ids, each with a weight."""

    @property
    def name(self) -> str:
        return f"{self.sparse_id_column.name}_weighted_by_{self.weight_column_name}"

    @property
    def length(self) -> int:  # type: ignore[override]
        """How many ids there are."""
        return int(self.sparse_id_column.length)

    @property
    def combiner(self) -> str:
        """That of the ids."""
        return str(self.sparse_id_column.combiner)

    @property
    def lookup_config(self) -> Any:
        """That of the ids."""
        return self.sparse_id_column.lookup_config

    def is_compatible(self, other_column: Any) -> bool:
        """Whether both columns make the same ids of the same values."""
        return bool(self.sparse_id_column.is_compatible(other_column))

    @property
    def config(self) -> dict[str, Any]:
        return {**self.sparse_id_column.config, self.weight_column_name: tf.VarLenFeature(self.dtype)}

    def id_tensor(self, input_tensor: Any) -> Any:
        return input_tensor[0]

    def weight_tensor(self, input_tensor: Any) -> Any:
        return input_tensor[1]

    def _to_dnn_input_layer(self, *arguments: Any, **options: Any) -> Any:
        raise ValueError(
            "WeightedSparseColumn is not supported in DNN. Please use embedding_column or one_hot_column. "
            f"column: {self}"
        )

    def insert_transformed_feature(self, columns_to_tensors: dict[Any, Any]) -> None:
        weights = columns_to_tensors[self.weight_column_name]
        if not isinstance(weights, tf.SparseTensor):
            weights = as_sparse(weights, ignore_value=0)
        if not self.dtype.is_floating:
            weights = tf.cast(weights, tf.float32)
        columns_to_tensors[self] = (columns_to_tensors[self.sparse_id_column], weights)


def weighted_sparse_column(
    sparse_id_column: _SparseColumn, weight_column_name: str, dtype: tf.DType = tf.float32
) -> _WeightedSparseColumn:
    """A column of the ids of another one, with weights from the feature `weight_column_name`.

    Raises ValueError for a type that is not numeric.
    """
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype is not convertible to float. Given {dtype}")
    return _WeightedSparseColumn(sparse_id_column, weight_column_name, dtype)


# ---- one-hot


class _OneHotColumn(_DenseOfBoth, namedtuple("_OneHotColumn", ["sparse_id_column"])):
    """How often each id is there."""

    @property
    def name(self) -> str:
        return f"{self.sparse_id_column.name}_one_hot"

    @property
    def length(self) -> int:
        """How many ids there are."""
        return int(self.sparse_id_column.length)

    @property
    def config(self) -> dict[str, Any]:
        return dict(self.sparse_id_column.config)

    def insert_transformed_feature(self, columns_to_tensors: dict[Any, Any]) -> None:
        columns_to_tensors[self] = columns_to_tensors[self.sparse_id_column]

    def _to_dnn_input_layer(
        self,
        input_tensor: Any,
        weight_collections: Any = None,
        trainable: bool = True,
        output_rank: int = 2,
    ) -> Any:
        ids = inner_flatten(self.sparse_id_column.id_tensor(input_tensor), output_rank)
        weights = self.sparse_id_column.weight_tensor(input_tensor)
        if weights is not None:
            merged = tf.sparse_merge(ids, inner_flatten(weights, output_rank), self.length)
            return tf.sparse_tensor_to_dense(merged)
        dense = tf.sparse_tensor_to_dense(ids, default_value=-1)
        found = tf.one_hot(dense, depth=self.length, on_value=1.0, off_value=0.0)
        return tf.reduce_sum(found, axis=[output_rank - 1])

    @property
    def _variable_shape(self) -> tf.TensorShape:
        return tf.TensorShape([self.length])


def one_hot_column(sparse_id_column: Any) -> _OneHotColumn:
    """A dense column of a sparse one: for each id how often an example has it, or the sum of its weights."""
    return _OneHotColumn(sparse_id_column)
