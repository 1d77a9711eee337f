"""The features of examples, in the order in which trees number their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import flowstone as tf
from flowstone.contrib.layers import feature_column, feature_column_ops
from flowstone.layers.feature_columns.column_lists import _transform_features
from flowstone.layers.feature_columns.transformation import FeatureTransformationCache

__all__ = ["ExampleFeatures", "extract_features"]


class ExampleFeatures(NamedTuple):
    """Names of all columns (dense ones, those of sparse numbers, those of ids), and their tensors."""

    names: list[str]
    dense: list[Any]
    float_indices: list[Any]
    float_values: list[Any]
    float_shapes: list[Any]
    int_indices: list[Any]
    int_values: list[Any]
    int_shapes: list[Any]

    def inputs(self) -> tuple[list[Any], ...]:
        """The tensors as operations on ensembles take them."""
        return tuple(self)[1:]

    @property
    def sparse_floats(self) -> list[Any]:
        """The columns of sparse numbers."""
        return _sparse(self.float_indices, self.float_values, self.float_shapes)

    @property
    def sparse_ints(self) -> list[Any]:
        """The columns of ids."""
        return _sparse(self.int_indices, self.int_values, self.int_shapes)


def _sparse(*parts: Sequence[Any]) -> list[Any]:
    return [tf.SparseTensor(*each) for each in zip(*parts, strict=True)]


def _transformed(features: Mapping[Any, Any], feature_columns: Sequence[Any]) -> dict[str, Any]:
    """What the columns of `tf.contrib.layers` make of features; ValueError for others than trees take."""
    transform: Any = feature_column_ops._Transformer(dict(features))
    found = {}
    for column in feature_columns:
        tensor = transform.transform(column)
        if isinstance(column, feature_column._RealValuedColumn):
            found[column.name] = tensor
        elif isinstance(column, feature_column._SparseColumn):
            found[column.name] = column.id_tensor(tensor)
        else:
            raise ValueError(f"Unsupported feature column {column}: trees take numbers and sparse columns")
    return found


def _core_transformed(features: Mapping[str, Any], feature_columns: Sequence[Any]) -> dict[str, Any]:
    """What the columns of `tf.feature_column` make of features: numbers, or the ids of categories."""
    made = _transform_features(features, feature_columns)
    found = {}
    for column in feature_columns:
        tensor = made[column]
        if isinstance(tensor, tf.SparseTensor) and hasattr(column, "get_sparse_tensors"):
            cache = FeatureTransformationCache(features)
            tensor = column.get_sparse_tensors(cache, None).id_tensor
        found[column.name] = tensor
    return found


def extract_features(
    features: Mapping[str, Any] | None, feature_columns: Sequence[Any] | None, use_core_columns: bool = False
) -> tuple[Any, ...]:
    """(names of columns, dense columns, indices, values and shapes of sparse numbers, and of ids).

    A dense feature [examples, n] is n columns, called NAME_0 and so on.

    Raises ValueError for no features, and for those of other types than float32, and int64 of sparse ones.
    """
    if not features:
        raise ValueError("Features dictionary must be specified.")
    if feature_columns:
        make = _core_transformed if use_core_columns else _transformed
        features = make(features, feature_columns)
    dense_names, float_names, int_names = [], [], []
    dense, floats, ints = [], [], []
    for name in sorted(features):
        tensor = features[name]
        if isinstance(tensor, tf.SparseTensor):
            if tensor.values.dtype == tf.float32:
                float_names.append(name)
                floats.append(tensor)
            elif tensor.values.dtype == tf.int64:
                int_names.append(name)
                ints.append(tensor)
            else:
                raise ValueError(f"Unsupported sparse feature {name} with dtype {tensor.values.dtype}.")
            continue
        if tensor.dtype != tf.float32:
            raise ValueError(f"Unsupported dense feature {name} with dtype {tensor.dtype}.")
        width = tensor.get_shape().as_list()[1:2] if tensor.get_shape().ndims == 2 else [1]
        if width == [None] or width == [1]:
            dense_names.append(name)
            dense.append(tensor)
            continue
        dense_names += [f"{name}_{number}" for number in range(width[0])]
        dense += tf.split(tensor, width[0], axis=1) if width[0] else []
    parts = [
        [getattr(tensor, part) for tensor in sparse]
        for sparse in (floats, ints)
        for part in ("indices", "values", "dense_shape")
    ]
    return dense_names + float_names + int_names, dense, *parts
