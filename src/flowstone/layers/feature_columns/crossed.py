"""Categorical columns made of others: their crosses, and weighted values."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Sequence
from typing import Any

from flowstone.framework.graphs.graph_functions import convert_to_tensor_or_sparse_tensor
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.types import dtypes
from flowstone.layers.feature_columns.categorical import HashedCategoricalColumn
from flowstone.layers.feature_columns.columns import (
    CATEGORICAL,
    BothCategoricalColumn,
    number_of_buckets,
    sparse_tensors_of,
    spec_of,
)
from flowstone.layers.feature_columns.configurations import (
    check_config,
    deserialized,
    dtype_named,
    serialized,
)
from flowstone.layers.feature_columns.transformation import _to_sparse_input_and_drop_ignore_values
from flowstone.ops.numbers.casts import cast
from flowstone.ops.parsing.features import VarLenFeature
from flowstone.ops.sparse.sparse_crosses import sparse_cross_hashed

__all__ = [
    "CrossedColumn",
    "WeightedCategoricalColumn",
    "crossed_column",
    "weighted_categorical_column",
]

# ---- crosses


class CrossedColumn(
    BothCategoricalColumn, namedtuple("CrossedColumn", ("keys", "hash_bucket_size", "hash_key"))
):
    """Hashes of combinations of features; see `crossed_column`."""

    @property
    def name(self) -> str:
        """The names of what is crossed, sorted, with ``_X_`` between them."""
        names = [key if isinstance(key, str) else key.name for key in leaf_keys(self)]
        return "_X_".join(sorted(names))

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The configurations of the columns, and a VarLenFeature of strings for each key."""
        config: dict[str, Any] = {}
        for key in self.keys:
            config.update({key: VarLenFeature(dtypes.string)} if isinstance(key, str) else spec_of(key))
        return config

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> SparseTensor:
        """The hashes, [batch, combinations]. ValueError for a column that has weights."""
        features = []
        for key in leaf_keys(self):
            if isinstance(key, str):
                features.append(transformation_cache.get(key, state_manager))
                continue
            ids, weights = sparse_tensors_of(key, transformation_cache, state_manager)
            if weights is not None:
                raise ValueError(
                    "crossed_column does not support weight_tensor, but the given column populates "
                    f"weight_tensor. Given column: {key.name}"
                )
            features.append(ids)
        return sparse_cross_hashed(features, self.hash_bucket_size, self.hash_key)

    @property
    def num_buckets(self) -> int:
        """The number of hashes."""
        size: int = self.hash_bucket_size
        return size

    @property
    def parents(self) -> list[Any]:
        """What is crossed."""
        return list(self.keys)

    def _get_config(self) -> dict[str, Any]:
        config = dict(zip(self._fields, self))
        config["keys"] = tuple(serialized(key) for key in self.keys)
        return config

    @classmethod
    def _from_config(cls, config: Any, custom_objects: Any = None, columns_by_name: Any = None) -> Any:
        config = check_config(config, cls._fields)
        config["keys"] = tuple(deserialized(key, custom_objects, columns_by_name) for key in config["keys"])
        return cls(**config)


def leaf_keys(cross: CrossedColumn) -> Iterator[Any]:
    """What is crossed, with crosses taken apart."""
    for key in cross.keys:
        if isinstance(key, CrossedColumn):
            yield from leaf_keys(key)
        else:
            yield key


def crossed_column(keys: Sequence[Any], hash_bucket_size: int, hash_key: int | None = None) -> CrossedColumn:
    """A column of combinations of features, hashed.

    An example's ids are the fingerprints of all combinations of one value of each feature, modulo
    `hash_bucket_size`.

    Args:
        keys: two or more: a feature's key (of strings or integers), or a categorical column, but none of
            hashes, and none with weights.
        hash_bucket_size: how many ids there are.
        hash_key: an integer that the hash starts from; None for TensorFlow's own.

    Raises ValueError for others.
    """
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for key in keys:
        if not isinstance(key, (str, *CATEGORICAL)):
            raise ValueError(
                "Unsupported key type. All keys must be either string, or categorical column except "
                f"HashedCategoricalColumn. Given: {key}"
            )
        if isinstance(key, HashedCategoricalColumn):
            raise ValueError(
                "categorical_column_with_hash_bucket is not supported for crossing. Hashing before crossing "
                "will increase probability of collision. Instead, use the feature name as a string. "
                f"Given: {key}"
            )
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)


# ---- weights


class WeightedCategoricalColumn(
    BothCategoricalColumn,
    namedtuple("WeightedCategoricalColumn", ("categorical_column", "weight_feature_key", "dtype")),
):
    """Ids, each with a weight; see `weighted_categorical_column`."""

    @property
    def name(self) -> str:
        """The ids' and the weights' names."""
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The configuration of the ids, and a VarLenFeature of the weights. ValueError if both have one
        key.
        """
        config = dict(spec_of(self.categorical_column))
        key = self.weight_feature_key
        if key in config:
            raise ValueError(f"Parse config {config[key]} already exists for {key}.")
        config[key] = VarLenFeature(self.dtype)
        return config

    @property
    def num_buckets(self) -> int:
        """The number of ids."""
        return number_of_buckets(self.categorical_column)

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> tuple[Any, Any]:
        """The ids and the weights. ValueError for weights of another type, or that are not there."""
        weights = transformation_cache.get(self.weight_feature_key, state_manager)
        if weights is None:
            raise ValueError(f"Missing weights {self.weight_feature_key}.")
        weights = self._transform_weight_tensor(convert_to_tensor_or_sparse_tensor(weights))
        return transformation_cache.get(self.categorical_column, state_manager), weights

    def _transform_weight_tensor(self, weights: Any) -> Any:
        if weights.dtype.base_dtype is not self.dtype:
            raise ValueError(f"Bad dtype, expected {self.dtype}, but got {weights.dtype}.")
        if not isinstance(weights, SparseTensor):
            weights = _to_sparse_input_and_drop_ignore_values(weights, ignore_value=0.0)
        if not weights.dtype.is_floating:
            values = cast(weights.values, dtypes.float32, name="weights")
            weights = SparseTensor(weights.indices, values, weights.dense_shape)
        return weights

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The ids and their weights."""
        return self.IdWeightPair(*transformation_cache.get(self, state_manager))

    @property
    def parents(self) -> list[Any]:
        """The column of the ids, and the key of the weights."""
        return [self.categorical_column, self.weight_feature_key]

    def _get_config(self) -> dict[str, Any]:
        config = dict(zip(self._fields, self))
        config["categorical_column"] = serialized(self.categorical_column)
        config["dtype"] = self.dtype.name
        return config

    @classmethod
    def _from_config(cls, config: Any, custom_objects: Any = None, columns_by_name: Any = None) -> Any:
        config = check_config(config, cls._fields)
        config["categorical_column"] = deserialized(
            config["categorical_column"], custom_objects, columns_by_name
        )
        config["dtype"] = dtype_named(config["dtype"])
        return cls(**config)


def weighted_categorical_column(
    categorical_column: Any, weight_feature_key: str, dtype: dtypes.DType = dtypes.float32
) -> WeightedCategoricalColumn:
    """A column of ids that count with weights.

    Args:
        categorical_column: of the ids.
        weight_feature_key: the key of a feature with a weight for each id: a SparseTensor with the ids'
            indices, or a Tensor, of which 0 is left out.
        dtype: the weights' type, integer or floating.

    Raises ValueError for a type that is not numeric.
    """
    if dtype is None or not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype {dtype} is not convertible to float.")
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, dtype)
