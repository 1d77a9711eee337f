"""Embeddings of several categorical columns, from one table."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from flowstone.framework.graphs.graph import GraphKeys
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.layers.feature_columns.columns import (
    _DenseColumn,
    _SequenceDenseColumn,
    number_of_buckets,
    sparse_tensors_of,
    spec_of,
)
from flowstone.layers.feature_columns.crossed import WeightedCategoricalColumn
from flowstone.layers.feature_columns.embedding import Embedding, check_embedding, default_initializer
from flowstone.layers.feature_columns.sequence import (
    check_is_no_sequence,
    check_is_sequence,
    sequence_lengths,
)
from flowstone.ops.variables.variable_scope import get_variable

__all__ = ["_SharedEmbeddingColumn", "shared_embedding_columns"]


class _SharedEmbeddingColumn(
    Embedding,
    _DenseColumn,
    _SequenceDenseColumn,
    namedtuple(
        "_SharedEmbeddingColumn",
        (
            "categorical_column",
            "dimension",
            "combiner",
            "initializer",
            "shared_embedding_collection_name",
            "ckpt_to_load_from",
            "tensor_name_in_ckpt",
            "max_norm",
            "trainable",
        ),
    ),
):
    """Embeddings from a table that several columns use; see `shared_embedding_columns`.

    The table is the only variable in the collection `shared_embedding_collection_name`.
    """

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the ids, and ``_shared_embedding``."""
        return f"{self.categorical_column.name}_shared_embedding"

    @property
    def _var_scope_name(self) -> str:
        return str(self.shared_embedding_collection_name)

    @property
    def _parse_example_spec(self) -> Any:
        return spec_of(self.categorical_column)

    def _transform_feature(self, inputs: Any) -> Any:
        return inputs.get(self.categorical_column)

    @property
    def _variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    def _embedded(self, inputs: Any, weight_collections: Any, trainable: Any) -> Any:
        with get_default_graph().name_scope(self.name):
            pair = sparse_tensors_of(self.categorical_column, inputs, None)
            shared = get_default_graph().get_collection(self.shared_embedding_collection_name)
            table = self._checked(shared) if shared else self._made(weight_collections, trainable)
            return self._looked_up(pair, table)

    def _checked(self, shared: list[Any]) -> Any:
        if len(shared) > 1:
            raise ValueError(
                f"Collection {shared} can only contain one variable. Suggested fix A: Choose a unique name "
                "for this collection. Suggested fix B: Do not add any variables to this collection. The "
                "feature_column library already adds a variable under the hood."
            )
        table = shared[0]
        if table.shape.as_list() != list(self._table_shape()):
            raise ValueError(
                f"Shared embedding collection {self.shared_embedding_collection_name} contains variable "
                f"{table.name} of unexpected shape {table.shape}. Expected shape is {self._table_shape()}. "
                "Suggested fix A: Choose a unique name for this collection. Suggested fix B: Do not add any "
                "variables to this collection. The feature_column library already adds a variable under the "
                "hood."
            )
        return table

    def _made(self, weight_collections: Any, trainable: Any) -> Any:
        if weight_collections and GraphKeys.GLOBAL_VARIABLES not in weight_collections:
            weight_collections.append(GraphKeys.GLOBAL_VARIABLES)
        table = get_variable(
            name="embedding_weights",
            shape=self._table_shape(),
            dtype=dtypes.float32,
            initializer=self.initializer,
            trainable=bool(self.trainable and (trainable is None or trainable)),
            collections=weight_collections,
        )
        get_default_graph().add_to_collection(self.shared_embedding_collection_name, table)
        return self._restored(table)

    def _get_dense_tensor(self, inputs: Any, weight_collections: Any = None, trainable: Any = None) -> Any:
        check_is_no_sequence("shared_embedding_column", self)
        return self._embedded(inputs, weight_collections, trainable)

    def _get_sequence_dense_tensor(
        self, inputs: Any, weight_collections: Any = None, trainable: Any = None
    ) -> Any:
        check_is_sequence("shared_embedding_column", self)
        found = self._embedded(inputs, weight_collections, trainable)
        ids, _ = sparse_tensors_of(self.categorical_column, inputs, None)
        return self.TensorSequenceLengthPair(found, sequence_lengths(ids))


def check_sharing(columns: list[Any]) -> None:
    """ValueError unless the columns have one number of ids and one class, apart from weights."""
    first = columns[0]
    kind = _unweighted(first)
    for column in columns[1:]:
        other = _unweighted(column)
        if not isinstance(other, type(kind)):
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same type, or be "
                f"weighted_categorical_column of the same type. Given column: {kind} of type: {type(kind)} "
                f"does not match given column: {other} of type: {type(other)}"
            )
        buckets = number_of_buckets(first)
        if number_of_buckets(column) != buckets:
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same number of "
                f"buckets. Given column: {first} with buckets: {buckets} does  not match column: {column} "
                f"with buckets: {number_of_buckets(column)}"
            )


def _unweighted(column: Any) -> Any:
    if isinstance(column, WeightedCategoricalColumn):
        return column.categorical_column
    return column


def shared_embedding_columns(
    categorical_columns: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Callable[..., Any] | None = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> list[Any]:
    """Embedding columns, one a categorical column, that share one table.

    Args:
        categorical_columns: a list of columns of one class, with as many ids each.
        shared_embedding_collection_name: the collection in which the table is found, and the scope's name;
            None: made of the columns' names.
        dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable: see
            `embedding_column`.

    Returns:
        The columns, in the order of the given ones.

    Raises ValueError as `embedding_column`, and for columns that cannot share a table.
    """
    check_embedding(dimension, ckpt_to_load_from, tensor_name_in_ckpt)
    if initializer is not None and not callable(initializer):
        raise ValueError("initializer must be callable if specified.")
    if initializer is None:
        initializer = default_initializer(dimension)
    by_name = sorted(categorical_columns, key=lambda column: column.name)
    check_sharing(by_name)
    name = shared_embedding_collection_name
    if not name:
        name = "_".join(column.name for column in by_name) + "_shared_embedding"
    rest = (initializer, name, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable)
    return [_SharedEmbeddingColumn(column, dimension, combiner, *rest) for column in categorical_columns]
