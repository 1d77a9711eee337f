"""`tensorflow.python.data.ops.dataset_ops`: datasets by the names of their kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.data import Dataset

__all__ = [
    "BatchDataset",
    "CacheDataset",
    "ConcatenateDataset",
    "DatasetV1",
    "DatasetV1Adapter",
    "DatasetV2",
    "FilterDataset",
    "FlatMapDataset",
    "InterleaveDataset",
    "MapDataset",
    "PaddedBatchDataset",
    "ParallelMapDataset",
    "PrefetchDataset",
    "RangeDataset",
    "RepeatDataset",
    "ShuffleDataset",
    "SkipDataset",
    "SparseTensorSliceDataset",
    "TakeDataset",
    "TensorDataset",
    "TensorSliceDataset",
    "ZipDataset",
]

DatasetV1 = DatasetV2 = DatasetV1Adapter = Dataset


def _transformation(name: str, method: str) -> Callable[..., Dataset]:
    def make(input_dataset: Dataset, *args: Any, **kwargs: Any) -> Dataset:
        return getattr(input_dataset, method)(*args, **kwargs)  # type: ignore[no-any-return]

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"`input_dataset.{method}(…)`."
    return make


TensorDataset = Dataset.from_tensors
TensorSliceDataset = Dataset.from_tensor_slices
SparseTensorSliceDataset = Dataset.from_sparse_tensor_slices
RangeDataset = Dataset.range
ZipDataset = Dataset.zip

BatchDataset = _transformation("BatchDataset", "batch")
CacheDataset = _transformation("CacheDataset", "cache")
ConcatenateDataset = _transformation("ConcatenateDataset", "concatenate")
FilterDataset = _transformation("FilterDataset", "filter")
FlatMapDataset = _transformation("FlatMapDataset", "flat_map")
InterleaveDataset = _transformation("InterleaveDataset", "interleave")
MapDataset = _transformation("MapDataset", "map")
PaddedBatchDataset = _transformation("PaddedBatchDataset", "padded_batch")
ParallelMapDataset = _transformation("ParallelMapDataset", "map")
PrefetchDataset = _transformation("PrefetchDataset", "prefetch")
RepeatDataset = _transformation("RepeatDataset", "repeat")
ShuffleDataset = _transformation("ShuffleDataset", "shuffle")
SkipDataset = _transformation("SkipDataset", "skip")
TakeDataset = _transformation("TakeDataset", "take")
