"""Embeddings of sparse ids that may be invalid, or missing in a row."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays.choice import where
from flowstone.ops.arrays.constants import ones_like, zeros_like
from flowstone.ops.arrays.gathering import gather
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.packing import stack
from flowstone.ops.arrays.shapes import reshape, shape
from flowstone.ops.arrays.slicing import slice
from flowstone.ops.networks.embedding import embedding_lookup_sparse
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.reductions import reduce_prod
from flowstone.ops.sparse.sparse_arithmetic import as_sparse
from flowstone.ops.sparse.sparse_layout import sparse_reshape
from flowstone.ops.sparse.sparse_selection import sparse_fill_empty_rows, sparse_retain


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str | None = "mean",
    default_id: Any = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: Any = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """The combined embeddings of each row of ids, whatever the ids are.

    Negative ids, and unless the combiner is "sum" ids with weights of 0 or less, are left out. A row without
    ids gives the embedding of `default_id`, or zeros if that is None.

    Args:
        embedding_weights: a table [ids, …], or a list of its partitions.
        sparse_ids: SparseTensor [d0, …, dn] of int32 or int64 ids, ordered by rows.
        sparse_weights: SparseTensor of the same indices with a weight for each id; None for ones.
        combiner: "mean" (also for None), "sqrtn" or "sum".
        default_id: the id of rows without ids.
        name: the scope's name.
        partition_strategy: "div" or "mod": which ids each partition holds.
        max_norm: the embeddings' largest 2-norm.
        allow_fast_lookup: not used.

    Returns:
        Tensor [d0, …, d(n-1), …]: a combination of rows in place of the last dimension.

    Raises:
        ValueError: no table, or weights of another type than it.
    """
    tables = _tables(embedding_weights)
    dtype = tables[0].dtype.base_dtype
    ids = as_sparse(sparse_ids)
    weights = None if sparse_weights is None else as_sparse(sparse_weights)
    if weights is not None and weights.values.dtype.base_dtype is not dtype:
        raise ValueError(
            f"The weights have the type {weights.values.dtype.name}, the embeddings {dtype.name}: they "
            "must be the same"
        )
    with get_default_graph().name_scope(name or "embedding_lookup") as scope:
        sizes = ids.dense_shape
        ids, weights = _as_matrices(ids, weights)
        ids, weights = _without_invalid(ids, weights, combiner)
        ids, is_empty = sparse_fill_empty_rows(ids, 0 if default_id is None else default_id)
        if weights is not None:
            weights, _ = sparse_fill_empty_rows(weights, 1.0)
        found = embedding_lookup_sparse(
            embedding_weights,
            ids,
            weights,
            partition_strategy,
            None if default_id is None else scope,
            combiner,
            max_norm,
        )
        if default_id is None:
            empty = reshape(is_empty, [-1, 1])
            empty = F.Tile(empty, stack([1, shape(found)[1]]))
            found = where(empty, zeros_like(found), found, name=scope)
        return _in_shape(found, sizes)


def _tables(embedding_weights: Any) -> list[Any]:
    """The partitions of the table. ValueError if there are none."""
    if embedding_weights is None:
        raise ValueError("Missing embedding_weights.")
    if hasattr(embedding_weights, "_get_variable_list"):
        embedding_weights = list(embedding_weights._get_variable_list())
    tables = list(embedding_weights) if isinstance(embedding_weights, (list, tuple)) else [embedding_weights]
    if not tables:
        raise ValueError("Missing embedding_weights.")
    return [each if hasattr(each, "dtype") else convert_to_tensor(each) for each in tables]


def _rank(sizes: Tensor) -> Any:
    """The number of sizes: an int if it is known."""
    known = sizes.shape[0].value
    return F.Size(sizes) if known is None else known


def _as_matrices(ids: SparseTensor, weights: SparseTensor | None) -> tuple[SparseTensor, SparseTensor | None]:
    """Ids and weights with all dimensions before the last as one."""
    last = _rank(ids.dense_shape) - 1
    rows = reduce_prod(slice(ids.dense_shape, [0], [last]))
    matrix = sparse_reshape(ids, [rows, gather(ids.dense_shape, last)])
    if weights is None:
        return matrix, None
    return matrix, SparseTensor(matrix.indices, weights.values, matrix.dense_shape)


def _without_invalid(
    ids: SparseTensor, weights: SparseTensor | None, combiner: str | None
) -> tuple[SparseTensor, SparseTensor | None]:
    valid = F.GreaterEqual(ids.values, 0)
    if weights is None:
        return sparse_retain(ids, valid), None
    valid = F.LogicalAnd(valid, ones_like(weights.values, dtypes.bool))
    ids, weights = sparse_retain(ids, valid), sparse_retain(weights, valid)
    if combiner == "sum":
        return ids, weights
    positive = F.Greater(weights.values, 0)
    return sparse_retain(ids, positive), sparse_retain(weights, positive)


def _in_shape(found: Tensor, sizes: Tensor) -> Tensor:
    """The combined rows, with the ids' first dimensions."""
    rank = _rank(sizes)
    outer = slice(cast(sizes, dtypes.int32), [0], [rank - 1])
    result = reshape(found, concat([outer, slice(shape(found), [1], [-1])], 0))
    if isinstance(rank, int) and found.shape.ndims is not None:
        result.set_shape(TensorShape([None] * (rank - 1)).concatenate(found.shape[1:]))
    return result
