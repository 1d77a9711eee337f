"""Categorical columns of one feature: its values as hashes, or as they are."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from flowstone.framework.graphs.graph_functions import control_dependencies
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.types import dtypes
from flowstone.layers.feature_columns.columns import BothCategoricalColumn
from flowstone.layers.feature_columns.configurations import check_config, dtype_named
from flowstone.layers.feature_columns.numeric import check_key
from flowstone.layers.feature_columns.transformation import _to_sparse_input_and_drop_ignore_values
from flowstone.ops.arrays.choice import where_v2
from flowstone.ops.arrays.constants import fill
from flowstone.ops.arrays.identities import identity
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.control.checks import assert_greater_equal, assert_less
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.comparisons import greater_equal, less, logical_or
from flowstone.ops.parsing.features import VarLenFeature
from flowstone.ops.strings.hash_buckets import string_to_hash_bucket_fast
from flowstone.ops.strings.number_texts import as_string

__all__ = [
    "HashedCategoricalColumn",
    "IdentityCategoricalColumn",
    "categorical_column_with_hash_bucket",
    "categorical_column_with_identity",
]


class KeyedCategoricalColumn(BothCategoricalColumn):
    """A categorical column of one feature, whose key is the field `key`."""

    key: str

    @property
    def name(self) -> str:
        """The feature's key."""
        return str(self.key)

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """A VarLenFeature."""
        return {self.key: VarLenFeature(self._spec_dtype())}

    def _spec_dtype(self) -> Any:
        return getattr(self, "dtype", dtypes.int64)

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The feature's ids, a SparseTensor. ValueError for values of another type."""
        values = transformation_cache.get(self.key, state_manager)
        return self._transform_input_tensor(_to_sparse_input_and_drop_ignore_values(values))

    def _transform_input_tensor(self, input_tensor: SparseTensor) -> SparseTensor:
        raise NotImplementedError

    @property
    def parents(self) -> list[Any]:
        """The feature's key."""
        return [self.key]

    def _get_config(self) -> dict[str, Any]:
        config = dict(zip(self._fields, self))  # type: ignore[attr-defined,call-overload]
        if "dtype" in config:
            config["dtype"] = config["dtype"].name
        return config

    @classmethod
    def _from_config(cls, config: Any, custom_objects: Any = None, columns_by_name: Any = None) -> Any:
        config = check_config(config, cls._fields)  # type: ignore[attr-defined]
        if "dtype" in config:
            config["dtype"] = dtype_named(config["dtype"])
        return cls(**config)


def assert_string_or_int(dtype: dtypes.DType, prefix: str) -> None:
    """ValueError for another type."""
    if dtype.base_dtype is not dtypes.string and not dtype.is_integer:
        raise ValueError(f"{prefix} dtype must be string or integer. dtype: {dtype}.")


def check_feature_dtype(key: str, dtype: dtypes.DType, tensor: SparseTensor) -> None:
    """ValueError if only one of column and feature is of strings."""
    if dtype.is_integer != tensor.values.dtype.is_integer:
        raise ValueError(
            f"Column dtype and SparseTensors dtype must be compatible. key: {key}, column dtype: {dtype}, "
            f"tensor dtype: {tensor.values.dtype}"
        )


def with_values(tensor: SparseTensor, values: Any) -> SparseTensor:
    """`tensor` with other values."""
    return SparseTensor(tensor.indices, values, tensor.dense_shape)


# ---- hashes


class HashedCategoricalColumn(
    KeyedCategoricalColumn, namedtuple("HashedCategoricalColumn", ("key", "hash_bucket_size", "dtype"))
):
    """Hashes of a feature's values; see `categorical_column_with_hash_bucket`."""

    def _transform_input_tensor(self, input_tensor: SparseTensor) -> SparseTensor:
        found = input_tensor.values
        assert_string_or_int(found.dtype, f"column_name: {self.key} input_tensor")
        check_feature_dtype(self.key, self.dtype, input_tensor)
        text = found if self.dtype is dtypes.string else as_string(found)
        return with_values(
            input_tensor, string_to_hash_bucket_fast(text, self.hash_bucket_size, name="lookup")
        )

    @property
    def num_buckets(self) -> int:
        """The number of hashes."""
        size: int = self.hash_bucket_size
        return size


def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: dtypes.DType = dtypes.string
) -> HashedCategoricalColumn:
    """A column of hashes: id = FarmHash64(value as text) modulo `hash_bucket_size`.

    Args:
        key: of the feature: a SparseTensor, or a Tensor, of which '' and -1 are left out.
        hash_bucket_size: how many ids there are.
        dtype: the feature's type, string or integer.

    Raises ValueError for a key that is no string, a size below 1, another type.
    """
    if hash_bucket_size is None:
        raise ValueError(f"hash_bucket_size must be set. key: {key}")
    if hash_bucket_size < 1:
        raise ValueError(
            f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}"
        )
    check_key(key)
    assert_string_or_int(dtype, f"column_name: {key}")
    return HashedCategoricalColumn(key, hash_bucket_size, dtype)


# ---- the values themselves


class IdentityCategoricalColumn(
    KeyedCategoricalColumn,
    namedtuple("IdentityCategoricalColumn", ("key", "number_buckets", "default_value")),
):
    """A feature's values as ids; see `categorical_column_with_identity`."""

    def _transform_input_tensor(self, input_tensor: SparseTensor) -> SparseTensor:
        found = input_tensor.values
        if not found.dtype.is_integer:
            raise ValueError(f"Invalid input, not integer. key: {self.key} dtype: {found.dtype}")
        ids = cast(found, dtypes.int64, name="values")
        limit = cast(self.number_buckets, dtypes.int64, name="num_buckets")
        zero = cast(0, dtypes.int64, name="zero")
        if self.default_value is None:
            checks = [
                assert_less(
                    ids, limit, data=(ids, limit), name="assert_less_than_num_buckets",
                    message=f'Bucket index for categorical column "{self.name}" exceeds number of buckets',
                ),
                assert_greater_equal(
                    ids, zero, data=(ids,), name="assert_greater_or_equal_0",
                    message=f'Negative bucket index for categorical column "{self.name}"',
                ),
            ]  # fmt: skip
            with control_dependencies(checks):
                return with_values(input_tensor, identity(ids))
        is_outside = logical_or(less(ids, zero), greater_equal(ids, limit), name="out_of_range")
        size, value = shape(ids), cast(self.default_value, dtypes.int64)
        default = fill(size, value, name="default_values")
        return with_values(input_tensor, where_v2(is_outside, default, ids))

    @property
    def num_buckets(self) -> int:
        """The number of ids."""
        number: int = self.number_buckets
        return number


def categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> IdentityCategoricalColumn:
    """A column whose ids are the feature's integers.

    Args:
        key: of the feature: a SparseTensor, or a Tensor, of which -1 is left out.
        num_buckets: ids are below it.
        default_value: the id of other integers; None: a step fails for such, with InvalidArgumentError.

    Raises ValueError for a key that is no string, fewer than one id, a default value that is none.
    """
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(f"default_value {default_value} not in range [0, {num_buckets}), column_name {key}")
    check_key(key)
    return IdentityCategoricalColumn(key, num_buckets, default_value)
