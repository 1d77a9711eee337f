"""The tensors that columns make of one batch of features, each made once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowstone.framework.graphs.graph_functions import (
    control_dependencies,
    convert_to_tensor_or_sparse_tensor,
)
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.layers.feature_columns.columns import COLUMNS, FeatureColumn
from flowstone.ops.arrays.choice import where
from flowstone.ops.arrays.index_tuples import gather_nd
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import expand_dims, rank, shape
from flowstone.ops.control.checks import assert_positive
from flowstone.ops.control.conditionals import cond
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.comparisons import equal, not_equal
from flowstone.ops.sparse.sparse_layout import sparse_reshape

__all__ = ["FeatureTransformationCache", "_LazyBuilder", "_to_sparse_input_and_drop_ignore_values"]


class FeatureTransformationCache:
    """The features of a batch, and what columns made of them.

    Args:
        features: a dict of what the keys of features (strings, or columns) stand for: Tensor or SparseTensor.
    """

    def __init__(self, features: Mapping[Any, Any]) -> None:
        self._features = dict(features)
        self._feature_tensors: dict[Any, Any] = {}

    def get(self, key: Any, state_manager: Any = None) -> Any:
        """The tensor of `key`: a feature's key, or a column.

        A feature without its last dimension gets one: it is [batch, 1] then. ValueError for a feature that
        is not there or has no dimension, and for a column that makes nothing; TypeError for another key.
        """
        if key not in self._feature_tensors:
            self._feature_tensors[key] = self._make(key, state_manager)
        return self._feature_tensors[key]

    def _make(self, key: Any, state_manager: Any) -> Any:
        if key in self._features:
            return _with_two_dimensions(key, self._features[key])
        if isinstance(key, str):
            raise ValueError(f"Feature {key} is not in features dictionary.")
        if not isinstance(key, COLUMNS):
            raise TypeError(f'"key" must be either a "str" or "FeatureColumn". Provided: {key}')
        made = self._transformed(key, state_manager)
        if made is None:
            raise ValueError(f"Column {key.name} is not supported.")
        return made

    def _transformed(self, column: Any, state_manager: Any) -> Any:
        if isinstance(column, FeatureColumn):
            return column.transform_feature(self, state_manager)
        return column._transform_feature(self)


class _LazyBuilder(FeatureTransformationCache):
    """The same for the older interface of columns."""

    def _transformed(self, column: Any, state_manager: Any) -> Any:
        if hasattr(column, "_transform_feature"):
            return column._transform_feature(self)
        return column.transform_feature(self, state_manager)


def _with_two_dimensions(key: Any, feature: Any) -> Any:
    """The feature as a tensor of at least two dimensions, if it has one."""
    tensor = convert_to_tensor_or_sparse_tensor(feature)
    known = tensor.shape.ndims
    if known is None:
        return _widened_when_run(key, tensor)
    if known == 0:
        raise ValueError(f"Feature (key: {key}) cannot have rank 0. Given: {tensor}")
    return tensor if known > 1 else _widened(tensor)


def _widened(tensor: Any) -> Any:
    """`tensor` with a last dimension of 1 more."""
    if isinstance(tensor, SparseTensor):
        return sparse_reshape(tensor, concat([tensor.dense_shape, [1]], axis=0))
    return expand_dims(tensor, -1)


def _widened_when_run(key: Any, tensor: Any) -> Any:
    """The same, if the step finds that it has one dimension."""
    if isinstance(tensor, SparseTensor):
        dimensions = shape(tensor.dense_shape)[0]
    else:
        dimensions = rank(tensor)
    check = assert_positive(dimensions, message=f"Feature (key: {key}) cannot have rank 0. Given: {tensor}")
    with control_dependencies([check]):
        return cond(equal(1, dimensions), lambda: _widened(tensor), lambda: tensor)


def _to_sparse_input_and_drop_ignore_values(input_tensor: Any, ignore_value: Any = None) -> SparseTensor:
    """`input_tensor` as a SparseTensor without the elements that are `ignore_value`.

    By default these are '' in strings, -1 in integers, and 0 in other numbers. A SparseTensor stays as it is.
    """
    input_tensor = convert_to_tensor_or_sparse_tensor(input_tensor)
    if isinstance(input_tensor, SparseTensor):
        return input_tensor
    with get_default_graph().name_scope("to_sparse_input"):
        if ignore_value is None:
            ignore_value = _ignored(input_tensor)
        ignore_value = cast(ignore_value, input_tensor.dtype, name="ignore_value")
        indices = where(not_equal(input_tensor, ignore_value), name="indices")
        values = gather_nd(input_tensor, indices, name="values")
        sizes = shape(input_tensor, out_type=dtypes.int64, name="dense_shape")
    return SparseTensor(indices, values, sizes)


def _ignored(tensor: Tensor) -> Any:
    if tensor.dtype.base_dtype is dtypes.string:
        return ""
    return -1 if tensor.dtype.is_integer else 0
