"""Embeddings looked up by sparse ids, by ids that repeat, by hashes, and added up where they lie."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = [
    "embedding_lookup_sparse_with_distributed_aggregation",
    "embedding_lookup_unique",
    "safe_embedding_lookup_sparse",
]


def safe_embedding_lookup_sparse(
    embedding_weights: Any, sparse_ids: Any, sparse_weights: Any = None, combiner: str | None = None,
    default_id: int | None = None, name: str | None = None, partition_strategy: str = "div",
    max_norm: float | None = None,
) -> Any:  # fmt: skip
    """Embeddings of rows of ids, combined; rows without ids, and ids below 0, are taken care of.

    Args:
        embedding_weights: [ids, dimension], in one or several parts.
        sparse_ids: a SparseTensor of int64, […, the ids of a row].
        sparse_weights: a SparseTensor of the same indices; ids of weights that are not positive are left out.
        combiner: "mean" (also for None), "sqrtn" or "sum".
        default_id: the id for rows without any; None gives them zeros.
        name: of the result.
        partition_strategy: "div" or "mod".
        max_norm: embeddings are scaled down to this length.

    Returns […, dimension]. ValueError if there are no weights.
    """
    if embedding_weights is None or (isinstance(embedding_weights, list) and not embedding_weights):
        raise ValueError(f"Missing embedding_weights {embedding_weights}.")
    result: Any = tf.nn.safe_embedding_lookup_sparse(
        embedding_weights,
        sparse_ids,
        sparse_weights=sparse_weights,
        combiner=combiner or "mean",
        default_id=default_id,
        name=name,
        partition_strategy=partition_strategy,
        max_norm=max_norm,
    )
    known = tf.get_static_value(sparse_ids.dense_shape)
    if known is not None and result.shape.ndims == len(known):
        result.set_shape([*known.tolist()[:-1], None])
    return result


def embedding_lookup_unique(
    params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None
) -> Any:
    """As `tf.nn.embedding_lookup`, with each of the ids looked up once, however often it is there.

    `params`: [ids, …], in one or several parts; `ids`: integers of any shape. Returns [*ids.shape, …].
    """
    with tf.name_scope(name, "EmbeddingLookupUnique", [params, ids]):
        ids = tf.convert_to_tensor(ids)
        shape = tf.shape(ids)
        flat = tf.reshape(ids, tf.reduce_prod(shape, keepdims=True))
        unique_ids, positions = tf.unique(flat)
        rows = tf.nn.embedding_lookup(params, unique_ids, partition_strategy)
        found = tf.gather(rows, positions)
        result = tf.reshape(found, tf.concat([shape, tf.shape(rows)[1:]], 0))
        result.set_shape(ids.shape.concatenate(rows.shape[1:]))
        return result


def embedding_lookup_sparse_with_distributed_aggregation(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: float | None = None,
) -> Any:
    """As `tf.nn.embedding_lookup_sparse`, which gives the same: sums stay where the weights are here, too.

    `combiner` None is "mean". For the arguments see there.
    """
    with tf.name_scope(name, "embedding_lookup_sparse", [params, sp_ids]) as name:
        return tf.nn.embedding_lookup_sparse(
            params, sp_ids, sp_weights, partition_strategy, name, combiner or "mean", max_norm
        )
