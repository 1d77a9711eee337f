"""Dense columns of categorical ones: one-hot, and embeddings.

The table of an embedding is the variable ``embedding_weights`` [ids, dimension], in the scope of the column.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from flowstone.framework.graphs.graph import GraphKeys
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.layers.feature_columns.columns import (
    BothDenseColumn,
    BothSequenceDenseColumn,
    number_of_buckets,
    sparse_tensors_of,
    spec_of,
)
from flowstone.layers.feature_columns.configurations import (
    callable_named,
    check_config,
    deserialized,
    name_of_callable,
    serialized,
)
from flowstone.layers.feature_columns.sequence import (
    check_is_no_sequence,
    check_is_sequence,
    sequence_lengths,
)
from flowstone.ops.arrays.gathering import scatter_nd
from flowstone.ops.arrays.masks import one_hot
from flowstone.ops.numbers.reductions import reduce_sum
from flowstone.ops.sparse.safe_embedding import safe_embedding_lookup_sparse
from flowstone.ops.sparse.sparse_conversions import sparse_merge, sparse_tensor_to_dense
from flowstone.ops.sparse.sparse_selection import sparse_slice
from flowstone.ops.variables import initializers
from flowstone.ops.variables.partitioned_variables import PartitionedVariable
from flowstone.ops.variables.variable_scope import get_variable
from flowstone.training.checkpoints.checkpoint_reading import init_from_checkpoint

__all__ = [
    "EmbeddingColumn",
    "IndicatorColumn",
    "embedding_column",
    "indicator_column",
]

# ---- one-hot


class IndicatorColumn(
    BothDenseColumn, BothSequenceDenseColumn, namedtuple("IndicatorColumn", ("categorical_column",))
):
    """How often each id is there; see `indicator_column`."""

    @property
    def name(self) -> str:
        """The name of the ids, and ``_indicator``."""
        return f"{self.categorical_column.name}_indicator"

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The counts, or sums of weights, of the last dimension's ids."""
        ids, weights = sparse_tensors_of(self.categorical_column, transformation_cache, state_manager)
        width = number_of_buckets(self.categorical_column)
        if weights is not None:
            weighted = sparse_merge(sp_ids=ids, sp_values=weights, vocab_size=int(width))
            weighted = sparse_slice(weighted, [0, 0], weighted.dense_shape)  # without ids of -1
            return scatter_nd(weighted.indices, weighted.values, weighted.dense_shape)
        dense = sparse_tensor_to_dense(ids, default_value=-1)
        return reduce_sum(one_hot(dense, depth=width, on_value=1.0, off_value=0.0), axis=[-2])

    @property
    def parse_example_spec(self) -> Any:
        """That of the ids."""
        return spec_of(self.categorical_column)

    @property
    def variable_shape(self) -> TensorShape:
        """[1, ids]."""
        return TensorShape([1, number_of_buckets(self.categorical_column)])

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The counts. ValueError for ids of a sequence."""
        check_is_no_sequence("indicator_column", self)
        return transformation_cache.get(self, state_manager)

    def get_sequence_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The counts of each step. ValueError for ids that are no sequence."""
        check_is_sequence("indicator_column", self)
        counts = transformation_cache.get(self, state_manager)
        ids, _ = sparse_tensors_of(self.categorical_column, transformation_cache, state_manager)
        return self.TensorSequenceLengthPair(counts, sequence_lengths(ids))

    @property
    def parents(self) -> list[Any]:
        """The column of the ids."""
        return [self.categorical_column]

    def _get_config(self) -> dict[str, Any]:
        return {"categorical_column": serialized(self.categorical_column)}

    @classmethod
    def _from_config(cls, config: Any, custom_objects: Any = None, columns_by_name: Any = None) -> Any:
        config = check_config(config, cls._fields)
        return cls(deserialized(config["categorical_column"], custom_objects, columns_by_name))


def indicator_column(categorical_column: Any) -> IndicatorColumn:
    """A dense column of a categorical one: for each id how often an example has it, or the sum of its
    weights.
    """
    return IndicatorColumn(categorical_column)


# ---- embeddings


def check_embedding(dimension: Any, ckpt_to_load_from: Any, tensor_name_in_ckpt: Any) -> None:
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if (ckpt_to_load_from is None) != (tensor_name_in_ckpt is None):
        raise ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them.")


def default_initializer(dimension: int) -> Any:
    """Normal numbers of the deviation 1/√dimension, those beyond two deviations drawn again."""
    return initializers.truncated_normal_initializer(mean=0.0, stddev=1 / math.sqrt(dimension))


class Embedding:
    """What both classes of embeddings share: the table's lookup."""

    name: str
    categorical_column: Any
    dimension: int
    combiner: str
    max_norm: float | None
    ckpt_to_load_from: str | None
    tensor_name_in_ckpt: str | None

    def _looked_up(self, ids_and_weights: Any, table: Any) -> Any:
        ids, weights = ids_and_weights
        return safe_embedding_lookup_sparse(
            embedding_weights=table,
            sparse_ids=ids,
            sparse_weights=weights,
            combiner=self.combiner,
            name=f"{self.name}_weights",
            max_norm=self.max_norm,
        )

    def _restored(self, table: Any) -> Any:
        """`table`, which gets its initial value from the checkpoint, if there is one."""
        if self.ckpt_to_load_from is not None:
            parts = list(table) if isinstance(table, PartitionedVariable) else table
            init_from_checkpoint(self.ckpt_to_load_from, {self.tensor_name_in_ckpt: parts})
        return table

    def _table_shape(self) -> tuple[int, int]:
        return number_of_buckets(self.categorical_column), self.dimension


class EmbeddingColumn(
    Embedding,
    BothDenseColumn,
    BothSequenceDenseColumn,
    namedtuple(
        "EmbeddingColumn",
        (
            "categorical_column",
            "dimension",
            "combiner",
            "initializer",
            "ckpt_to_load_from",
            "tensor_name_in_ckpt",
            "max_norm",
            "trainable",
        ),
    ),
):
    """Combined embeddings of ids; see `embedding_column`."""

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the ids, and ``_embedding``."""
        return f"{self.categorical_column.name}_embedding"

    @property
    def parse_example_spec(self) -> Any:
        """That of the ids."""
        return spec_of(self.categorical_column)

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """What the column of the ids makes."""
        return transformation_cache.get(self.categorical_column, state_manager)

    @property
    def variable_shape(self) -> TensorShape:
        """[dimension]."""
        return TensorShape([self.dimension])

    def create_state(self, state_manager: Any) -> None:
        """Makes ``embedding_weights`` [ids, dimension]."""
        if hasattr(self.categorical_column, "create_state"):
            self.categorical_column.create_state(state_manager)
        state_manager.create_variable(
            self,
            name="embedding_weights",
            shape=self._table_shape(),
            dtype=dtypes.float32,
            trainable=self.trainable,
            use_resource=True,
            initializer=self.initializer,
        )

    def _from_state(self, cache: Any, state_manager: Any) -> Any:
        pair = sparse_tensors_of(self.categorical_column, cache, state_manager)
        table = state_manager.get_variable(self, name="embedding_weights")
        return self._looked_up(pair, self._restored(table))

    def _from_scope(self, inputs: Any, weight_collections: Any, trainable: Any) -> Any:
        """The embeddings, with the table in the current variable scope."""
        pair = sparse_tensors_of(self.categorical_column, inputs, None)
        if weight_collections and GraphKeys.GLOBAL_VARIABLES not in weight_collections:
            weight_collections.append(GraphKeys.GLOBAL_VARIABLES)
        return self._looked_up(pair, self._restored(self.scoped_table(weight_collections, trainable)))

    def scoped_table(self, weight_collections: Any, trainable: Any) -> Any:
        """The table [ids, dimension] of the current variable scope, made or used again."""
        return get_variable(
            name="embedding_weights",
            shape=self._table_shape(),
            dtype=dtypes.float32,
            initializer=self.initializer,
            trainable=bool(self.trainable and (trainable is None or trainable)),
            collections=weight_collections,
        )

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The embeddings, [batch, dimension]. ValueError for ids of a sequence."""
        check_is_no_sequence("embedding_column", self)
        return self._from_state(transformation_cache, state_manager)

    def _get_dense_tensor(self, inputs: Any, weight_collections: Any = None, trainable: Any = None) -> Any:
        check_is_no_sequence("embedding_column", self)
        return self._from_scope(inputs, weight_collections, trainable)

    def get_sequence_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The embeddings, [batch, steps, dimension]. ValueError for ids that are no sequence."""
        check_is_sequence("embedding_column", self)
        found = self._from_state(transformation_cache, state_manager)
        ids, _ = sparse_tensors_of(self.categorical_column, transformation_cache, state_manager)
        return self.TensorSequenceLengthPair(found, sequence_lengths(ids))

    def _get_sequence_dense_tensor(
        self, inputs: Any, weight_collections: Any = None, trainable: Any = None
    ) -> Any:
        check_is_sequence("embedding_column", self)
        found = self._from_scope(inputs, weight_collections, trainable)
        ids, _ = sparse_tensors_of(self.categorical_column, inputs, None)
        return self.TensorSequenceLengthPair(found, sequence_lengths(ids))

    @property
    def parents(self) -> list[Any]:
        """The column of the ids."""
        return [self.categorical_column]

    def _get_config(self) -> dict[str, Any]:
        config = dict(zip(self._fields, self))
        config["categorical_column"] = serialized(self.categorical_column)
        config["initializer"] = name_of_callable(self.initializer)
        return config

    @classmethod
    def _from_config(cls, config: Any, custom_objects: Any = None, columns_by_name: Any = None) -> Any:
        config = check_config(config, cls._fields)
        config["categorical_column"] = deserialized(
            config["categorical_column"], custom_objects, columns_by_name
        )
        config["initializer"] = callable_named(config["initializer"], custom_objects, vars(initializers))
        return cls(**config)


def embedding_column(
    categorical_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Callable[..., Any] | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> EmbeddingColumn:
    """A dense column of a categorical one: rows of a table, which is learned.

    Args:
        categorical_column: of the ids.
        dimension: the size of a row.
        combiner: how the rows of an example's ids become one, by the ids' weights: "mean", "sqrtn" or "sum".
        initializer: of the table; None: truncated normal numbers of the deviation 1/√dimension.
        ckpt_to_load_from, tensor_name_in_ckpt: a checkpoint and a tensor in it, which the table begins as.
        max_norm: longer rows are shortened to this norm.
        trainable: whether the table is.

    Raises ValueError for a dimension below 1, only one of checkpoint and tensor, an initializer that is none.
    """
    check_embedding(dimension, ckpt_to_load_from, tensor_name_in_ckpt)
    if initializer is not None and not callable(initializer):
        raise ValueError(
            f"initializer must be callable if specified. Embedding of column_name: {categorical_column.name}"
        )
    if initializer is None:
        initializer = default_initializer(dimension)
    return EmbeddingColumn(
        categorical_column,
        dimension,
        combiner,
        initializer,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
    )
