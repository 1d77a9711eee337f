"""Lists of columns: checks that hold for all layers of them, and what `tf.parse_example` must read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowstone.framework.graphs.graph import GraphKeys
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.layers.feature_columns.columns import COLUMNS, FeatureColumn, _FeatureColumn
from flowstone.layers.feature_columns.transformation import FeatureTransformationCache, _LazyBuilder
from flowstone.ops.arrays.shapes import reshape, shape

__all__ = [
    "_transform_features",
    "_transform_features_v2",
    "is_feature_column_v2",
    "make_parse_example_spec",
    "make_parse_example_spec_v2",
]


def listed(feature_columns: Any, kinds: Any, kind_name: str) -> list[Any]:
    """The columns as a list. ValueError for what is none, for none at all, and for two of one name."""
    if isinstance(feature_columns, COLUMNS):
        feature_columns = [feature_columns]
    if isinstance(feature_columns, Mapping):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    columns = list(feature_columns)
    by_name: dict[str, Any] = {}
    for column in columns:
        if not isinstance(column, kinds):
            raise ValueError(
                f"Items of feature_columns must be a {kind_name}. Given (type {type(column)}): {column}."
            )
    if not columns:
        raise ValueError("feature_columns must not be empty.")
    for column in columns:
        if column.name in by_name:
            raise ValueError(
                f"Duplicate feature column name found for columns: {column} and {by_name[column.name]}. "
                "This usually means that these columns refer to same base feature. Either one must be "
                "discarded or a duplicated but renamed item must be inserted in features dict."
            )
        by_name[column.name] = column
    return columns


def by_name(columns: list[Any]) -> list[Any]:
    """The columns in the order of their names."""
    return sorted(columns, key=lambda column: column.name)


def check_dense(columns: list[Any], kinds: Any, kind_name: str = "_DenseColumn") -> None:
    """ValueError for a column that is not dense."""
    for column in columns:
        if not isinstance(column, kinds):
            raise ValueError(
                f"Items of feature_columns must be a {kind_name}. You can wrap a categorical column with an "
                f"embedding_column or indicator_column. Given: {column}"
            )


def check_batch_sizes(tensors: list[Any], columns: list[Any]) -> None:
    """ValueError for tensors of batches of different known sizes."""
    size, first = None, columns[0]
    for tensor, column in zip(tensors, columns):
        own = tensor.shape[0].value if tensor.shape.ndims else None
        if own is None:
            continue
        if size is None:
            size, first = own, column
        elif own != size:
            raise ValueError(
                "Batch size (first dimension) of each feature must be same. Batch size of columns "
                f"({first.name}, {column.name}): ({size}, {own})"
            )


def as_rows(tensor: Any, elements: int) -> Any:
    """`tensor` as [batch, elements]."""
    return reshape(tensor, shape=(shape(tensor)[0], elements))


def weight_collections_of(collections: Any) -> list[Any]:
    """The collections of weights: those given, and of all variables and of models' variables."""
    found = list(collections or [])
    for each in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES):
        if each not in found:
            found.append(each)
    return found


def make_parse_example_spec(feature_columns: Any) -> dict[str, Any]:
    """What `tf.parse_example` has to read for the columns: a dict from keys to features' configurations.

    Raises ValueError for what is no column, and for columns that read one feature in two ways.
    """
    found: dict[str, Any] = {}
    for column in feature_columns:
        if not isinstance(column, _FeatureColumn):
            raise ValueError(f"All feature_columns must be _FeatureColumn instances. Given: {column}")
        merge_specs(found, column._parse_example_spec)
    return found


def merge_specs(found: dict[str, Any], config: Mapping[str, Any]) -> None:
    """Adds the features of `config`. ValueError for one that is there in another way."""
    for key, value in config.items():
        if key in found and value != found[key]:
            raise ValueError(
                f"feature_columns contain different parse_spec for key {key}. Given {value} and {found[key]}"
            )
    found.update(config)


def make_parse_example_spec_v2(feature_columns: Any) -> dict[str, Any]:
    """`make_parse_example_spec` of columns of TensorFlow 1.13 and later. Raises ValueError for others."""
    found: dict[str, Any] = {}
    for column in feature_columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(f"All feature_columns must be FeatureColumn instances. Given: {column}")
        merge_specs(found, column.parse_example_spec)
    return found


def is_feature_column_v2(feature_columns: Any) -> bool:
    """Whether all columns are those of TensorFlow 1.13 and later."""
    return all(isinstance(each, FeatureColumn) and each._is_v2_column for each in feature_columns)


def _transform_features_v2(features: Any, feature_columns: Any, state_manager: Any) -> dict[Any, Any]:
    """What each column makes of the features, by column."""
    columns = listed(feature_columns, FeatureColumn, "FeatureColumn")
    outputs = {}
    with get_default_graph().name_scope("transform_features"):
        cache = FeatureTransformationCache(features)
        for column in by_name(columns):
            with get_default_graph().name_scope(column.name):
                outputs[column] = cache.get(column, state_manager)
    return outputs


def _transform_features(features: Any, feature_columns: Any) -> dict[Any, Any]:
    """What each column makes of the features, by column."""
    columns = listed(feature_columns, _FeatureColumn, "_FeatureColumn")
    outputs = {}
    with get_default_graph().name_scope("transform_features"):
        builder = _LazyBuilder(features)
        for column in by_name(columns):
            with get_default_graph().name_scope(column.name):
                outputs[column] = builder.get(column)
    return outputs
