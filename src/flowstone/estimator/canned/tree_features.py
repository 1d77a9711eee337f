"""Feature columns as boosted trees see them: one number of a bucket an example and feature.

A bucketized column is one feature; an indicator column is a feature of two buckets for each category; each
number of another dense column is a feature, whose buckets are found from the data. Features are in the order
of the names of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.estimator.canned.tree_resources import boosted_trees_bucketize
from flowstone.layers.feature_columns.columns import (
    CategoricalColumn,
    DenseColumn,
    _CategoricalColumn,
    _DenseColumn,
)
from flowstone.layers.feature_columns.embedding import IndicatorColumn
from flowstone.layers.feature_columns.numeric import BucketizedColumn
from flowstone.layers.feature_columns.transformation import _LazyBuilder

__all__ = ["bucket_groups", "column_names", "count_features", "float_columns", "transformed"]


def _shape(column: Any) -> Any:
    return tf.TensorShape(
        column.variable_shape if hasattr(column, "variable_shape") else column._variable_shape
    )


def _size(column: Any) -> int:
    """How many features a column is; ValueError for a categorical one, and for what is no column."""
    if isinstance(column, IndicatorColumn):
        return int(column.categorical_column.num_buckets)
    if isinstance(column, BucketizedColumn):
        return 1
    if isinstance(column, DenseColumn | _DenseColumn):
        dims = _shape(column).as_list()
        return int(dims[0]) if dims else 1
    if isinstance(column, CategoricalColumn | _CategoricalColumn):
        raise ValueError(f"CategoricalColumn must be wrapped by IndicatorColumn, got: {column}")
    raise ValueError(f"Got unexpected feature column type: {column}")


def float_columns(columns: Sequence[Any]) -> list[Any]:
    """Those columns whose buckets are found from the data."""
    found = []
    for column in columns:
        if isinstance(column, IndicatorColumn | BucketizedColumn | CategoricalColumn | _CategoricalColumn):
            continue
        if not isinstance(column, DenseColumn | _DenseColumn):
            raise ValueError(f"Encountered unexpected column {column}")
        if getattr(column, "dtype", tf.float32).is_floating:
            found.append(column)
    return found


def count_features(columns: Sequence[Any]) -> int:
    """How many features all columns are."""
    return sum(_size(column) for column in columns)


def column_names(columns: Sequence[Any]) -> list[str]:
    """Of each feature the name of its column, or of an indicator's categories."""
    names: list[str] = []
    for column in columns:
        source = column.categorical_column if isinstance(column, IndicatorColumn) else column
        names.extend([source.name] * _size(column))
    return names


def bucket_groups(columns: Sequence[Any], quantiles: int) -> tuple[list[int], list[list[int]]]:
    """Features by how many buckets they get: the numbers of buckets, and of each the numbers of the features.

    Bucketized columns all get as many as the one that has the most.
    """
    most = max(
        [2, *(len(column.boundaries) + 1 for column in columns if isinstance(column, BucketizedColumn))]
    )
    groups: dict[int, list[int]] = {}
    bucketized: list[int] = []
    first = 0
    for column in columns:
        features = range(first, first + _size(column))
        first = features.stop
        if isinstance(column, BucketizedColumn):
            bucketized.extend(features)
        else:
            groups.setdefault(2 if isinstance(column, IndicatorColumn) else quantiles, []).extend(features)
    if bucketized:
        groups.setdefault(most, []).extend(bucketized)
    return list(groups), list(groups.values())


def transformed(
    features: dict[str, Any], columns: Sequence[Any], boundaries: Sequence[Any] = ()
) -> list[Any]:
    """The tensors [batch] of all features: buckets, but numbers of float columns without `boundaries`.

    Args:
        features: a batch, by key; `columns`: sorted by name.
        boundaries: of each feature of the float columns, the boundaries of its buckets.

    Raises ValueError for features of more than one number an example where one is wanted.
    """
    cache = _LazyBuilder(features)
    rest = list(boundaries)
    found: list[Any] = []
    for column in columns:
        tensor = cache.get(column)
        if isinstance(column, BucketizedColumn):
            tensor = tf.squeeze(tensor, axis=1)
            if tensor.shape.ndims != 1:
                raise ValueError(
                    "For now, only supports features equivalent to rank 1 but column"
                    f" `{column.source_column.name}` got: {features[column.source_column.name].shape}"
                )
            found.append(tensor)
        elif isinstance(column, IndicatorColumn):
            if tensor.shape.ndims > 2:
                raise ValueError(
                    f"Rank of indicator column must be no more than 2, but column `{column.name}` got:"
                    f" {tensor.shape}"
                )
            found.extend(tf.unstack(tf.to_int32(tensor), axis=1))
        else:
            found.extend(_numbers(column, tensor, rest))
    return found


def _numbers(column: Any, tensor: Any, boundaries: list[Any]) -> list[Any]:
    size = _size(column)
    if len(_shape(column)) > 1:
        raise ValueError(
            f"For now, we only support Dense column with rank of 1, but column `{column.name}` got:"
            f" {_shape(column)}"
        )
    numbers = tf.unstack(tensor, axis=1)
    if not boundaries:
        return numbers
    own, boundaries[:] = boundaries[:size], boundaries[size:]
    return list(boosted_trees_bucketize(numbers, own))
