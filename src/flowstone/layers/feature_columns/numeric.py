"""Columns of numbers, and of the intervals that numbers are in."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.layers.feature_columns.columns import BothCategoricalColumn, BothDenseColumn
from flowstone.layers.feature_columns.configurations import (
    callable_named,
    check_config,
    deserialized,
    dtype_named,
    name_of_callable,
    serialized,
)
from flowstone.ops.arrays.constants import range as numbers_to
from flowstone.ops.arrays.masks import one_hot
from flowstone.ops.arrays.packing import stack
from flowstone.ops.arrays.padding import tile
from flowstone.ops.arrays.rearranging import transpose
from flowstone.ops.arrays.shapes import expand_dims, reshape, shape
from flowstone.ops.numbers.casts import cast
from flowstone.ops.parsing.features import FixedLenFeature

__all__ = ["BucketizedColumn", "NumericColumn", "bucketized_column", "numeric_column"]


class NumericColumn(
    BothDenseColumn,
    namedtuple("NumericColumn", ("key", "shape", "default_value", "dtype", "normalizer_fn")),
):
    """The numbers of a feature, as float32; see `numeric_column`."""

    @property
    def name(self) -> str:
        """The feature's key."""
        return str(self.key)

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """A FixedLenFeature."""
        return {self.key: FixedLenFeature(self.shape, self.dtype, self.default_value)}

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The numbers, normalised, as float32. ValueError for a SparseTensor."""
        numbers = transformation_cache.get(self.key, state_manager)
        if isinstance(numbers, SparseTensor):
            raise ValueError(
                "The corresponding Tensor of numerical column must be a Tensor. "
                f"SparseTensor is not supported. key: {self.key}"
            )
        if self.normalizer_fn is not None:
            numbers = self.normalizer_fn(numbers)
        return cast(numbers, dtypes.float32)

    @property
    def variable_shape(self) -> TensorShape:
        """The shape of an example."""
        return TensorShape(self.shape)

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The numbers."""
        return transformation_cache.get(self, state_manager)

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


def numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: Any = None,
    dtype: dtypes.DType = dtypes.float32,
    normalizer_fn: Callable[[Any], Any] | None = None,
) -> NumericColumn:
    """A column of real numbers.

    Args:
        key: of the feature, a dense tensor [batch, *shape].
        shape: of one example, an int or a list of them.
        default_value: for examples that lack the feature: a number for all elements, or one an element.
        dtype: the feature's type in `tf.parse_example`.
        normalizer_fn: a function of the feature's tensor, whose result counts instead.

    Raises:
        TypeError: a shape or default value that is not made of numbers of the type, a function that is none.
        ValueError: a key that is no string, a size below 1, a default value of another shape, a type that is
            not numeric.
    """
    sizes = check_shape(shape, key)
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {dtype}, key: {key}")
    default_value = _check_default_value(sizes, default_value, dtype, key)
    check_normalizer(normalizer_fn)
    check_key(key)
    return NumericColumn(key, sizes, default_value, dtype, normalizer_fn)


def check_key(key: Any) -> None:
    """ValueError unless `key` is a string."""
    if not isinstance(key, str):
        raise ValueError(f"key must be a string. Got: type {type(key)}. Given key: {key}.")


def check_normalizer(normalizer_fn: Any) -> None:
    """TypeError unless it is None or can be called."""
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")


def check_shape(shape: Any, key: Any) -> tuple[int, ...]:
    """The sizes of `shape`. TypeError unless they are integers, ValueError unless these are positive."""
    if shape is None:
        raise TypeError(f"shape cannot be None, key: {key}")
    sizes = tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"shape dimensions must be integer. shape: {sizes}, key: {key}")
        if size < 1:
            raise ValueError(f"shape dimensions must be greater than 0. shape: {sizes}, key: {key}")
    return sizes


def _check_default_value(sizes: tuple[int, ...], value: Any, dtype: dtypes.DType, key: Any) -> Any:
    """The default value as nested tuples of the shape, or None."""
    if value is None:
        return None
    if isinstance(value, int) or (isinstance(value, float) and dtype.is_floating):
        return _filled(sizes, value)
    if callable(getattr(value, "tolist", None)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        if not _fits(value, sizes):
            raise ValueError(
                "The shape of default_value must be equal to given shape. "
                f"default_value: {value}, shape: {sizes}, key: {key}"
            )
        elements = nest.flatten(value)
        whole = all(isinstance(each, int) for each in elements)
        if whole or (dtype.is_floating and all(isinstance(each, (int, float)) for each in elements)):
            return _as_tuple(value)
    raise TypeError(
        f"default_value must be compatible with dtype. default_value: {value}, dtype: {dtype}, key: {key}"
    )


def _filled(sizes: tuple[int, ...], value: Any) -> Any:
    if not sizes:
        return value
    return tuple(_filled(sizes[1:], value) for _ in range(sizes[0]))


def _fits(value: Any, sizes: tuple[int, ...]) -> bool:
    if not isinstance(value, (list, tuple)):
        return not sizes
    return bool(sizes) and len(value) == sizes[0] and all(_fits(each, sizes[1:]) for each in value)


def _as_tuple(value: Any) -> Any:
    return tuple(_as_tuple(each) for each in value) if isinstance(value, (list, tuple)) else value


class BucketizedColumn(
    BothDenseColumn,
    BothCategoricalColumn,
    namedtuple("BucketizedColumn", ("source_column", "boundaries")),
):
    """The intervals that numbers are in, one-hot or as ids; see `bucketized_column`."""

    @property
    def name(self) -> str:
        """That of the numbers, and ``_bucketized``."""
        return f"{self.source_column.name}_bucketized"

    @property
    def parse_example_spec(self) -> Any:
        """That of the numbers."""
        return self.source_column.parse_example_spec

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The number of each number's interval, int32."""
        numbers = transformation_cache.get(self.source_column, state_manager)
        return F.Bucketize(numbers, boundaries=self.boundaries)

    @property
    def _intervals(self) -> int:
        return len(self.boundaries) + 1

    @property
    def variable_shape(self) -> TensorShape:
        """The numbers' shape, and the intervals."""
        return TensorShape((*self.source_column.shape, self._intervals))

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The intervals, one-hot."""
        buckets = transformation_cache.get(self, state_manager)
        return one_hot(cast(buckets, dtypes.int64), self._intervals, on_value=1.0, off_value=0.0)

    @property
    def num_buckets(self) -> int:
        """An id for each interval of each number of an example."""
        return self._intervals * int(self.source_column.shape[0])

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The intervals as ids, [batch, numbers of an example]."""
        buckets = transformation_cache.get(self, state_manager)
        batch, width = shape(buckets)[0], self.source_column.shape[0]
        rows = reshape(tile(expand_dims(numbers_to(0, batch), 1), [1, width]), (-1,))
        columns = tile(numbers_to(0, width), [batch])
        ids = reshape(buckets, (-1,)) + self._intervals * columns
        indices = cast(transpose(stack((rows, columns))), dtypes.int64)
        sizes = cast(stack([batch, width]), dtypes.int64)
        return self.IdWeightPair(SparseTensor(indices, ids, sizes), None)

    @property
    def parents(self) -> list[Any]:
        """The column of the numbers."""
        return [self.source_column]

    def _get_config(self) -> dict[str, Any]:
        return {"source_column": serialized(self.source_column), "boundaries": self.boundaries}

    @classmethod
    def _from_config(cls, config: Any, custom_objects: Any = None, columns_by_name: Any = None) -> Any:
        config = check_config(config, cls._fields)
        config["source_column"] = deserialized(config["source_column"], custom_objects, columns_by_name)
        return cls(**config)


def bucketized_column(source_column: NumericColumn, boundaries: Sequence[float]) -> BucketizedColumn:
    """A column of the intervals that numbers are in.

    Boundaries ``[0., 1.]`` make the intervals below 0, [0, 1), and from 1 on. The column is dense (one-hot)
    and categorical.

    Args:
        source_column: a `numeric_column` of one dimension.
        boundaries: a list, growing.

    Raises ValueError for others.
    """
    if not isinstance(source_column, NumericColumn):
        raise ValueError(
            f"source_column must be a column generated with numeric_column(). Given: {source_column}"
        )
    if len(source_column.shape) > 1:
        raise ValueError(f"source_column must be one-dimensional column. Given: {source_column}")
    if not boundaries:
        raise ValueError("boundaries must not be empty.")
    grows = isinstance(boundaries, (list, tuple)) and all(low < high for low, high in pairwise(boundaries))
    if not grows:
        raise ValueError("boundaries must be a sorted list.")
    return BucketizedColumn(source_column, tuple(boundaries))
