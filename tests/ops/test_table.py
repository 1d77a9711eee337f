"""Every op against the oracle: values, dtypes, static shapes, gradients, state and errors of each case.

The cases are in `tables/`, the oracle's answers in `tests/golden/ops`; `op_cases` and `golden_values`
describe them. Each case becomes one graph of Flowstone, built like the oracle's: its op on constants, on
placeholders of the full shape and on placeholders of unknown rank. `Subject` is all that knows how Flowstone
is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import flowstone as tf
import golden_values
import op_cases
from flowstone.framework.declarations.operation import registry
from op_cases import Case, Input

FAMILIES = op_cases.families()
CASES = [case for family in FAMILIES for case in op_cases.load(family)]
GOLDEN = {
    name: entries
    for family in FAMILIES
    for name, entries in golden_values.read(golden_values.DIRECTORY / f"{family}.npz").items()
}
VARIANTS = ("constants", "placeholders", "unknown")
# Relative and absolute.
TOLERANCES = {
    "float64": (1e-11, 1e-13),
    "complex128": (1e-11, 1e-13),
    "float32": (1e-5, 1e-6),
    "complex64": (1e-5, 1e-6),
    "float16": (1e-2, 1e-3),
    "bfloat16": (2e-2, 1e-2),
}
# Ops that the table leaves to a test of their own, each with the reason.
_REMOVED = "the oracle's GraphDef version no longer admits it"
EXEMPT: dict[str, str] = {
    **dict.fromkeys(
        ("MultiDeviceIterator", "MultiDeviceIteratorGetNextFromShard", "MultiDeviceIteratorInit"),
        "tests/data/test_multi_device_iterator.py",
    ),
    **dict.fromkeys(
        (
            *("BucketizeWithInputBoundaries", "BuildCategoricalEqualitySplits", "BuildDenseInequalitySplits"),
            *("BuildSparseInequalitySplits", "CenterTreeEnsembleBias", "CreateQuantileAccumulator"),
            *("CreateStatsAccumulatorScalar", "CreateStatsAccumulatorTensor", "CreateTreeEnsembleVariable"),
            *("DecisionTreeEnsembleResourceHandleOp", "GradientTreesPartitionExamples"),
            *("GradientTreesPrediction", "GradientTreesPredictionVerbose", "GrowTreeEnsemble"),
            *("MakeQuantileSummaries", "QuantileAccumulatorAddSummaries", "QuantileAccumulatorDeserialize"),
            *("QuantileAccumulatorFlush", "QuantileAccumulatorFlushSummary", "QuantileAccumulatorGetBuckets"),
            *("QuantileAccumulatorIsInitialized", "QuantileAccumulatorSerialize", "QuantileBuckets"),
            *("QuantileStreamResourceHandleOp", "Quantiles", "StatsAccumulatorScalarAdd"),
            *("StatsAccumulatorScalarDeserialize", "StatsAccumulatorScalarFlush"),
            *("StatsAccumulatorScalarIsInitialized", "StatsAccumulatorScalarMakeSummary"),
            *("StatsAccumulatorScalarResourceHandleOp", "StatsAccumulatorScalarSerialize"),
            *("StatsAccumulatorTensorAdd", "StatsAccumulatorTensorDeserialize"),
            *("StatsAccumulatorTensorFlush", "StatsAccumulatorTensorIsInitialized"),
            *("StatsAccumulatorTensorMakeSummary", "StatsAccumulatorTensorResourceHandleOp"),
            *("StatsAccumulatorTensorSerialize", "TreeEnsembleDeserialize", "TreeEnsembleIsInitializedOp"),
            *("TreeEnsembleSerialize", "TreeEnsembleStampToken", "TreeEnsembleStats"),
            "TreeEnsembleUsedHandlers",
        ),
        "ops of contrib; tests/contrib/boosted_trees/test_tree_ops.py",
    ),
    **dict.fromkeys(
        (
            *("CreateFertileStatsVariable", "CreateTreeVariable", "DecisionTreeResourceHandleOp"),
            *("FeatureUsageCounts", "FertileStatsDeserialize", "FertileStatsIsInitializedOp"),
            *("FertileStatsResourceHandleOp", "FertileStatsSerialize", "FinalizeTree", "GrowTreeV4"),
            *("ProcessInputV4", "ReinterpretStringToFloat", "TraverseTreeV4", "TreeDeserialize"),
            *("TreeIsInitializedOp", "TreePredictionsV4", "TreeSerialize", "TreeSize", "UpdateModelV4"),
        ),
        "ops of contrib; tests/contrib/tensor_forest/test_forests.py",
    ),
    **dict.fromkeys(
        (
            "BoostedTreesBucketize",
            "BoostedTreesCalculateBestGainsPerFeature",
            "BoostedTreesCenterBias",
            "BoostedTreesCreateEnsemble",
            "BoostedTreesCreateQuantileStreamResource",
            "BoostedTreesDeserializeEnsemble",
            "BoostedTreesEnsembleResourceHandleOp",
            "BoostedTreesExampleDebugOutputs",
            "BoostedTreesFlushQuantileSummaries",
            "BoostedTreesGetEnsembleStates",
            "BoostedTreesMakeQuantileSummaries",
            "BoostedTreesMakeStatsSummary",
            "BoostedTreesPredict",
            "BoostedTreesQuantileStreamResourceAddSummaries",
            "BoostedTreesQuantileStreamResourceDeserialize",
            "BoostedTreesQuantileStreamResourceFlush",
            "BoostedTreesQuantileStreamResourceGetBucketBoundaries",
            "BoostedTreesQuantileStreamResourceHandleOp",
            "BoostedTreesSerializeEnsemble",
            "BoostedTreesTrainingPredict",
            "BoostedTreesUpdateEnsemble",
            "IsBoostedTreesEnsembleInitialized",
            "IsBoostedTreesQuantileStreamResourceInitialized",
        ),
        "ops on resources; tests/ops/forests/test_boosted_trees_ops.py",
    ),
    "SparseFeatureCross": "an op of contrib; tests/contrib/layers/test_feature_column.py",
    "StatefulRandomBinomial": "the oracle leaves its state behind; tests/ops/randomness/test_generators.py",
    **dict.fromkeys(
        (
            "CollectiveAllToAllV2",
            "CollectiveBcastRecv",
            "CollectiveBcastRecvV2",
            "CollectiveBcastSend",
            "CollectiveBcastSendV2",
            "CollectiveGather",
            "CollectiveGatherV2",
            "CollectiveReduce",
            "CollectiveReduceScatterV2",
            "CollectiveReduceV2",
        ),
        "they need several devices; tests/ops/collectives/test_collective_ops.py",
    ),
    **dict.fromkeys(
        ("NcclAllReduce", "NcclBroadcast", "NcclReduce"),
        "TensorFlow has them on GPUs alone; tests/ops/collectives/test_nccl_ops.py",
    ),
    **dict.fromkeys(("NegTrain", "Skipgram"), "tests/ops/networks/test_word_vectors.py"),
    "SkipGramGenerateCandidates": "tests/contrib/text/test_skip_gram_ops.py",
    **dict.fromkeys(
        (
            "AudioSummary",
            "AudioSummaryV2",
            "HistogramSummary",
            "ImageSummary",
            "TensorSummary",
            "TensorSummaryV2",
        ),
        "tests/ops/summaries/test_summary_programs.py",
    ),
    **dict.fromkeys(
        (
            "MergeV2Checkpoints",
            "Restore",
            "RestoreSlice",
            "RestoreV2",
            "Save",
            "SaveSlices",
            "SaveV2",
            "ShardedFilename",
            "ShardedFilespec",
        ),
        "tests/ops/checkpoints/test_saving.py",
    ),
    **dict.fromkeys(
        (
            "AnonymousIterator",
            "AnonymousIteratorV2",
            "IteratorGetNextAsOptional",
            "LatencyStatsDataset",
            "ModelDataset",
            "OptimizeDataset",
            "OptionalFromValue",
            "OptionalGetValue",
            "OptionalHasValue",
            "OptionalNone",
            "OptionsDataset",
            "ExperimentalMapAndBatchDataset",
            "ParallelInterleaveDataset",
            "ParallelInterleaveDatasetV2",
            "ReduceDataset",
            "BatchDataset",
            "BatchDatasetV2",
            "CacheDataset",
            "ConcatenateDataset",
            "DatasetToSingleElement",
            "DenseToSparseBatchDataset",
            "DeserializeIterator",
            "FilterByLastComponentDataset",
            "FilterDataset",
            "FlatMapDataset",
            "GroupByWindowDataset",
            "IgnoreErrorsDataset",
            "InterleaveDataset",
            "Iterator",
            "IteratorFromStringHandle",
            "IteratorFromStringHandleV2",
            "IteratorGetNext",
            "IteratorGetNextSync",
            "IteratorToStringHandle",
            "IteratorV2",
            "MakeIterator",
            "MapAndBatchDataset",
            "MapDataset",
            "OneShotIterator",
            "PaddedBatchDataset",
            "PaddedBatchDatasetV2",
            "ParallelMapDataset",
            "ParallelMapDatasetV2",
            "PrefetchDataset",
            "RandomDataset",
            "RangeDataset",
            "RepeatDataset",
            "ScanDataset",
            "SerializeIterator",
            "ShardDataset",
            "ShuffleDataset",
            "ShuffleAndRepeatDataset",
            "SkipDataset",
            "SloppyInterleaveDataset",
            "SparseTensorSliceDataset",
            "TakeDataset",
            "TensorDataset",
            "TensorSliceDataset",
            "UnbatchDataset",
            "WindowDataset",
            "ZipDataset",
        ),
        "tests/data/pipelines.py",
    ),
    **dict.fromkeys(
        (
            "AnonymousMemoryCache",
            "AnonymousRandomSeedGenerator",
            "AnonymousSeedGenerator",
            "CacheDatasetV2",
            "DeleteMemoryCache",
            "DeleteRandomSeedGenerator",
            "DeleteSeedGenerator",
            "DummyMemoryCache",
            "DummySeedGenerator",
            "ShuffleDatasetV2",
            "ShuffleAndRepeatDataset",
            "ShuffleDatasetV3",
        ),
        "tests/data/test_caches.py",
    ),
    **dict.fromkeys(
        (
            "DecodeAndCropJpeg",
            "DecodeBmp",
            "DecodeGif",
            "DecodeImage",
            "DecodeJpeg",
            "DecodePng",
            "DecodeWebP",
            "EncodeJpeg",
            "EncodeJpegVariableQuality",
            "EncodePng",
            "ExtractJpegShape",
        ),
        "tests/ops/images/test_codec_functions.py",
    ),
    "GenerateVocabRemapping": "tests/ops/checkpoints/test_remapping.py",
    "LoadAndRemapMatrix": "tests/ops/checkpoints/test_remapping.py",
    "EagerPyFunc": "tests/public_names/later_calls.py",
    "SqlDataset": "tests/data/test_databases.py",
    "ExperimentalParseExampleDataset": "tests/data/test_raw_datasets.py",
    "GeneratorDataset": "tests/data/test_raw_datasets.py",
    **dict.fromkeys(
        (
            "SummaryWriter",
            "CreateSummaryFileWriter",
            "WriteRawProtoSummary",
            "WriteSummary",
            "WriteGraphSummary",
            "ImportEvent",
            "FlushSummaryWriter",
            "CloseSummaryWriter",
        ),
        "tests/contrib/summary/test_summary_ops.py",
    ),
    **dict.fromkeys(
        ("DirectedInterleaveDataset", "SlidingWindowDataset", "TakeWhileDataset", "UniqueDataset"),
        "tests/data/test_choosing.py",
    ),
    **dict.fromkeys(
        (
            "ControlTrigger",
            "Enter",
            "Exit",
            "LoopCond",
            "NextIteration",
            "RefEnter",
            "RefExit",
            "RefNextIteration",
        ),
        "tests/ops/control/test_loops.py",
    ),
    **dict.fromkeys(
        (
            "EmptyTensorList",
            *(
                f"TensorList{kind}"
                for kind in (
                    "Concat",
                    "ConcatV2",
                    "ElementShape",
                    "FromTensor",
                    "Gather",
                    "GetItem",
                    "Length",
                    "PopBack",
                    "PushBack",
                    "PushBackBatch",
                    "Reserve",
                    "Resize",
                    "Scatter",
                    "ScatterV2",
                    "ConcatLists",
                    "ScatterIntoExistingList",
                    "SetItem",
                    "Split",
                    "Stack",
                )
            ),
        ),
        "tests/ops/lists/test_tensor_lists.py and tests/ops/control/test_functions.py",
    ),
    **dict.fromkeys(
        ("DeleteSessionTensor", "GetSessionHandle", "GetSessionHandleV2", "GetSessionTensor"),
        "tests/ops/control/test_session_tensors.py",
    ),
    **dict.fromkeys(
        (f"Segment{kind}V2" for kind in ("Max", "Min", "Prod", "Sum")),
        "tests/ops/numbers/test_counted_segments.py: the oracle has no kernel for a host",
    ),
    **dict.fromkeys(
        ("Batch", "BatchFunction", "Unbatch", "UnbatchGrad"), "tests/ops/queues/test_batch_ops.py"
    ),
    **dict.fromkeys(("Abort", "Timestamp"), "tests/ops/control/test_process_ops.py"),
    "DebugNanCount": "tests/ops/control/test_debug_ops.py: the oracle's static shape is not its value's",
    "ImmutableConst": "tests/ops/arrays/test_mapped_constants.py",
    **dict.fromkeys(
        ("RaggedTensorFromVariant", "RaggedTensorToVariant", "RaggedTensorToVariantGradient"),
        "tests/ops/ragged/test_ragged_variants.py",
    ),
    "TileGrad": "tests/ops/arrays/test_tile_sums.py",
    **dict.fromkeys(
        ("AddManySparseToTensorsMap", "AddSparseToTensorsMap", "TakeManySparseFromTensorsMap"),
        "tests/ops/sparse/test_sparse_tensor_maps.py",
    ),
    **dict.fromkeys(
        (
            f"TensorArray{kind}{generation}"
            for kind in (
                "",
                "Close",
                "Concat",
                "Gather",
                "Grad",
                "Read",
                "Scatter",
                "Size",
                "Split",
                "Write",
            )
            for generation in ("", "V2", "V3")
        ),
        "tests/ops/lists/test_tensor_array.py",
    ),
    "TensorArrayGradWithShape": "tests/ops/lists/test_tensor_array.py",
    "TensorArrayPack": "tests/ops/lists/test_tensor_array.py",
    "TensorArrayUnpack": "tests/ops/lists/test_tensor_array.py",
    **dict.fromkeys(
        (
            f"{kind}{version}"
            for kind in (
                "FIFOQueue",
                "PaddingFIFOQueue",
                "PriorityQueue",
                "QueueClose",
                "QueueDequeue",
                "QueueDequeueMany",
                "QueueDequeueUpTo",
                "QueueEnqueue",
                "QueueEnqueueMany",
                "QueueIsClosed",
                "QueueSize",
                "RandomShuffleQueue",
            )
            for version in ("", "V2")
        ),
        "tests/ops/queues/test_queues.py",
    ),
    "FakeQueue": "tests/ops/queues/test_queues.py",
    **dict.fromkeys(
        (
            *(
                f"{kind}HashTable{version}"
                for kind in ("", "Mutable", "MutableDense")
                for version in ("", "V2")
            ),
            *(f"AnonymousMutable{kind}" for kind in ("DenseHashTable", "HashTable", "HashTableOfTensors")),
            *("AnonymousHashTable", "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2"),
            *(f"InitializeTable{kind}" for kind in ("", "V2", "FromTextFile", "FromTextFileV2")),
            *(
                f"LookupTable{kind}{version}"
                for kind in ("Export", "Find", "Import", "Insert", "Size")
                for version in ("", "V2")
            ),
            "LookupTableRemoveV2",
        ),
        "tests/ops/lookup/test_table_ops.py and tests/ops/lookup/test_mutable_tables.py",
    ),
    **dict.fromkeys(
        (f"Barrier{k}" for k in ("", "Close", "IncompleteSize", "InsertMany", "ReadySize", "TakeMany")),
        "tests/ops/queues/test_barriers.py",
    ),
    **dict.fromkeys(
        (
            *(
                "SparseConditionalAccumulator",
                "SparseAccumulatorApplyGradient",
                "SparseAccumulatorTakeGradient",
            ),
            *("ConditionalAccumulator", "ResourceConditionalAccumulator"),
            *(
                f"{generation}Accumulator{kind}"
                for generation in ("", "Resource")
                for kind in ("ApplyGradient", "NumAccumulated", "SetGlobalStep", "TakeGradient")
            ),
        ),
        "tests/ops/queues/test_accumulators.py",
    ),
    **dict.fromkeys(
        ("ConsumeMutexLock", "MutexAcquire", "MutexLock", "MutexRelease", "MutexV2"),
        "tests/ops/control/test_mutexes.py",
    ),
    **dict.fromkeys(
        ("Stage", "StageClear", "StagePeek", "StageSize", "Unstage"), "tests/ops/queues/test_staging.py"
    ),
    **dict.fromkeys(
        (
            f"{order}Map{kind}"
            for order in ("", "Ordered")
            for kind in ("Clear", "IncompleteSize", "Peek", "Size", "Stage", "Unstage", "UnstageNoKey")
        ),
        "tests/ops/queues/test_staging.py",
    ),
    **dict.fromkeys(
        (f"Stack{kind}{version}" for kind in ("", "Close", "Pop", "Push") for version in ("", "V2")),
        "tests/ops/lists/test_stacks.py",
    ),
    **dict.fromkeys(
        (
            "Case",
            "For",
            "If",
            "PartitionedCall",
            "RemoteCall",
            "StatefulPartitionedCall",
            "StatelessCase",
            "StatelessIf",
            "StatelessWhile",
            "SymbolicGradient",
            "ToBool",
            "While",
        ),
        "tests/ops/control/test_functions.py",
    ),
    **dict.fromkeys(
        (
            *(f"BatchMatrix{kind}" for kind in ("BandPart", "Diag", "DiagPart", "SetDiag")),
            *(
                f"BatchMatrix{kind}"
                for kind in ("Determinant", "Inverse", "Solve", "SolveLs", "TriangularSolve")
            ),
            *("BatchCholesky", "BatchCholeskyGrad"),
            *("BatchSelfAdjointEig", "BatchSelfAdjointEigV2", "BatchSvd"),
        ),
        _REMOVED + "; tests/ops/algebra/test_batch_forms.py",
    ),
    **dict.fromkeys(
        (f"Batch{inverse}FFT{kind}" for inverse in ("", "I") for kind in ("", "2D", "3D")),
        _REMOVED + "; tests/ops/signals/test_signals.py",
    ),
    "MatrixExponential": _REMOVED + "; tests/ops/algebra/test_matrix_functions.py",
    "SelfAdjointEig": _REMOVED + "; tests/ops/algebra/test_factors.py",
    "Assert": "tests/ops/control/test_conditionals.py",
    "Const": "every case on constants; tests/ops/arrays/test_constants.py",
    "ExtractVolumePatches": "the oracle infers rank 4; tests/ops/images/test_volume_patches.py",
    "MatchingFiles": "tests/ops/readers/test_files.py",
    **dict.fromkeys(
        (
            "FixedLengthRecordDataset",
            "FixedLengthRecordDatasetV2",
            "MatchingFilesDataset",
            "TFRecordDataset",
            "TextLineDataset",
        ),
        "tests/data/test_readers.py",
    ),
    **dict.fromkeys(("ReadFile", "WriteFile"), "tests/ops/readers/test_file_contents.py"),
    "RecordInput": "tests/ops/readers/test_record_input.py",
    **dict.fromkeys(
        (
            "LMDBReader",
            *(
                f"{kind}{version}"
                for kind in (
                    "FixedLengthRecordReader",
                    "IdentityReader",
                    "ReaderNumRecordsProduced",
                    "ReaderNumWorkUnitsCompleted",
                    "ReaderRead",
                    "ReaderReadUpTo",
                    "ReaderReset",
                    "ReaderRestoreState",
                    "ReaderSerializeState",
                    "TFRecordReader",
                    "TextLineReader",
                    "WholeFileReader",
                )
                for version in ("", "V2")
            ),
        ),
        "tests/ops/readers/test_readers.py",
    ),
    "Merge": "tests/ops/control/test_control_flow.py",
    "MergeSummary": "tests/ops/summaries/test_summaries.py",
    "NoOp": "tests/ops/control/test_control_flow.py",
    "Placeholder": "every case on placeholders; tests/ops/arrays/test_constants.py",
    "PlaceholderV2": _REMOVED + "; tests/ops/arrays/test_constants.py",
    "Print": "tests/ops/control/test_reporting.py",
    "PrintV2": "tests/ops/control/test_reporting.py",
    "PyFunc": "tests/ops/control/test_script.py",
    "PyFuncStateless": "tests/ops/control/test_script.py",
    "RefMerge": "tests/ops/control/test_control_flow.py",
    "RefSwitch": "tests/ops/control/test_control_flow.py",
    "ScalarSummary": "tests/ops/summaries/test_summaries.py",
    "Switch": "tests/ops/control/test_control_flow.py",
    "_HostScalar": "tests/rewriting/simplification/test_scalar_arguments.py",
    "_Scalar": "tests/rewriting/simplification/test_scalar_arguments.py",
    "_Value": "tests/rewriting/loops/test_switch_predicates.py",
    "DestroyResourceOp": "tests/ops/variables/test_stateful.py",
    "DestroyTemporaryVariable": "tests/ops/variables/test_stateful.py",
    "TemporaryVariable": "tests/ops/variables/test_stateful.py",
    "VarHandleOp": "every case with a resource variable; tests/ops/variables/test_variables.py",
    "Variable": "tests/ops/variables/test_stateful.py",
    "VariableV2": "every case with a reference variable; tests/ops/variables/test_variables.py",
    **dict.fromkeys(
        ("CudnnRNN", "CudnnRNNBackprop"),
        "the oracle has them on GPUs only; tests/ops/networks/test_cudnn_rnn.py",
    ),
    "GatherTree": "the oracle does not have it; tests/contrib/seq2seq/test_decoding.py",
    **dict.fromkeys(
        ("MaskedMatmul", "WALSComputePartialLhsAndRhs"),
        "the oracle does not have them; tests/ops/algebra/test_matrix_factorization.py",
    ),
    "CTCLossV2": "the oracle has it on GPUs only; tests/ops/networks/test_ctc.py",
    **dict.fromkeys(
        ("Conv2DBackpropFilterV2", "Conv2DBackpropInputV2"),
        "the oracle has no kernel for them; tests/ops/networks/test_convolution_gradients.py",
    ),
    **dict.fromkeys(
        ("FractionalAvgPool", "FractionalMaxPool"),
        "cuts are random, and the oracle infers too few; tests/ops/networks/test_fractional_pooling.py",
    ),
    **dict.fromkeys(
        (
            "QuantizedBatchNormWithGlobalNormalization",
            "QuantizedInstanceNorm",
            "QuantizedResizeBilinear",
        ),
        "the oracle computes with few bits; tests/ops/quantization/test_images.py",
    ),
    "QuantizeAndDequantize": _REMOVED + "; tests/ops/quantization/test_rounding.py",
    "QuantizedReluX": "the oracle has no kernel for it; tests/ops/quantization/test_layers.py",
    "MaxPoolGradGradWithArgmax": "the oracle has it on GPUs only",
    "RandomPoisson": _REMOVED,
    "CompareAndBitpack": "the oracle does not have it; tests/ops/numbers/test_bits.py",
    "TopK": "the oracle has no kernel for it any more; tests/framework/test_deprecated_ops.py",
    "_Arg": "a plan's own, every fed case",
    "_CopyFromHost": "a plan's own; tests/rewriting/memory/test_swapping.py",
    "_CopyToHost": "a plan's own; tests/rewriting/memory/test_swapping.py",
    "_ApplyProduct": "a plan's own; tests/lowering/updates/test_update_fusion.py",
    "_ResourceApplyProduct": "a plan's own; tests/lowering/updates/test_update_fusion.py",
    "_JointDescent": "a plan's own; tests/lowering/updates/test_joint_descents.py",
    "_ResourceJointDescent": "a plan's own; tests/lowering/updates/test_joint_descents.py",
    "_ApplySum": "a plan's own; tests/lowering/updates/test_update_fusion.py",
    "_ResourceApplySum": "a plan's own; tests/lowering/updates/test_update_fusion.py",
    "_BiasedConv2D": "a plan's own; tests/lowering/products/test_fusion.py",
    "_MaxPoolGradAtPlaces": "a plan's own; tests/lowering/convolutions/test_pooling_fusion.py",
    "_NormalizedBatch": "a plan's own; tests/lowering/convolutions/test_batch_normalization.py",
    "_NormalizedBatchGrad": "a plan's own; tests/lowering/convolutions/test_batch_normalization.py",
    "_JoinedFilters": "a plan's own; tests/lowering/convolutions/test_joined_convolutions.py",
    "_JoinedReluGrad": "a plan's own; tests/lowering/convolutions/test_joined_convolutions.py",
    "_MaxPoolWithPlaces": "a plan's own; tests/lowering/convolutions/test_pooling_fusion.py",
    "_PackedConstant": "a plan's own; tests/lowering/packing/test_weight_packing.py",
    "_PackedMatMul": "a plan's own; tests/lowering/packing/test_weight_packing.py",
    "_PackedResourceWeights": "a plan's own; tests/lowering/packing/test_weight_packing.py",
    "_PackedWeights": "a plan's own; tests/lowering/packing/test_weight_packing.py",
    "_AddedMatMul": "a plan's own; tests/lowering/products/test_fusion.py",
    "_ProductCluster": "a plan's own; tests/lowering/products/test_product_clusters.py",
    "_NarrowLayer": "a plan's own; tests/lowering/products/test_narrow_layers.py",
    "_Cluster": "a plan's own; tests/lowering/clusters/test_cluster_kernel.py",
    "_DrawingProgram": "a plan's own; tests/lowering/programs/test_random_statements.py",
    "_Program": "a plan's own; tests/lowering/programs/test_program_kernel.py",
    "_FusedMatMul": "a plan's own; tests/lowering/products/test_fusion.py",
    "_MaskAccidentalHits": "a plan's own; tests/lowering/losses/test_accidental_hits.py",
    "_GroupedResourceUpdate": "a plan's own; tests/lowering/updates/test_grouped_updates.py",
    "_GroupedUpdate": "a plan's own; tests/lowering/updates/test_grouped_updates.py",
    "_RowResourceUpdate": "a plan's own; tests/lowering/updates/test_compiled_rows.py",
    "_RowUpdate": "a plan's own; tests/lowering/updates/test_compiled_rows.py",
    "_DecayedResourceRowUpdate": "a plan's own; tests/lowering/updates/test_decayed_rows.py",
    "_DecayedRowUpdate": "a plan's own; tests/lowering/updates/test_decayed_rows.py",
    "_ProgramUpdate": "a plan's own; tests/lowering/updates/test_program_updates.py",
    "_ResourceProgramUpdate": "a plan's own; tests/lowering/updates/test_program_updates.py",
    "_HostRecv": "a plan's own; tests/runtime/process/test_device_types.py",
    "_HostSend": "a plan's own; tests/runtime/process/test_device_types.py",
    "_StackByColumns": "a plan's own; tests/lowering/products/test_sums.py",
    "_DepthwiseConv2D": "a plan's own; tests/lowering/convolutions/test_depthwise.py",
    "_DepthwiseConv2DBackpropFilter": "a plan's own; tests/lowering/convolutions/test_depthwise.py",
    "_DepthwiseConv2DBackpropInput": "a plan's own; tests/lowering/convolutions/test_depthwise.py",
    "_JoinedRows": "a plan's own; tests/lowering/arrays/test_joined_rows.py",
    "_KeptByMargin": "a plan's own; tests/lowering/arrays/test_dropout_choices.py",
    "_PresentRows": "a plan's own; tests/lowering/arrays/test_present_rows.py",
    "_PickedSum": "a plan's own; tests/lowering/arrays/test_picked_sums.py",
    "_KeptRows": "a plan's own; tests/lowering/arrays/test_filled_rows.py",
    "_FilledSums": "a plan's own; tests/lowering/arrays/test_filled_rows.py",
    "_SpreadRows": "a plan's own; tests/lowering/arrays/test_spread_rows.py",
    "_LSTMLayer": "a plan's own; tests/lowering/recurrences/test_lstm_layers.py",
    "_CountTrue": "a plan's own; tests/lowering/arrays/test_truth_counts.py",
    "_LSTMLayerGradient": "a plan's own; tests/lowering/recurrences/test_lstm_layers.py",
    "_LSTMSequence": "a plan's own; tests/lowering/recurrences/test_lstm_loops.py",
    "_LSTMSequenceGradient": "a plan's own; tests/lowering/recurrences/test_lstm_loops.py",
    "_ProductSum": "a plan's own; tests/lowering/products/test_sums.py",
    "_ProductSumAdd": "a plan's own; tests/lowering/products/test_sums.py",
    "_ProductSumTotal": "a plan's own; tests/lowering/products/test_sums.py",
    "_Recv": "a plan's own; tests/runtime/execution/test_partitioned_program.py",
    "_Send": "a plan's own; tests/runtime/execution/test_partitioned_program.py",
    "_SoftmaxCrossEntropyTotal": "a plan's own; tests/lowering/losses/test_loss_fusion.py",
    "_SparseSoftmaxCrossEntropyTotal": "a plan's own; tests/lowering/losses/test_loss_fusion.py",
    "_SparseConv2DGradient": "a plan's own; tests/lowering/convolutions/test_sparse_gradients.py",
    "_SpreadConv2D": "a plan's own; tests/lowering/convolutions/test_spreading.py",
    "_SpreadConv2DBackpropFilter": "a plan's own; tests/lowering/convolutions/test_spreading.py",
    "_TiledConv2D": "a plan's own; tests/lowering/convolutions/test_tiles.py",
    "_TiledConv2DBackpropFilter": "a plan's own; tests/lowering/convolutions/test_tiles.py",
    "_TiledConv2DBackpropInput": "a plan's own; tests/lowering/convolutions/test_tiles.py",
    "_TiledFilter": "a plan's own; tests/lowering/convolutions/test_tiles.py",
    "_WinogradConv2D": "a plan's own; tests/lowering/convolutions/test_winograd.py",
    "_WinogradConv2DBackpropFilter": "a plan's own; tests/lowering/convolutions/test_winograd.py",
    "_WinogradConv2DBackpropInput": "a plan's own; tests/lowering/convolutions/test_winograd.py",
    "_WinogradFilter": "a plan's own; tests/lowering/convolutions/test_winograd.py",
}


class Subject:
    """A case as a graph of Flowstone.

    `given` maps an input's position to its placeholder or variable, `built` a variant to its operation and
    `failures` to what was raised instead.
    """

    def __init__(self, case: Case, variants: Sequence[str] = VARIANTS) -> None:
        self.case = case
        self.graph = tf.Graph()
        self.inputs = case.inputs()
        self.given: dict[str, Any] = {}
        self.feed: dict[Any, np.ndarray] = {}
        self.built: dict[str, Any] = {}
        self.failures: dict[str, Exception] = {}
        deprecated = registry[case.op].deprecated
        if deprecated is not None:
            self.graph.producer = deprecated[0] - 1
        with self.graph.as_default():
            for position, one in positions(self.inputs):
                if one.role != "tensor":
                    self.given[position] = tf.Variable(one.value, use_resource=one.role == "resource")
            for variant in variants:
                try:
                    self.built[variant] = self._build(variant)
                except Exception as error:
                    if not case.error:
                        raise
                    self.failures[variant] = error

    def _build(self, variant: str) -> Any:
        """The operation that the op's declaration adds to the graph."""
        arguments = [
            [self._argument(variant, f"{index}.{item}", part) for item, part in enumerate(one)]
            if isinstance(one, list)
            else self._argument(variant, str(index), one)
            for index, one in enumerate(self.inputs)
        ]
        result = registry[self.case.op](*arguments, **self._attributes())
        while isinstance(result, (list, tuple)):
            result = result[0]
        return getattr(result, "op", result)

    def _attributes(self) -> dict[str, Any]:
        return {
            name: tf.as_dtype(value)
            if isinstance(value, str) and op_cases.dtype_name(value) in op_cases.NUMPY_DTYPES
            else value
            for name, value in self.case.attributes.items()
        }

    def _argument(self, variant: str, position: str, one: Input) -> Any:
        if one.role == "variable":
            return self.given[position]._ref()
        if one.role == "resource":
            return self.given[position].handle
        if variant == "constants":
            return tf.constant(one.value, dtype=tf.as_dtype(one.dtype))
        holder = tf.placeholder(
            tf.as_dtype(one.dtype), one.value.shape if variant == "placeholders" else None
        )
        if variant == "placeholders":
            self.given[position] = holder
        self.feed[holder] = one.value
        return holder

    def start(self) -> Any:
        """A session whose variables hold their first values."""
        session = tf.Session(graph=self.graph)
        for position, one in positions(self.inputs):
            if one.role != "tensor" and one.initialized:
                session.run(self.given[position].initializer)
        return session

    def run(self, session: Any, variant: str = "placeholders") -> list[np.ndarray]:
        """The values of the outputs."""
        operation = self.built[variant]
        values = session.run(list(operation.outputs) or operation, self._feed_of(operation))
        return [np.asarray(value) for value in values or []]

    def _feed_of(self, operation: Any) -> dict[Any, np.ndarray]:
        return {holder: value for holder, value in self.feed.items() if holder in set(operation.inputs)}

    def gradients(self, session: Any, wanted: Sequence[str]) -> list[np.ndarray | None]:
        """The gradients with respect to the inputs at these positions, given the case's gradients of the
        outputs."""
        operation = self.built["placeholders"]
        outputs, flows = [], []
        for index, (output, value) in enumerate(zip(operation.outputs, self.run(session), strict=True)):
            dtype = output.dtype.base_dtype.name
            if op_cases.is_differentiable(dtype) and self.case.compares(index):
                outputs.append(output)
                flow = self.case.output_gradient(index, value.shape, dtype)
                flows.append(tf.constant(flow, dtype=tf.as_dtype(dtype)))
        found = tf.gradients(outputs, [self.given[position] for position in wanted], flows)
        feed = self._feed_of(operation)
        return [
            None if gradient is None else np.asarray(session.run(tf.convert_to_tensor(gradient), feed))
            for gradient in found
        ]


def positions(inputs: Sequence[Input | list[Input]]) -> Iterator[tuple[str, Input]]:
    """Every tensor input with its position: "1", or "1.0" in a list argument."""
    for index, one in enumerate(inputs):
        if isinstance(one, list):
            yield from ((f"{index}.{item}", part) for item, part in enumerate(one))
        else:
            yield str(index), one


def cases(*keys: str) -> pytest.MarkDecorator:
    """Parametrise by the cases whose golden entries have a key that starts with one of these."""
    chosen = [case for case in CASES if any(key.startswith(keys) for key in GOLDEN.get(case.id, {}))]
    return pytest.mark.parametrize("case", chosen, ids=[case.id for case in chosen])


def assert_agrees(case: Case, what: str, actual: np.ndarray, expected: np.ndarray) -> None:
    """Equal dtype, shape and, up to the tolerance of the case or dtype, values."""
    assert actual.shape == expected.shape, what
    dtype = op_cases.dtype_name(expected.dtype)
    if dtype == "string":
        # A bare comparison would let b"a" equal a str of the same text through NumPy's own string dtypes.
        assert [bytes(item) for item in actual.reshape(-1)] == list(expected.reshape(-1)), what
        return
    assert op_cases.dtype_name(actual.dtype) == dtype, what
    if dtype not in TOLERANCES:
        np.testing.assert_array_equal(actual, expected, err_msg=what)
        return
    rtol, atol = TOLERANCES[dtype]
    wide = np.complex128 if dtype.startswith("complex") else np.float64
    np.testing.assert_allclose(
        actual.astype(wide),
        expected.astype(wide),
        rtol=rtol if case.rtol is None else case.rtol,
        atol=atol if case.atol is None else case.atol,
        err_msg=what,
    )
    if case.signed_zeros and dtype.startswith(("float", "bfloat")):
        zeros = expected == 0
        np.testing.assert_array_equal(np.signbit(actual[zeros]), np.signbit(expected[zeros]), err_msg=what)


@cases("dtypes")
def test_values_dtypes_and_state(case: Case) -> None:
    """The outputs, and the variables afterwards, are the oracle's."""
    golden = GOLDEN[case.id]
    subject = Subject(case, ["placeholders"])
    with subject.graph.as_default(), subject.start() as session:
        values = subject.run(session)
        outputs = subject.built["placeholders"].outputs
        assert [output.dtype.base_dtype.name for output in outputs] == golden["dtypes"]
        for index, value in enumerate(values):
            if case.compares(index):
                assert_agrees(case, f"output {index}", value, golden[f"out/{index}"])
        for position, one in positions(subject.inputs):
            if f"after/{position}" in golden:
                after = np.asarray(session.run(subject.given[position].read_value()))
                assert_agrees(case, f"variable {position}", after, golden[f"after/{position}"])
            elif one.role != "tensor":
                with pytest.raises(tf.errors.FailedPreconditionError):
                    session.run(subject.given[position].read_value())


# Outputs of inference's gradient, of which TensorFlow 1.15 and later ones say different sizes.
SIZES_LEFT_OPEN = {f"FusedBatchNormGrad{version}": (3, 4) for version in ("", "V2", "V3")}


@cases("shape/")
def test_static_shapes(case: Case) -> None:
    """As much is known of the outputs' shapes as the oracle knows, and the run agrees with it."""
    golden = GOLDEN[case.id]
    variants = [variant for variant in VARIANTS if f"shape/{variant}" in golden]
    subject = Subject(case, variants)
    for variant in variants:
        shapes = [static_shape(output) for output in subject.built[variant].outputs]
        known = list(golden[f"shape/{variant}"])
        for index in SIZES_LEFT_OPEN.get(case.op, ()):
            if shapes[index] == [None]:
                known[index] = [None]
        assert shapes == known, variant
        for index, shape in enumerate(shapes):
            if shape is not None and f"out/{index}" in golden:
                actual = golden[f"out/{index}"].shape
                assert len(shape) == len(actual)
                assert all(size in (None, real) for size, real in zip(shape, actual, strict=True))


def static_shape(output: Any) -> list[int | None] | None:
    """The inferred shape in the notation of the golden files."""
    return None if output.shape.ndims is None else output.shape.as_list()


def _is_nothing(gradient: Any) -> bool:
    """Later TensorFlows have no gradient where 1.15 has one of no elements."""
    return gradient is None or np.size(gradient) == 0


@cases("grad/", "nograd")
def test_gradients(case: Case) -> None:
    """The gradients are the oracle's, None where its are None, and asking fails where it has none."""
    golden = GOLDEN[case.id]
    subject = Subject(case, ["placeholders"])
    wanted = [position for position, one in positions(subject.inputs) if case.differentiable(one)]
    with subject.graph.as_default(), subject.start() as session:
        if "nograd" in golden:
            with pytest.raises(LookupError):
                subject.gradients(session, wanted)
            return
        for position, gradient in zip(wanted, subject.gradients(session, wanted), strict=True):
            expected = golden[f"grad/{position}"]
            assert _is_nothing(gradient) == _is_nothing(expected), f"gradient {position}"
            if gradient is not None and expected is not None:
                assert_agrees(case, f"gradient {position}", gradient, expected)


@cases("error")
def test_errors(case: Case) -> None:
    """Building or running raises the class that the oracle raises, at the same stage."""
    golden = GOLDEN[case.id]["error"]
    subject = Subject(case)
    found = {}
    for variant in VARIANTS:
        failure, stage = subject.failures.get(variant), "build"
        if failure is None:
            with subject.graph.as_default(), subject.start() as session:
                try:
                    subject.run(session, variant)
                except Exception as error:
                    failure, stage = error, "run"
        found[variant] = [stage, type(failure).__name__] if failure else ["none", ""]
    assert found == golden


def test_every_case_has_its_answer() -> None:
    """A case added to a table needs `make_op_goldens.py` to be run."""
    assert [case.id for case in CASES if case.id not in GOLDEN] == []
    assert sorted(GOLDEN.keys() - {case.id for case in CASES}) == []


def test_ids_are_unique_across_tables() -> None:
    """Answers are looked up by id alone."""
    assert len({case.id for case in CASES}) == len(CASES)


def test_every_case_has_its_op() -> None:
    """A table names no op that is not declared."""
    assert sorted({case.op for case in CASES} - set(registry)) == []


def test_every_op_has_a_case() -> None:
    """An op without a case fails here, unless it is exempt, and no exemption outlives its reason."""
    tested = {case.op for case in CASES}
    assert sorted(set(registry) - tested - EXEMPT.keys()) == []
    assert sorted(EXEMPT.keys() & tested) == []
