"""`tf.data.experimental.cardinality`: how many elements a dataset has, if that is known without reading.

The answer is a tensor that follows from the nodes that make the dataset: of each type of node, `_OF` says how
the number follows from the numbers of its inputs. Where one depends on what a function gives, or on files, it
is UNKNOWN_CARDINALITY.

    cardinality(Dataset.range(5).batch(2))            3
    cardinality(Dataset.range(5).repeat())           -1, INFINITE_CARDINALITY
    cardinality(Dataset.range(5).filter(function))   -2, UNKNOWN_CARDINALITY
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.data.dataset import Dataset
from flowstone.data.dataset_functions import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes

__all__ = ["cardinality"]

Number = Callable[[Any], Tensor]


def cardinality(dataset: Dataset) -> Tensor:
    """The number of elements, an int64 scalar; or INFINITE_CARDINALITY, or UNKNOWN_CARDINALITY."""
    return _of(dataset._as_variant_tensor())


def _of(variant: Tensor) -> Tensor:
    number = _OF.get(variant.op.type)
    return _constant(UNKNOWN_CARDINALITY) if number is None else number(variant.op)


def _constant(value: int) -> Tensor:
    return convert_to_tensor(value, dtypes.int64)


def _where(condition: Tensor, one: Tensor, other: Tensor) -> Tensor:
    chosen: Tensor = F.SelectV2(condition, one, other)
    return chosen


def _if_finite(source: Tensor, number: Tensor) -> Tensor:
    """`number` if the source's is known and finite, else the source's."""
    return _where(F.Less(source, _constant(0)), source, number)


def _same(op: Any) -> Tensor:
    """That of its input."""
    return _of(op.inputs[0])


def _fixed(value: int) -> Number:
    return lambda op: _constant(value)


def _slices(op: Any) -> Tensor:
    return F.Cast(F.StridedSlice(F.Shape(op.inputs[0]), [0], [1], [1], shrink_axis_mask=1), DstT=dtypes.int64)


def _sparse_slices(op: Any) -> Tensor:
    found: Tensor = F.StridedSlice(op.inputs[2], [0], [1], [1], shrink_axis_mask=1)
    return found


def _range(op: Any) -> Tensor:
    start, stop, step = op.inputs
    length: Tensor = F.Maximum(F.Neg(F.FloorDiv(F.Sub(start, stop), step)), _constant(0))
    return length


def _quotient(number: Tensor, size: Tensor, drops: Any) -> Tensor:
    """number / size: rounded down if `drops`, else up."""
    one, zero = _constant(1), _constant(0)
    rest = _where(F.Equal(F.FloorMod(number, size), zero), zero, one)
    if drops is not None:
        rest = _where(drops, zero, rest)
    found: Tensor = F.Add(F.FloorDiv(number, size), rest)
    return found


def _batches(size_at: int, has_drops: bool = False) -> Number:
    """The number of batches, whose size is the input `size_at`; `has_drops`: the last input says whether a
    smaller last one is dropped."""

    def number(op: Any) -> Tensor:
        source, inputs = _of(op.inputs[0]), list(op.inputs)
        return _if_finite(source, _quotient(source, inputs[size_at], inputs[-1] if has_drops else None))

    return number


def _repeated(count_at: int) -> Number:
    def number(op: Any) -> Tensor:
        source, count, zero = _of(op.inputs[0]), list(op.inputs)[count_at], _constant(0)
        endless = _where(F.Equal(source, zero), zero, _constant(INFINITE_CARDINALITY))
        several = _where(F.Equal(count, zero), zero, _if_finite(source, F.Mul(source, count)))
        return _where(F.Less(count, zero), endless, several)

    return number


def _taken(op: Any) -> Tensor:
    source, count = _of(op.inputs[0]), op.inputs[1]
    limited = _where(F.Equal(source, _constant(INFINITE_CARDINALITY)), count, F.Minimum(source, count))
    return _where(F.Equal(source, _constant(UNKNOWN_CARDINALITY)), source, limited)


def _skipped(op: Any) -> Tensor:
    source, count, zero = _of(op.inputs[0]), op.inputs[1], _constant(0)
    left = _where(F.Less(count, zero), zero, F.Maximum(zero, F.Sub(source, count)))
    return _if_finite(source, left)


def _shard(op: Any) -> Tensor:
    source, count, index = _of(op.inputs[0]), op.inputs[1], op.inputs[2]
    more = _where(F.Less(index, F.FloorMod(source, count)), _constant(1), _constant(0))
    return _if_finite(source, F.Add(F.FloorDiv(source, count), more))


def _concatenated(op: Any) -> Tensor:
    one, other = (_of(x) for x in op.inputs)
    endless, unknown = _constant(INFINITE_CARDINALITY), _constant(UNKNOWN_CARDINALITY)
    total = _where(F.LogicalOr(F.Equal(one, unknown), F.Equal(other, unknown)), unknown, F.Add(one, other))
    return _where(F.LogicalOr(F.Equal(one, endless), F.Equal(other, endless)), endless, total)


def _zipped(op: Any) -> Tensor:
    endless, unknown = _constant(INFINITE_CARDINALITY), _constant(UNKNOWN_CARDINALITY)
    largest = _constant(2**63 - 1)
    numbers = [_of(x) for x in op.inputs]
    least = largest
    for number in numbers:
        least = F.Minimum(least, _where(F.Equal(number, endless), largest, number))
    return _where(F.Less(least, _constant(0)), unknown, _where(F.Equal(least, largest), endless, least))


_KEEPING = (
    "Map ParallelMap Scan Cache Prefetch Shuffle IgnoreErrors Options Model Optimize ParseExample AssertNext"
    " LatencyStats BytesProducedStats SetStatsAggregator MaxIntraOpParallelism PrivateThreadPool"
)
_OF: dict[str, Number] = {
    **{f"{name}Dataset": _same for name in _KEEPING.split()},
    "TensorDataset": _fixed(1),
    "TensorSliceDataset": _slices,
    "SparseTensorSliceDataset": _sparse_slices,
    "RangeDataset": _range,
    "RandomDataset": _fixed(INFINITE_CARDINALITY),
    "BatchDataset": _batches(1),
    "BatchDatasetV2": _batches(1, has_drops=True),
    "DenseToSparseBatchDataset": _batches(1),
    "WindowDataset": _batches(2, has_drops=True),
    "PaddedBatchDataset": _batches(1),
    "PaddedBatchDatasetV2": _batches(1, has_drops=True),
    "MapAndBatchDataset": _batches(-2),
    "ExperimentalMapAndBatchDataset": _batches(-3, has_drops=True),
    "RepeatDataset": _repeated(1),
    "ShuffleAndRepeatDataset": _repeated(4),
    "TakeDataset": _taken,
    "SkipDataset": _skipped,
    "ShardDataset": _shard,
    "ConcatenateDataset": _concatenated,
    "ZipDataset": _zipped,
}
