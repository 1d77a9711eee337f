"""Columns of numbers in `tf.contrib.layers`, of their intervals, and crosses of categorical columns."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import flowstone as tf
from flowstone.contrib.layers.bucketization_op import bucketize
from flowstone.contrib.layers.column_interface import _CategoricalOfBoth, _DenseOfBoth, inner_flatten
from flowstone.contrib.layers.sparse_columns import _SparseColumn
from flowstone.contrib.layers.sparse_feature_cross_op import sparse_feature_cross

__all__ = [
    "_BucketizedColumn",
    "_CrossedColumn",
    "_RealValuedColumn",
    "bucketized_column",
    "crossed_column",
    "real_valued_column",
]

# ---- numbers


class _RealValuedColumn(
    _DenseOfBoth,
    namedtuple("_RealValuedColumn", ["column_name", "dimension", "default_value", "dtype", "normalizer"]),
):
    """The numbers of a feature."""

    @property
    def name(self) -> str:
        return str(self.column_name)

    @property
    def config(self) -> dict[str, Any]:
        default = None if self.default_value is None else list(self.default_value)
        return {self.column_name: tf.FixedLenFeature([self.dimension], self.dtype, default)}

    @property
    def key(self) -> str:
        """The column as text, without the normaliser."""
        return self._key_without_properties(["normalizer"])

    @property
    def normalizer_fn(self) -> Callable[[Any], Any] | None:
        """The normaliser."""
        found: Callable[[Any], Any] | None = self.normalizer
        return found

    def insert_transformed_feature(self, columns_to_tensors: dict[Any, Any]) -> None:
        numbers = columns_to_tensors[self.column_name]
        columns_to_tensors[self] = numbers if self.normalizer is None else self.normalizer(numbers)

    def _to_dense_tensor(self, input_tensor: Any) -> Any:
        return input_tensor

    def _to_dnn_input_layer(
        self,
        input_tensor: Any,
        weight_collections: Any = None,
        trainable: bool = True,
        output_rank: int = 2,
    ) -> Any:
        return as_matrix(self._to_dense_tensor(input_tensor), output_rank)

    @property
    def _variable_shape(self) -> tf.TensorShape:
        return tf.TensorShape([self.dimension])


def as_matrix(numbers: Any, output_rank: int) -> Any:
    """Numbers as float32 with `output_rank` dimensions: the last ones joined, or one of 1 more."""
    if isinstance(numbers, tf.SparseTensor):
        raise TypeError(f"A column of real values needs a Tensor, not a SparseTensor: {numbers}")
    if numbers.dtype is not tf.float32:
        numbers = tf.cast(numbers, tf.float32)
    known = numbers.shape.ndims
    if known is not None and known == output_rank - 1:
        return tf.expand_dims(numbers, -1)
    return inner_flatten(numbers, output_rank)


def real_valued_column(
    column_name: str,
    dimension: int = 1,
    default_value: Any = None,
    dtype: tf.DType = tf.float32,
    normalizer: Callable[[Any], Any] | None = None,
) -> _RealValuedColumn:
    """A column of the numbers of a feature.

    Args:
        column_name: the feature's key.
        dimension: how many numbers an example has.
        default_value: for examples that lack the feature: a number, or a list of `dimension` numbers.
        dtype: the feature's type in `tf.parse_example`.
        normalizer: a function of the feature's tensor, whose result counts instead.

    Raises:
        TypeError: a dimension that is no integer, a default value of another type.
        ValueError: a dimension below 1, a default value of another length, a type that is not numeric.
    """
    if not isinstance(dimension, int):
        hint = "" if dimension is not None else " Real values of a variable number are sparse features."
        raise TypeError(
            f"dimension must be an integer.{hint} dimension: {dimension}, column_name: {column_name}"
        )
    if dimension < 1:
        raise ValueError(
            f"dimension must be greater than 0. dimension: {dimension}, column_name: {column_name}"
        )
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {dtype}, column_name: {column_name}")
    default = _default_of(default_value, dimension, dtype, column_name)
    return _RealValuedColumn(column_name, dimension, default, dtype, normalizer)


def _default_of(value: Any, dimension: int, dtype: tf.DType, column_name: str) -> Any:
    """The default value as a tuple of numbers of the type, or None."""
    if value is None:
        return None
    kinds = (int,) if dtype.is_integer else (int, float)
    convert = int if dtype.is_integer else float
    if isinstance(value, kinds):
        return tuple(convert(value) for _ in range(dimension))
    if isinstance(value, list):
        if len(value) != dimension:
            raise ValueError(
                f"The length of default_value must be equal to dimension. default_value: {value}, "
                f"dimension: {dimension}, column_name: {column_name}"
            )
        if all(isinstance(each, kinds) for each in value):
            return tuple(convert(each) for each in value)
    raise TypeError(
        f"default_value must be compatible with dtype. default_value: {value}, dtype: {dtype}, "
        f"column_name: {column_name}"
    )


# ---- intervals


class _BucketizedColumn(
    _DenseOfBoth, _CategoricalOfBoth, namedtuple("_BucketizedColumn", ["source_column", "boundaries"])
):
    """The intervals that numbers are in."""

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    @property
    def length(self) -> int:  # type: ignore[override]
        """How many intervals there are."""
        return len(self.boundaries) + 1

    @property
    def config(self) -> dict[str, Any]:
        return dict(self.source_column.config)

    @property
    def key(self) -> str:
        """The column as text."""
        return str(self)

    def insert_transformed_feature(self, columns_to_tensors: dict[Any, Any]) -> None:
        numbers = columns_to_tensors[self.source_column]
        columns_to_tensors[self] = bucketize(numbers, self.boundaries, name="bucketize")

    def _to_dnn_input_layer(
        self,
        input_tensor: Any,
        weight_collections: Any = None,
        trainable: bool = True,
        output_rank: int = 2,
    ) -> Any:
        if output_rank != 2:
            raise ValueError(
                "BucketizedColumn currently only supports output_rank=2. "
                f"column: {self}, output_rank: {output_rank}"
            )
        found = tf.one_hot(
            tf.cast(input_tensor, tf.int64), self.length, on_value=1.0, off_value=0.0, name="one_hot"
        )
        return tf.reshape(found, [-1, self.length * self.source_column.dimension], name="reshape")

    def to_sparse_tensor(self, input_tensor: Any) -> tf.SparseTensor:
        """The intervals as ids: SparseTensor [batch, dimension]."""
        dimension, batch = self.source_column.dimension, tf.shape(input_tensor)[0]
        rows = tf.range(0, batch)
        if dimension > 1:
            rows = tf.reshape(tf.tile(tf.expand_dims(rows, 1), [1, dimension]), [-1], name="reshape")
            places = tf.tile(tf.range(0, dimension), [batch], name="tile")
            ids = tf.reshape(input_tensor, [-1], name="reshape") + self.length * places
        else:
            places = tf.zeros([batch], tf.int32, name="zeros")
            ids = tf.reshape(input_tensor, [-1], name="reshape")
        indices = tf.cast(tf.transpose(tf.stack((rows, places))), tf.int64)
        sizes = tf.cast(tf.stack([batch, dimension]), tf.int64)
        return tf.SparseTensor(indices, ids, sizes)

    def id_tensor(self, input_tensor: Any) -> Any:
        return self.to_sparse_tensor(input_tensor)

    @property
    def _num_buckets(self) -> int:
        return self.length * int(self.source_column.dimension)

    def _wide_embedding_lookup_arguments(self, input_tensor: Any) -> Any:
        found = super()._wide_embedding_lookup_arguments(input_tensor)
        return None if found is None else found._replace(vocab_size=self._num_buckets)

    @property
    def _variable_shape(self) -> tf.TensorShape:
        return tf.TensorShape([self._num_buckets])


def bucketized_column(source_column: _RealValuedColumn, boundaries: Any) -> _BucketizedColumn:
    """A column of the intervals between `boundaries`, a growing list, in which the numbers are.

    Raises TypeError for a column that is not of numbers, ValueError for an empty or unsorted list.
    """
    if not isinstance(source_column, _RealValuedColumn):
        raise TypeError(
            f"source_column must be an instance of _RealValuedColumn. source_column: {source_column}"
        )
    if not isinstance(boundaries, (list, tuple)) or not boundaries:
        raise ValueError(f"boundaries must be a non-empty list or tuple. boundaries: {boundaries}")
    if list(boundaries) != sorted(boundaries):
        raise ValueError(f"boundaries must be a sorted list. boundaries: {boundaries}")
    return _BucketizedColumn(source_column, tuple(sorted(set(boundaries))))


# ---- crosses


class _CrossedColumn(
    _CategoricalOfBoth,
    namedtuple(
        "_CrossedColumn",
        ["columns", "hash_bucket_size", "hash_key", "combiner", "ckpt_to_load_from", "tensor_name_in_ckpt"],
    ),
):
    """Hashes of combinations of columns."""

    @property
    def name(self) -> str:
        return "_X_".join(sorted(column.name for column in self.columns))

    @property
    def length(self) -> int:  # type: ignore[override]
        """How many hashes there are."""
        return int(self.hash_bucket_size)

    @property
    def config(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for column in self.columns:
            found.update(column.config)
        return found

    def id_tensor(self, input_tensor: Any) -> Any:
        return input_tensor

    def _to_dnn_input_layer(self, *arguments: Any, **options: Any) -> Any:
        raise ValueError(
            f"CrossedColumn is not supported in DNN. Please use embedding_column. column: {self}"
        )

    @property
    def _checkpoint_path(self) -> tuple[str, str] | None:
        return None if self.ckpt_to_load_from is None else (self.ckpt_to_load_from, self.tensor_name_in_ckpt)

    def _leaves(self) -> Iterator[Any]:
        for column in self.columns:
            if isinstance(column, _CrossedColumn):
                yield from column._leaves()
            else:
                yield column

    def insert_transformed_feature(self, columns_to_tensors: dict[Any, Any]) -> None:
        features = []
        for column in self._leaves():
            if isinstance(column, _SparseColumn):
                features.append(columns_to_tensors[column.column_name])
            else:
                features.append(column.to_sparse_tensor(columns_to_tensors[column]))
        columns_to_tensors[self] = sparse_feature_cross(
            features,
            hashed_output=True,
            num_buckets=self.hash_bucket_size,
            hash_key=self.hash_key,
            name="cross",
        )


def crossed_column(
    columns: Any,
    hash_bucket_size: int,
    combiner: str = "sum",
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    hash_key: int | None = None,
) -> _CrossedColumn:
    """A column of hashes of combinations of other columns' features.

    Args:
        columns: two or more sparse columns (of whose features the values count), bucketized or crossed ones.
        hash_bucket_size: how many hashes there are.
        combiner: how a linear model combines the weights of an example's ids: "sum", "mean" or "sqrtn".
        ckpt_to_load_from, tensor_name_in_ckpt: a checkpoint and a tensor in it, which the weights begin as.
        hash_key: the number that the hash starts from; None for an older hash.

    Raises TypeError for another column, ValueError for fewer than two columns or hashes.
    """
    for column in columns:
        if not isinstance(column, (_SparseColumn, _CrossedColumn, _BucketizedColumn)):
            raise TypeError(
                "columns must be a set of _SparseColumn, _CrossedColumn, or _BucketizedColumn instances. "
                f"(column {column} is a {type(column).__name__})"
            )
    if len(columns) < 2:
        raise ValueError(f"columns must contain at least 2 elements. columns: {columns}")
    if hash_bucket_size < 2:
        raise ValueError(f"hash_bucket_size must be at least 2. hash_bucket_size: {hash_bucket_size}")
    if (ckpt_to_load_from is None) != (tensor_name_in_ckpt is None):
        raise ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them.")
    ordered = tuple(sorted(columns, key=lambda column: column.name))
    return _CrossedColumn(
        ordered, hash_bucket_size, hash_key, combiner, ckpt_to_load_from, tensor_name_in_ckpt
    )
