"""Columns of embeddings in `tf.contrib.layers`: tables of one column, of several, and scattered ones."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.layers.column_interface import DeepLookup, _DenseOfBoth, embedded
from flowstone.layers.feature_columns.transformation import (
    _to_sparse_input_and_drop_ignore_values as as_sparse,
)

__all__ = [
    "_EmbeddingColumn",
    "_ScatteredEmbeddingColumn",
    "embedding_column",
    "scattered_embedding_column",
    "shared_embedding_columns",
]


class _OfTable(_DenseOfBoth):
    """A column whose tensor is made of a table's rows."""

    dimension: int

    def _get_dense_tensor(self, inputs: Any, weight_collections: Any = None, trainable: Any = None) -> Any:
        lookup = self._deep_embedding_lookup_arguments(inputs.get(self))
        assert lookup is not None
        return embedded(self, lookup, weight_collections, trainable is None or trainable)

    @property
    def _variable_shape(self) -> tf.TensorShape:
        return tf.TensorShape([self.dimension])


class _EmbeddingColumn(
    _OfTable,
    namedtuple(
        "_EmbeddingColumn",
        [
            "sparse_id_column",
            "dimension",
            "combiner",
            "initializer",
            "ckpt_to_load_from",
            "tensor_name_in_ckpt",
            "shared_embedding_name",
            "shared_vocab_size",
            "max_norm",
            "trainable",
        ],
    ),
):
    """Combined embeddings of ids."""

    @property
    def name(self) -> str:
        kind = "embedding" if self.shared_embedding_name is None else "shared_embedding"
        return f"{self.sparse_id_column.name}_{kind}"

    @property
    def length(self) -> int:
        """How many rows the table has."""
        return int(self.shared_vocab_size or self.sparse_id_column.length)

    @property
    def config(self) -> dict[str, Any]:
        return dict(self.sparse_id_column.config)

    @property
    def key(self) -> str:
        """The column as text, without the initialiser."""
        return self._key_without_properties(["initializer"])

    @property
    def _checkpoint_path(self) -> tuple[str, str] | None:
        return None if self.ckpt_to_load_from is None else (self.ckpt_to_load_from, self.tensor_name_in_ckpt)

    def insert_transformed_feature(self, columns_to_tensors: dict[Any, Any]) -> None:
        columns_to_tensors[self] = columns_to_tensors[self.sparse_id_column]

    def _deep_embedding_lookup_arguments(self, input_tensor: Any) -> DeepLookup:
        return DeepLookup(
            input_tensor=self.sparse_id_column.id_tensor(input_tensor),
            weight_tensor=self.sparse_id_column.weight_tensor(input_tensor),
            vocab_size=self.length,
            dimension=self.dimension,
            initializer=self.initializer,
            combiner=self.combiner,
            shared_embedding_name=self.shared_embedding_name,
            hash_key=None,
            max_norm=self.max_norm,
            trainable=self.trainable,
        )

    def _wide_embedding_lookup_arguments(self, input_tensor: Any) -> Any:
        raise ValueError(f"Column {self} is not supported in linear models. Please use sparse_column.")


def _check(initializer: Any, ckpt_to_load_from: Any, tensor_name_in_ckpt: Any, name: str) -> None:
    if initializer is not None and not callable(initializer):
        raise ValueError(f"initializer must be callable if specified. Embedding of column_name: {name}")
    if (ckpt_to_load_from is None) != (tensor_name_in_ckpt is None):
        raise ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them.")


def _default_initializer(size: int) -> Any:
    return tf.truncated_normal_initializer(mean=0.0, stddev=1 / math.sqrt(size))


def embedding_column(
    sparse_id_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Callable[..., Any] | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> _EmbeddingColumn:
    """A dense column of a sparse one: combined rows of a table, which is learned.

    Args:
        sparse_id_column: of the ids.
        dimension: the size of a row.
        combiner: how the rows of an example's ids become one: "mean", "sqrtn" or "sum".
        initializer: of the table; None: truncated normal numbers of the deviation 1/√ids.
        ckpt_to_load_from, tensor_name_in_ckpt: a checkpoint and a tensor in it, which the table begins as.
        max_norm: longer rows are shortened to this norm.
        trainable: whether the table is.

    Raises ValueError for an initializer that is none, and only one of checkpoint and tensor.
    """
    _check(initializer, ckpt_to_load_from, tensor_name_in_ckpt, sparse_id_column.name)
    if initializer is None:
        initializer = _default_initializer(sparse_id_column.length)
    checkpoint = (ckpt_to_load_from, tensor_name_in_ckpt)
    return _EmbeddingColumn(
        sparse_id_column, dimension, combiner, initializer, *checkpoint, None, None, max_norm, trainable
    )


def shared_embedding_columns(
    sparse_id_columns: Sequence[Any],
    dimension: int,
    combiner: str = "mean",
    shared_embedding_name: str | None = None,
    initializer: Callable[..., Any] | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> list[_EmbeddingColumn]:
    """Embedding columns, one a sparse column, that share one table.

    Args:
        sparse_id_columns: columns that make the same ids of the same values.
        shared_embedding_name: the table's name; None: made of the columns' names.
        dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable: see
            `embedding_column`.

    Raises TypeError for what is no sequence, ValueError for none, and columns that do not fit each other.
    """
    if not isinstance(sparse_id_columns, Sequence) or isinstance(sparse_id_columns, (str, bytes)):
        raise TypeError(
            "sparse_id_columns must be a non-string sequence (ex: list or tuple) instead of type "
            f"{type(sparse_id_columns)}."
        )
    if not sparse_id_columns:
        raise ValueError("The input sparse_id_columns should have at least one element.")
    first = sparse_id_columns[0]
    if not all(first.is_compatible(each) for each in sparse_id_columns):
        raise ValueError("The input sparse id columns are not compatible.")
    names = ", ".join(each.name for each in sparse_id_columns)
    _check(initializer, ckpt_to_load_from, tensor_name_in_ckpt, names)
    if initializer is None:
        initializer = _default_initializer(first.length)
    name = shared_embedding_name or _shared_name(sparse_id_columns)
    rest = (ckpt_to_load_from, tensor_name_in_ckpt, name, first.length, max_norm, trainable)
    return [_EmbeddingColumn(each, dimension, combiner, initializer, *rest) for each in sparse_id_columns]


def _shared_name(columns: Sequence[Any]) -> str:
    names = sorted(each.name for each in columns)
    if len(names) > 3:
        return f"{'_'.join(names[:3])}_plus_{len(names) - 3}_others_shared_embedding"
    return f"{'_'.join(names)}_shared_embedding"


class _ScatteredEmbeddingColumn(
    _OfTable,
    namedtuple(
        "_ScatteredEmbeddingColumn",
        ["column_name", "size", "dimension", "hash_key", "combiner", "initializer"],
    ),
):
    """Embeddings whose elements are gathered from a vector by hashes."""

    @property
    def name(self) -> str:
        return f"{self.column_name}_scattered_embedding"

    @property
    def config(self) -> dict[str, Any]:
        return {self.column_name: tf.VarLenFeature(tf.string)}

    @property
    def key(self) -> str:
        """The column as text, without the initialiser."""
        return self._key_without_properties(["initializer"])

    def insert_transformed_feature(self, columns_to_tensors: dict[Any, Any]) -> None:
        columns_to_tensors[self] = as_sparse(columns_to_tensors[self.column_name])

    def _deep_embedding_lookup_arguments(self, input_tensor: Any) -> DeepLookup:
        return DeepLookup(
            input_tensor=input_tensor,
            weight_tensor=None,
            vocab_size=self.size,
            dimension=self.dimension,
            initializer=self.initializer,
            combiner=self.combiner,
            shared_embedding_name=None,
            hash_key=self.hash_key,
            max_norm=None,
            trainable=True,
        )


def scattered_embedding_column(
    column_name: str,
    size: int,
    dimension: int,
    hash_key: int,
    combiner: str = "mean",
    initializer: Callable[..., Any] | None = None,
) -> _ScatteredEmbeddingColumn:
    """A column of embeddings of strings, whose elements are those of a vector, which is learned.

    Element i of a string's embedding is at hash(i, string) modulo `size`, so that strings share elements
    (Chen et al., Compressing Neural Networks with the Hashing Trick, 2015).

    Args:
        column_name: the key of a feature of strings.
        size: of the vector.
        dimension: of an embedding.
        hash_key: an integer that the hash starts from.
        combiner: how the embeddings of an example's strings become one: "mean", "sqrtn" or "sum".
        initializer: of the vector; None: truncated normal numbers of the deviation 0.1.

    Raises ValueError for sizes below 1, another combiner, an initializer that is none.
    """
    if dimension < 1 or size < 1:
        raise ValueError(
            "Dimension and size must be greater than 0. "
            f"dimension: {dimension}, size: {size}, column_name: {column_name}"
        )
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError(
            "Combiner must be one of 'mean', 'sqrtn' or 'sum'. "
            f"combiner: {combiner}, column_name: {column_name}"
        )
    if initializer is not None and not callable(initializer):
        raise ValueError(f"initializer must be callable if specified. column_name: {column_name}")
    if initializer is None:
        initializer = tf.truncated_normal_initializer(mean=0.0, stddev=0.1)
    return _ScatteredEmbeddingColumn(column_name, size, dimension, hash_key, combiner, initializer)
