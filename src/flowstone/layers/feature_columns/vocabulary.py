"""Categorical columns of places in a vocabulary."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowstone.framework.process import logging
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.types import dtypes
from flowstone.io.file_objects import FileIO
from flowstone.io.file_system import file_exists
from flowstone.layers.feature_columns.categorical import (
    KeyedCategoricalColumn,
    assert_string_or_int,
    check_feature_dtype,
    with_values,
)
from flowstone.layers.feature_columns.numeric import check_key
from flowstone.ops.lookup.vocabularies import index_table_from_file, index_table_from_tensor
from flowstone.ops.numbers.casts import cast

__all__ = [
    "VocabularyFileCategoricalColumn",
    "VocabularyListCategoricalColumn",
    "categorical_column_with_vocabulary_file",
    "categorical_column_with_vocabulary_file_v2",
    "categorical_column_with_vocabulary_list",
]


def _check_unknown_values(key: str, num_oov_buckets: int, is_default_given: bool) -> None:
    """ValueError for fewer than no buckets, and for both ways to treat unknown values."""
    if num_oov_buckets:
        if is_default_given:
            raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
        if num_oov_buckets < 0:
            raise ValueError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")


def _as_keys(tensor: SparseTensor, dtype: dtypes.DType) -> tuple[SparseTensor, dtypes.DType]:
    """The values as keys of a table of `dtype`, and the type that the table gets."""
    if not dtype.is_integer:
        return tensor, dtype
    return with_values(tensor, cast(tensor.values, dtypes.int64)), dtypes.int64


# ---- of a list


class VocabularyListCategoricalColumn(
    KeyedCategoricalColumn,
    namedtuple(
        "VocabularyListCategoricalColumn",
        ("key", "vocabulary_list", "dtype", "default_value", "num_oov_buckets"),
    ),
):
    """Places in a list; see `categorical_column_with_vocabulary_list`."""

    def _transform_input_tensor(self, input_tensor: SparseTensor) -> Any:
        check_feature_dtype(self.key, self.dtype, input_tensor)
        assert_string_or_int(input_tensor.values.dtype, f"column_name: {self.key} input_tensor")
        keys, key_dtype = _as_keys(input_tensor, self.dtype)
        table = index_table_from_tensor(
            vocabulary_list=tuple(self.vocabulary_list),
            num_oov_buckets=self.num_oov_buckets,
            default_value=self.default_value,
            dtype=key_dtype,
            name=f"{self.key}_lookup",
        )
        return table.lookup(keys)

    @property
    def num_buckets(self) -> int:
        """The list's length, and the buckets of unknown values."""
        return len(self.vocabulary_list) + int(self.num_oov_buckets)


def categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[Any],
    dtype: dtypes.DType | None = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> VocabularyListCategoricalColumn:
    """A column of places in a list.

    Args:
        key: of the feature: a SparseTensor, or a Tensor, of which '' and -1 are left out.
        vocabulary_list: strings or integers, each once.
        dtype: the feature's type; None for that of the list.
        default_value: the id of values that the list lacks; -1: they count for nothing.
        num_oov_buckets: or how many ids they are hashed to, which follow those of the list.

    Raises ValueError for a key that is no string, a list that is empty or has a value twice, a type that is
    not string or integer or not the list's, and if both a default value and buckets are given.
    """
    if vocabulary_list is None or len(vocabulary_list) < 1:
        raise ValueError(f"vocabulary_list {vocabulary_list} must be non-empty, column_name: {key}")
    if len(set(vocabulary_list)) != len(vocabulary_list):
        raise ValueError(f"Duplicate keys in vocabulary_list {vocabulary_list}, column_name: {key}")
    own = dtypes.as_dtype(np.array(vocabulary_list).dtype)
    _check_unknown_values(key, num_oov_buckets, default_value != -1)
    assert_string_or_int(own, f"column_name: {key} vocabulary")
    dtype = own if dtype is None else dtypes.as_dtype(dtype)
    assert_string_or_int(dtype, f"column_name: {key}")
    if dtype.is_integer != own.is_integer:
        raise ValueError(f"dtype {dtype} and vocabulary dtype {own} do not match, column_name: {key}")
    check_key(key)
    return VocabularyListCategoricalColumn(key, tuple(vocabulary_list), dtype, default_value, num_oov_buckets)


# ---- of a file


class VocabularyFileCategoricalColumn(
    KeyedCategoricalColumn,
    namedtuple(
        "VocabularyFileCategoricalColumn",
        ("key", "vocabulary_file", "vocabulary_size", "num_oov_buckets", "dtype", "default_value"),
    ),
):
    """Places among the lines of a file; see `categorical_column_with_vocabulary_file`."""

    def _transform_input_tensor(self, input_tensor: SparseTensor) -> Any:
        check_feature_dtype(self.key, self.dtype, input_tensor)
        assert_string_or_int(input_tensor.values.dtype, f"column_name: {self.key} input_tensor")
        keys, key_dtype = _as_keys(input_tensor, self.dtype)
        table = index_table_from_file(
            vocabulary_file=self.vocabulary_file,
            num_oov_buckets=self.num_oov_buckets,
            vocab_size=self.vocabulary_size,
            default_value=self.default_value,
            key_dtype=key_dtype,
            name=f"{self.key}_lookup",
        )
        return table.lookup(keys)

    @property
    def num_buckets(self) -> int:
        """The number of lines, and the buckets of unknown values."""
        return int(self.vocabulary_size) + int(self.num_oov_buckets)


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: dtypes.DType = dtypes.string,
) -> VocabularyFileCategoricalColumn:
    """A column of places among the lines of a file.

    Args:
        key: of the feature: a SparseTensor, or a Tensor, of which '' and -1 are left out.
        vocabulary_file: its path; a line a value.
        vocabulary_size: how many lines count; None: all of them, which are counted now.
        num_oov_buckets: how many ids unknown values are hashed to, which follow those of the lines.
        default_value: or their id; None for -1: they count for nothing.
        dtype: the feature's type, string or integer.

    Raises ValueError for a key that is no string, no file, a file that is not there (without a size), a size
    below 1, another type, and if both a default value and buckets are given.
    """
    return categorical_column_with_vocabulary_file_v2(
        key, vocabulary_file, vocabulary_size, dtype, default_value, num_oov_buckets
    )


def categorical_column_with_vocabulary_file_v2(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    dtype: dtypes.DType = dtypes.string,
    default_value: int | None = None,
    num_oov_buckets: int = 0,
) -> VocabularyFileCategoricalColumn:
    """`categorical_column_with_vocabulary_file`, with the arguments in the order of TensorFlow 2."""
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if vocabulary_size is None:
        vocabulary_size = _lines(key, vocabulary_file)
    if vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size in {key}.")
    _check_unknown_values(key, num_oov_buckets, default_value is not None)
    assert_string_or_int(dtype, f"column_name: {key}")
    check_key(key)
    default_value = -1 if default_value is None else default_value
    return VocabularyFileCategoricalColumn(
        key, vocabulary_file, vocabulary_size, num_oov_buckets, dtype, default_value
    )


def _lines(key: str, path: str) -> int:
    if not file_exists(path):
        raise ValueError(f"vocabulary_file in {key} does not exist.")
    with FileIO(path, "rb") as file:
        number = sum(1 for _ in file)
    logging.info(
        "vocabulary_size = %d in %s is inferred from the number of elements in the vocabulary_file %s.",
        number, key, path,
    )  # fmt: skip
    return number
