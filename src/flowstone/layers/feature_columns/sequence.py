"""Columns of sequences: a feature of each step, [batch, steps, …]."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

from flowstone.framework.graphs.graph_functions import control_dependencies
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.layers.feature_columns.categorical import (
    categorical_column_with_hash_bucket,
    categorical_column_with_identity,
)
from flowstone.layers.feature_columns.columns import (
    BothCategoricalColumn,
    SequenceDenseColumn,
    number_of_buckets,
    sparse_tensors_of,
    spec_of,
)
from flowstone.layers.feature_columns.configurations import (
    callable_named,
    check_config,
    deserialized,
    dtype_named,
    name_of_callable,
    serialized,
)
from flowstone.layers.feature_columns.numeric import check_key, check_normalizer, check_shape
from flowstone.layers.feature_columns.vocabulary import (
    categorical_column_with_vocabulary_file,
    categorical_column_with_vocabulary_list,
)
from flowstone.ops.arrays.identities import identity
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.padding import pad
from flowstone.ops.arrays.shapes import reshape, shape
from flowstone.ops.control.checks import assert_equal
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.reductions import reduce_prod
from flowstone.ops.numbers.segment_reductions import segment_max
from flowstone.ops.parsing.features import VarLenFeature
from flowstone.ops.sparse.sparse_conversions import sparse_tensor_to_dense
from flowstone.ops.sparse.sparse_layout import sparse_reshape

__all__ = [
    "SequenceCategoricalColumn",
    "SequenceNumericColumn",
    "sequence_categorical_column_with_hash_bucket",
    "sequence_categorical_column_with_identity",
    "sequence_categorical_column_with_vocabulary_file",
    "sequence_categorical_column_with_vocabulary_list",
    "sequence_numeric_column",
]


def sequence_lengths(tensor: SparseTensor, num_elements: int = 1) -> Any:
    """The steps of each row of a SparseTensor [batch, steps · num_elements, …]: int64, [batch]."""
    with get_default_graph().name_scope("sequence_length") as scope:
        indices = tensor.indices
        counts = segment_max(indices[:, 1] + 1, indices[:, 0])  # 0 for a row of none between others
        lengths = cast((counts + num_elements - 1) // num_elements, dtypes.int64)
        missing = cast(tensor.dense_shape[0] - cast(shape(lengths)[0], dtypes.int64), dtypes.int32)
        return pad(lengths, [[0, missing]], name=scope)


def all_equal(tensors: Sequence[Any]) -> Any:
    """The first of the tensors; a step fails with InvalidArgumentError if another one differs from it."""
    if len(tensors) == 1:
        return tensors[0]
    with get_default_graph().name_scope("assert_all_equal"):
        checks = [
            assert_equal(tensors[0], each, message="Not all tensors have the same value.")
            for each in tensors[1:]
        ]
        with control_dependencies(checks):
            return identity(tensors[0])


def _is_sequence(column: Any) -> bool:
    return isinstance(column.categorical_column, SequenceCategoricalColumn)


def check_is_no_sequence(kind: str, column: Any) -> None:
    """ValueError if the column's ids are those of a sequence."""
    if _is_sequence(column):
        raise ValueError(
            f"In {kind}: {column.name}. categorical_column must not be of type _SequenceCategoricalColumn. "
            "Suggested fix A: If you wish to use DenseFeatures, use a non-sequence "
            "categorical_column_with_*. Suggested fix B: If you wish to create sequence input, use "
            f"SequenceFeatures instead of DenseFeatures. Given (type {type(column.categorical_column)}): "
            f"{column.categorical_column}"
        )


def check_is_sequence(kind: str, column: Any) -> None:
    """ValueError if they are not."""
    if not _is_sequence(column):
        raise ValueError(
            f"In {kind}: {column.name}. categorical_column must be of type SequenceCategoricalColumn to use "
            "SequenceFeatures. Suggested fix: Use one of sequence_categorical_column_with_*. "
            f"Given (type {type(column.categorical_column)}): {column.categorical_column}"
        )


# ---- ids


class SequenceCategoricalColumn(
    BothCategoricalColumn, namedtuple("SequenceCategoricalColumn", ("categorical_column",))
):
    """The ids of each step."""

    @property
    def name(self) -> str:
        """That of the ids' column."""
        return str(self.categorical_column.name)

    @property
    def parse_example_spec(self) -> Any:
        """That of the ids' column."""
        return spec_of(self.categorical_column)

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """What the ids' column makes."""
        return transformation_cache.get(self.categorical_column, state_manager)

    @property
    def num_buckets(self) -> int:
        """The number of ids."""
        return number_of_buckets(self.categorical_column)

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The ids, [batch, steps, ids of a step], and their weights."""
        ids, weights = sparse_tensors_of(self.categorical_column, transformation_cache, state_manager)
        return self.IdWeightPair(_by_steps(ids), None if weights is None else _by_steps(weights))

    @property
    def parents(self) -> list[Any]:
        """The ids' column."""
        return [self.categorical_column]

    def _get_config(self) -> dict[str, Any]:
        return {"categorical_column": serialized(self.categorical_column)}

    @classmethod
    def _from_config(cls, config: Any, custom_objects: Any = None, columns_by_name: Any = None) -> Any:
        config = check_config(config, cls._fields)
        return cls(deserialized(config["categorical_column"], custom_objects, columns_by_name))


def _by_steps(tensor: SparseTensor) -> SparseTensor:
    """[batch, steps, …] as [batch, steps, product of the rest]."""
    sizes = shape(tensor, out_type=dtypes.int64)
    rest = reduce_prod(sizes[2:], keepdims=True)
    return sparse_reshape(tensor, concat([sizes[:2], rest], axis=0))


def sequence_categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> SequenceCategoricalColumn:
    """`categorical_column_with_identity`, of each step of a sequence."""
    return SequenceCategoricalColumn(categorical_column_with_identity(key, num_buckets, default_value))


def sequence_categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: dtypes.DType = dtypes.string
) -> SequenceCategoricalColumn:
    """`categorical_column_with_hash_bucket`, of each step of a sequence."""
    return SequenceCategoricalColumn(categorical_column_with_hash_bucket(key, hash_bucket_size, dtype))


def sequence_categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: dtypes.DType = dtypes.string,
) -> SequenceCategoricalColumn:
    """`categorical_column_with_vocabulary_file`, of each step of a sequence."""
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_file(
            key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, dtype
        )
    )


def sequence_categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[Any],
    dtype: dtypes.DType | None = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> SequenceCategoricalColumn:
    """`categorical_column_with_vocabulary_list`, of each step of a sequence."""
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_list(key, vocabulary_list, dtype, default_value, num_oov_buckets)
    )


# ---- numbers


class SequenceNumericColumn(
    SequenceDenseColumn,
    namedtuple("SequenceNumericColumn", ("key", "shape", "default_value", "dtype", "normalizer_fn")),
):
    """The numbers of each step; see `sequence_numeric_column`."""

    @property
    def _is_v2_column(self) -> bool:
        return True

    @property
    def name(self) -> str:
        """The feature's key."""
        return str(self.key)

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """A VarLenFeature."""
        return {self.key: VarLenFeature(self.dtype)}

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The numbers, normalised."""
        numbers = transformation_cache.get(self.key, state_manager)
        return numbers if self.normalizer_fn is None else self.normalizer_fn(numbers)

    @property
    def variable_shape(self) -> TensorShape:
        """The shape of a step."""
        return TensorShape(self.shape)

    def get_sequence_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The numbers, [batch, steps, *shape], with the default value where a row has none."""
        numbers = transformation_cache.get(self, state_manager)
        dense = sparse_tensor_to_dense(numbers, default_value=self.default_value)
        sizes = concat([shape(dense)[:1], [-1], self.variable_shape], axis=0)
        elements = math.prod(self.shape) if numbers.shape.ndims == 2 else 1
        lengths = sequence_lengths(numbers, elements)
        return self.TensorSequenceLengthPair(reshape(dense, sizes), lengths)

    @property
    def parents(self) -> list[Any]:
        """The feature's key."""
        return [self.key]

    def _get_config(self) -> dict[str, Any]:
        config = dict(zip(self._fields, self))
        config["normalizer_fn"] = name_of_callable(self.normalizer_fn)
        config["dtype"] = self.dtype.name
        return config

    @classmethod
    def _from_config(cls, config: Any, custom_objects: Any = None, columns_by_name: Any = None) -> Any:
        config = check_config(config, cls._fields)
        config["normalizer_fn"] = callable_named(config["normalizer_fn"], custom_objects)
        config["dtype"] = dtype_named(config["dtype"])
        return cls(**config)


def sequence_numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: float = 0.0,
    dtype: dtypes.DType = dtypes.float32,
    normalizer_fn: Callable[[Any], Any] | None = None,
) -> SequenceNumericColumn:
    """A column of the real numbers of each step of a sequence.

    Args:
        key: of the feature: a SparseTensor [batch, steps · elements], or [batch, steps, elements].
        shape: of one step.
        default_value: for what is behind the end of a row.
        dtype: the numbers' type.
        normalizer_fn: a function of the SparseTensor, whose result counts instead.

    Raises:
        TypeError: a size that is no integer, a function that is none.
        ValueError: a key that is no string, a size below 1, a type that is not numeric.
    """
    sizes = check_shape(shape, key)
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {dtype}, key: {key}")
    check_normalizer(normalizer_fn)
    check_key(key)
    return SequenceNumericColumn(key, sizes, default_value, dtype, normalizer_fn)
