"""How the rows of a ragged tensor lie in its values: splits, lengths, and the row of each value."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.repeating import repeat
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.control.checks import assert_equal, assert_greater_equal
from flowstone.ops.numbers.accumulations import cumsum
from flowstone.ops.numbers.reductions import reduce_max
from flowstone.ops.numbers.segment_reductions import unsorted_segment_sum

__all__ = [
    "as_partition",
    "checked_splits",
    "counted",
    "places",
    "row_splits_to_segment_ids",
    "segment_ids_to_row_splits",
    "splits_of_ids",
    "splits_of_lengths",
]


def counted(limit: Any, start: int = 0) -> Tensor:
    """start, start + 1 … before `limit`, a tensor, whose type they have."""
    kind = limit.dtype
    found: Tensor = F.Range(convert_to_tensor(start, kind), limit, convert_to_tensor(1, kind))
    return found


def as_partition(value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Splits, lengths or row numbers as an int32 or int64 vector; Python's are int64. ValueError for other
    types and ranks."""
    found: Tensor
    if isinstance(value, Tensor):
        found = value
    else:
        given = getattr(value, "dtype", None)
        kind = dtypes.int32 if str(given) == "int32" else dtypes.int64
        found = convert_to_tensor(value, dtype or kind, name=name)
    if found.dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"{name or 'row partition'} must have dtype int32 or int64")
    found.shape.assert_has_rank(1)
    return found if dtype is None or found.dtype == dtype else F.Cast(found, DstT=dtype)


def splits_of_lengths(lengths: Tensor) -> Tensor:
    """[0, l0, l0 + l1, …]."""
    return concat([F.Fill([1], convert_to_tensor(0, lengths.dtype)), cumsum(lengths)], axis=0)


def splits_of_ids(ids: Tensor, rows: Any) -> Tensor:
    """The splits of `rows` rows, of which `ids`, ascending, has that of each value."""
    ones = F.OnesLike(ids)
    lengths = unsorted_segment_sum(ones, ids, rows)
    return splits_of_lengths(lengths)


def places(starts: Tensor, limits: Tensor, deltas: Any = None) -> tuple[Tensor, Tensor]:
    """The values start, start + delta … before limit of each row, one after the other; then the splits."""
    starts, limits = _of_one_length(starts, limits)
    if deltas is None:
        lengths = F.Maximum(limits - starts, F.ZerosLike(starts))
    else:
        deltas = convert_to_tensor(deltas, starts.dtype)
        lengths = _steps(starts, limits, deltas)
    splits = splits_of_lengths(lengths)
    total = splits[-1]
    first = repeat(splits[:-1], lengths)
    offsets = F.Sub(counted(total), first)
    values = F.Cast(offsets, DstT=starts.dtype)
    if deltas is not None:
        values = values * (deltas if deltas.shape.ndims == 0 else repeat(deltas, lengths))
    return values + repeat(starts, lengths), splits


def _of_one_length(starts: Tensor, limits: Tensor) -> tuple[Tensor, Tensor]:
    if starts.shape.ndims == 0:
        starts = starts + F.ZerosLike(limits)
    if limits.shape.ndims == 0:
        limits = limits + F.ZerosLike(starts)
    return starts, limits


def _steps(starts: Tensor, limits: Tensor, deltas: Tensor) -> Tensor:
    """How many values there are in each row: int64."""
    reach = limits - starts
    if starts.dtype.is_floating:
        counts = F.Cast(F.Ceil(reach / deltas), DstT=dtypes.int64)
    else:
        sign = F.Sign(deltas)
        counts = F.Cast(F.FloorDiv(reach + deltas - sign, deltas), DstT=dtypes.int64)
    return F.Maximum(counts, F.ZerosLike(counts))


def checked_splits(splits: Tensor, count: Any, validate: bool) -> Tensor:
    """The splits, which a step checks if `validate`: they begin with 0, ascend, and end with `count`."""
    if not validate:
        return splits
    zero = convert_to_tensor(0, splits.dtype)
    found = [
        assert_equal(splits[0], zero, message="row_splits must begin with 0"),
        assert_greater_equal(splits[1:], splits[:-1], message="row_splits must be monotonically increasing"),
        assert_equal(splits[-1], F.Cast(count, DstT=splits.dtype), message="row_splits must end with nvals"),
    ]
    with get_default_graph().control_dependencies([each for each in found if each is not None]):
        return F.Identity(splits)


def row_splits_to_segment_ids(splits: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """The row of each value: [0, 0, 0, 2] of the splits [0, 3, 3, 4]. `out_type`: int32 or int64; by default
    that of the splits. ValueError for other types."""
    with get_default_graph().name_scope(name or "RaggedSplitsToSegmentIds"):
        splits = as_partition(splits, name="splits")
        kind = dtypes.as_dtype(out_type or splits.dtype)
        splits = splits if kind == splits.dtype else F.Cast(splits, DstT=kind)
        rows = F.Cast(shape(splits)[0] - 1, DstT=kind)
        return repeat(counted(rows), splits[1:] - splits[:-1])


def segment_ids_to_row_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = None, name: str | None = None
) -> Tensor:
    """The splits of rows, of which `segment_ids`, ascending, has that of each value; `num_segments`: how many
    rows, by default those up to the last id."""
    with get_default_graph().name_scope(name or "SegmentIdsToRaggedSplits"):
        ids = as_partition(segment_ids, name="segment_ids")
        kind = dtypes.as_dtype(out_type or ids.dtype)
        ids = ids if kind == ids.dtype else F.Cast(ids, DstT=kind)
        if num_segments is None:
            last = reduce_max(concat([ids, F.Fill([1], convert_to_tensor(-1, kind))], axis=0))
            num_segments = last + 1
        narrow = [F.Cast(each, DstT=dtypes.int32) for each in (ids, num_segments)]
        return splits_of_lengths(F.Bincount(*narrow, np.zeros([0], kind.as_numpy_dtype)))
