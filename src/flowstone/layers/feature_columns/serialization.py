"""Columns as plain values, and back."""

from __future__ import annotations

from typing import Any

from flowstone.layers.feature_columns.categorical import HashedCategoricalColumn, IdentityCategoricalColumn
from flowstone.layers.feature_columns.configurations import deserialized, register, serialized
from flowstone.layers.feature_columns.crossed import CrossedColumn, WeightedCategoricalColumn
from flowstone.layers.feature_columns.embedding import EmbeddingColumn, IndicatorColumn
from flowstone.layers.feature_columns.numeric import BucketizedColumn, NumericColumn
from flowstone.layers.feature_columns.sequence import SequenceCategoricalColumn, SequenceNumericColumn
from flowstone.layers.feature_columns.vocabulary import (
    VocabularyFileCategoricalColumn,
    VocabularyListCategoricalColumn,
)

__all__ = [
    "deserialize_feature_column",
    "deserialize_feature_columns",
    "serialize_feature_column",
    "serialize_feature_columns",
]

register(
    BucketizedColumn,
    CrossedColumn,
    EmbeddingColumn,
    HashedCategoricalColumn,
    IdentityCategoricalColumn,
    IndicatorColumn,
    NumericColumn,
    SequenceCategoricalColumn,
    SequenceNumericColumn,
    VocabularyFileCategoricalColumn,
    VocabularyListCategoricalColumn,
    WeightedCategoricalColumn,
)


def serialize_feature_column(fc: Any) -> Any:
    """The column as a dict of its class's name and its configuration; a key as itself."""
    return serialized(fc)


def deserialize_feature_column(config: Any, custom_objects: Any = None, columns_by_name: Any = None) -> Any:
    """The column of what `serialize_feature_column` gave.

    `custom_objects` has classes and functions by name, `columns_by_name` columns that were made before.
    Raises ValueError for a class that is not known.
    """
    return deserialized(config, custom_objects, columns_by_name)


def serialize_feature_columns(feature_columns: Any) -> list[Any]:
    """Each column as a plain value."""
    return [serialized(column) for column in feature_columns]


def deserialize_feature_columns(configs: Any, custom_objects: Any = None) -> list[Any]:
    """The columns of plain values; what several are made from is one column."""
    columns_by_name: dict[str, Any] = {}
    return [deserialized(config, custom_objects, columns_by_name) for config in configs]
