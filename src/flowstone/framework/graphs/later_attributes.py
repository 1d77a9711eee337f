"""Attributes that versions of TensorFlow after 1.15 gave to ops that 1.15 has.

Version 1.15 refuses a GraphDef in which a node has one of them, so nodes are written without those that
have their default values, as TensorFlow 1.15 writes them. All of them have a default.
"""

from __future__ import annotations

__all__ = ["LATER_ATTRIBUTES"]

_OPS_BY_ATTRIBUTES = {
    "metadata": (
        "BatchDatasetV2 CacheDataset CacheDatasetV2 DatasetToSingleElement FixedLengthRecordDataset "
        "FixedLengthRecordDatasetV2 GeneratorDataset GroupByWindowDataset PaddedBatchDatasetV2 "
        "ParallelInterleaveDatasetV2 RandomDataset ReduceDataset ShardDataset ShuffleDataset "
        "ShuffleDatasetV2 TFRecordDataset TextLineDataset UnbatchDataset WindowDataset"
    ),
    (
        "low_priority_max_batch_size low_priority_batch_timeout_micros low_priority_allowed_batch_sizes "
        "low_priority_max_enqueued_batches mixed_priority_policy batch_padding_policy "
        "enable_large_batch_splitting"
    ): "BatchFunction",
    "grad_x grad_y": "BatchMatMul BatchMatMulV2",
    "blank_index": "CTCGreedyDecoder",
    "timeout_seconds": "CollectiveBcastRecv CollectiveBcastSend CollectiveGather CollectiveReduce",
    "shape_type": "ConcatOffset",
    "explicit_paddings": (
        "DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput "
        "MaxPool MaxPoolGrad"
    ),
    "narrow_range axis dtype": "Dequantize",
    "exponential_avg_factor": "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3",
    "Treal Tcomplex": "IRFFT IRFFT2D IRFFT3D RFFT RFFT2D RFFT3D",
    "offset": "InitializeTableFromTextFile InitializeTableFromTextFileV2",
    "force_synchronous": "MapDataset",
    "grad_a grad_b": "MatMul",
    "ram_budget": "ModelDataset",
    "deleted_key": "MutableDenseHashTable MutableDenseHashTableV2",
    "buffer_size_min": "PrefetchDataset",
    "axis": "QuantizeAndDequantizeV2 QuantizeAndDequantizeV3",
    "narrow_range axis ensure_minimum_range": "QuantizeV2",
    "bad_indices_policy": (
        "ResourceScatterNdAdd ResourceScatterNdSub ResourceScatterNdUpdate ScatterNd TensorScatterAdd "
        "TensorScatterSub TensorScatterUpdate"
    ),
    "use_default_device": "ScanDataset",
    "external_state_policy": "SerializeIterator",
    "reshuffle_each_iteration metadata": "ShuffleAndRepeatDataset",
    "Tsegmentids sparse_gradient": (
        "SparseSegmentMean SparseSegmentMeanWithNumSegments SparseSegmentSqrtN "
        "SparseSegmentSqrtNWithNumSegments SparseSegmentSum SparseSegmentSumWithNumSegments"
    ),
    "Tsegmentids": "SparseSegmentMeanGrad SparseSegmentSqrtNGrad",
    "Tshape": "TensorListGetItem",
    "resize_if_index_out_of_bounds": "TensorListSetItem",
    "is_files replicate_on_split": "TensorSliceDataset",
    "Tk index_type": "TopKV2",
    "perturb_singular": "TridiagonalSolve",
}

LATER_ATTRIBUTES = {
    op: frozenset(attributes.split()) for attributes, ops in _OPS_BY_ATTRIBUTES.items() for op in ops.split()
}
"""The names of such attributes, by the op's."""
