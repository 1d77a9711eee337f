"""Embeddings: rows of tables looked up by id, tables that may be partitioned, and sums of looked-up rows.

With partitions "mod", id i is row ``i // n`` of partition ``i % n``; with "div", the ids are cut into n runs
as equal as they can be, longer ones first. Public names here belong to ``tf.nn``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import rank, shape, size
from flowstone.ops.numbers.clipping import clip_by_norm
from flowstone.ops.numbers.division import div_no_nan

__all__ = ["embedding_lookup", "embedding_lookup_sparse"]


def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: Any = None,
) -> Tensor:
    """Rows of `params` (a table, or a list of its partitions) for int32 or int64 `ids`: [*ids.shape, *row
    shape].

    `max_norm` clips each row by its 2-norm. ValueError for no table or an unknown strategy;
    InvalidArgumentError in the step for ids out of range. `validate_indices` is not used.
    """
    tables = [*params] if isinstance(params, (list, tuple)) else [params]
    if hasattr(params, "_get_variable_list"):  # a partitioned variable
        tables = list(params._get_variable_list())
    if not tables or tables[0] is None:
        raise ValueError("params must be specified")
    if partition_strategy not in ("mod", "div"):
        raise ValueError(f"Unrecognized partition strategy: {partition_strategy}")
    with get_default_graph().name_scope(name or "embedding_lookup") as scope:
        ids = convert_to_tensor(ids, name="ids")
        if len(tables) == 1:
            with _beside(tables[0]) as table:
                rows = _gather(table, ids, scope)
                rows = rows if max_norm is None else _clip(rows, ids, max_norm)
            return F.Identity(rows)
        rows = _partitioned(tables, ids, partition_strategy, scope)
        return rows if max_norm is None else _clip(rows, ids, max_norm)


@contextlib.contextmanager
def _beside(table: Any) -> Iterator[Any]:
    """The table; what looks up its rows is placed where it is, so that only rows go from device to device."""
    table = table if hasattr(table, "sparse_read") else convert_to_tensor(table)
    with get_default_graph().colocate_with(table.op):
        yield table


def _gather(table: Any, ids: Tensor, name: str | None = None) -> Tensor:
    """Rows of a tensor or variable; one that is read sparsely, if it can be."""
    read = getattr(table, "sparse_read", None)
    return F.GatherV2(table, ids, 0, name=name) if read is None else read(ids, name=name)


def _clip(rows: Tensor, ids: Tensor, max_norm: Any) -> Tensor:
    """The rows of these ids, with 2-norms of at most `max_norm`."""
    if ids.ndim is None or rows.ndim is None:
        axes: Any = F.Range(F.Rank(ids), F.Rank(rows), 1)
    else:
        axes = list(range(ids.ndim, rows.ndim))
    clipped: Tensor = clip_by_norm(rows, max_norm, axes)
    return clipped


def _partitioned(tables: list[Any], ids: Tensor, strategy: str, scope: str) -> Tensor:
    count, dtype = len(tables), ids.dtype.base_dtype
    flat = F.Reshape(ids, [-1])
    originals = F.Range(0, size(flat), 1, name="range")
    if strategy == "mod":
        chosen, row = F.FloorMod(flat, count, name="mod"), F.FloorDiv(flat, count, name="floordiv")
    else:
        chosen, row = _cut_runs(tables, flat, dtype)
    chosen = chosen if dtype is dtypes.int32 else F.Cast(chosen, DstT=dtypes.int32)
    row_parts = F.DynamicPartition(row, chosen, num_partitions=count)
    places = F.DynamicPartition(originals, chosen, num_partitions=count)
    found = []
    for given, part in zip(tables, row_parts):
        with _beside(given) as table:
            found.append(_gather(table, part))
    rows = F.ParallelDynamicStitch(places, found, name=scope)
    inner = convert_to_tensor(tables[0]).dims
    if inner is None or None in inner[1:]:
        tail: Any = F.StridedSlice(F.Shape(convert_to_tensor(tables[0])), [1], [0], [1], end_mask=1)
    else:
        tail = list(inner[1:])
    rows = F.Reshape(rows, F.ConcatV2([shape(ids), tail], 0, name="concat"))
    if ids.dims is not None and inner is not None:
        rows.set_shape((*ids.dims, *inner[1:]))
    return rows


def _cut_runs(tables: list[Any], flat: Tensor, dtype: DType) -> tuple[Tensor, Tensor]:
    """(partition, row) of each id where partitions hold runs of ids."""
    count = len(tables)
    sizes = [convert_to_tensor(table).dims for table in tables]
    lengths = [dims[0] for dims in sizes if dims is not None and dims[0] is not None]
    if len(lengths) == count:
        total = convert_to_tensor(sum(lengths), dtype)
    else:
        shapes = [F.Shape(convert_to_tensor(table)) for table in tables]
        first = [F.StridedSlice(shape, [0], [1], [1], shrink_axis_mask=1) for shape in shapes]
        total = F.Cast(F.Sum(F.Pack(first, name="stack"), [0]), DstT=dtype)
    short, longer = F.FloorDiv(total, count, name="floordiv"), F.FloorMod(total, count, name="mod")
    by_long = F.FloorDiv(flat, F.AddV2(short, 1, name="add"), name="floordiv")
    by_short = F.FloorDiv(F.Sub(flat, longer, name="sub"), short, name="floordiv")
    chosen = F.Maximum(by_long, by_short)
    is_long = F.Less(chosen, longer)
    in_long = F.FloorMod(flat, F.AddV2(short, 1, name="add"), name="mod")
    in_short = F.FloorMod(F.Sub(flat, longer, name="sub"), short, name="mod")
    return chosen, F.Select(is_long, in_long, in_short)


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: Any = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """For each row of the sparse ids, the looked-up rows combined: their (weighted) "sum", "mean" (default)
    or "sqrtn".

    `sp_ids` and `sp_weights` (or None for ones) are SparseTensors with the same indices; every row must have
    an id. TypeError for other types, ValueError for an unknown combiner.
    """
    combiner = "mean" if combiner is None else combiner
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', got {combiner}")
    for value, what in ((sp_ids, "sp_ids"), (sp_weights, "sp_weights")):
        if not hasattr(value, "indices") and not (value is None and what == "sp_weights"):
            raise TypeError(f"{what} must be SparseTensor, got {type(value)}")
    with get_default_graph().name_scope(name or "embedding_lookup_sparse") as scope:
        segments = _int32(sp_ids.indices[:, 0])
        ids, positions = F.Unique(sp_ids.values)
        rows = embedding_lookup(params, ids, partition_strategy, None, True, max_norm)
        if sp_weights is None:
            reduce = {"sum": F.SparseSegmentSum, "mean": F.SparseSegmentMean, "sqrtn": F.SparseSegmentSqrtN}
            return reduce[combiner](rows, positions, segments, name=scope)
        return _weighted(F.GatherV2(rows, positions, 0), sp_weights.values, segments, combiner, scope)


def _int32(x: Tensor) -> Tensor:
    return x if x.dtype.base_dtype is dtypes.int32 else F.Cast(x, DstT=dtypes.int32)


def _weighted(rows: Tensor, weights: Tensor, segments: Tensor, combiner: str, scope: str) -> Tensor:
    weights = weights if weights.dtype is rows.dtype else F.Cast(weights, DstT=rows.dtype)
    ones = F.Fill(F.ExpandDims(rank(rows) - 1, 0), 1)
    weights = F.Reshape(weights, concat([shape(weights), ones], 0))
    rows = F.Mul(rows, weights, name="mul")
    if combiner == "sum":
        return F.SegmentSum(rows, segments, name=scope)
    total = F.SegmentSum(rows, segments)
    if combiner == "mean":
        return _divided(total, F.SegmentSum(weights, segments), scope)
    return _divided(total, F.Sqrt(F.SegmentSum(F.Pow(weights, 2), segments)), scope)


def _divided(total: Tensor, weight: Tensor, scope: str) -> Tensor:
    """The quotient in the type of the total, of integers too; these are 0 where there is no weight."""
    if not total.dtype.is_integer:
        return F.RealDiv(total, weight, name=scope)
    return F.Cast(div_no_nan(total, weight), DstT=total.dtype, name=scope)
