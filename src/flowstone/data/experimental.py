"""Transformations that are applied with `Dataset.apply`: `tf.data.experimental`, `tf.contrib.data` before.

Each function here returns a function from a Dataset to a Dataset; besides there is the dataset of a database.
What few programs use lies in files of its family, and is imported when asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.data.arguments import as_bool, as_int64, prefixed_by, seed_tensors
from flowstone.data.dataset import Dataset, op_dataset
from flowstone.data.functions import DatasetFunction, MapFunction, state_function, with_function
from flowstone.data.readers import SqlDataset
from flowstone.data.structure import Leaf, Structure, components, converted
from flowstone.framework.declarations.operation import F
from flowstone.framework.names.late_names import late_names
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape

__all__ = [
    "SqlDataset",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "get_single_element",
    "group_by_window",
    "ignore_errors",
    "map_and_batch",
    "map_and_batch_with_legacy_function",
    "scan",
    "shuffle_and_repeat",
    "unbatch",
]

__getattr__, __dir__ = late_names(
    globals(),
    {
        "flowstone.data.bucketing": "bucket_by_sequence_length",
        "flowstone.data.cardinality": "cardinality",
        "flowstone.data.choosing": "Counter RandomDataset choose_from_datasets parallel_interleave"
        " sample_from_datasets take_while unique",
        "flowstone.data.csv_files": "CsvDataset make_csv_dataset",
        "flowstone.data.dataset_functions": "AUTOTUNE INFINITE_CARDINALITY UNKNOWN_CARDINALITY",
        "flowstone.data.device_transfers": "copy_to_device prefetch_to_device",
        "flowstone.data.example_files": "make_batched_features_dataset parse_example_dataset",
        "flowstone.data.iterator_checkpoints": "CheckpointInputPipelineHook make_saveable_from_iterator",
        "flowstone.data.optional": "Optional get_next_as_optional",
        "flowstone.data.options": "ThreadingOptions",
        "flowstone.data.reducing": "Reducer group_by_reducer",
        "flowstone.data.resampling": "rejection_resample",
        "flowstone.data.specs": "DatasetStructure OptionalStructure SparseTensorStructure Structure"
        " TensorArrayStructure TensorStructure get_structure",
        "flowstone.data.refused_names": "TFRecordWriter",
    },
)

Transformation = Callable[[Dataset], Dataset]


def dense_to_sparse_batch(batch_size: Any, row_shape: Any) -> Transformation:
    """Batches of `batch_size` tensors of different shapes as SparseTensors ``[batch, *row_shape]``.

    None or -1 in `row_shape` is the longest of the batch. The elements are single tensors (TypeError).
    """

    def apply(dataset: Dataset) -> Dataset:
        leaves = dataset._structure.leaves
        if len(leaves) != 1 or leaves[0].is_sparse or dataset._structure.form is not leaves[0]:
            raise TypeError("DenseToSparseDataset requires a dataset whose elements are tensors.")
        shape = TensorShape(row_shape)
        row = convert_to_tensor([-1 if n.value is None else n.value for n in shape], dtypes.int64)
        form = Leaf(SparseTensor, leaves[0].dtype, TensorShape([None]).concatenate(shape))
        structure, size = Structure(form), as_int64(batch_size, "batch_size")
        return op_dataset("DenseToSparseBatchDataset", structure, lambda: F.DenseToSparseBatchDataset(
            dataset._as_variant_tensor(), size, row, **structure.attributes))  # fmt: skip

    return apply


def enumerate_dataset(start: Any = 0) -> Transformation:
    """(number, element) of each element, int64 numbers from `start` on."""
    return lambda dataset: Dataset.enumerate(dataset, start)


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[[Any, Dataset], Dataset],
    window_size: Any = None,
    window_size_func: Callable[[Any], Any] | None = None,
) -> Transformation:
    """The elements of ``reduce_func(key, window)`` for each window of elements of one key.

    ``key_func(element)`` is an int64 scalar. A window has `window_size` elements, or
    ``window_size_func(key)``; what is left at the end makes smaller ones. ValueError unless exactly one of
    the two is given, and for keys of another type.
    """
    if (window_size is None) == (window_size_func is None):
        raise ValueError("Must pass either window_size or window_size_func.")
    size_of = window_size_func or (lambda key: convert_to_tensor(window_size, dtypes.int64))
    number = Structure.of(dtypes.int64, [])

    def apply(dataset: Dataset) -> Dataset:
        elements = dataset._structure
        key = _number(MapFunction(key_func, elements, name="tf_key_func"), "`key_func`")
        sizes = _number(MapFunction(size_of, number, name="tf_window_size_func"), "`window_size_func`")
        window = Structure.of((dtypes.int64, dtypes.variant), ([], []))

        def reduce(key_tensor: Tensor, window_tensor: Tensor) -> Any:
            return reduce_func(key_tensor, op_dataset("WindowDataset", elements, lambda: window_tensor))

        reducer = DatasetFunction(reduce, window, name="tf_reduce_func", what="reduce_func")
        structure = reducer.dataset._structure
        graph_of = get_default_graph

        def make() -> Tensor:
            return F.GroupByWindowDataset(
                dataset._as_variant_tensor(), key.captured, reducer.captured, sizes.captured,
                key_func=key.name_in(graph_of()), reduce_func=reducer.name_in(graph_of()),
                window_size_func=sizes.name_in(graph_of()),
                Tkey_func_other_arguments=key.captured_types,
                Treduce_func_other_arguments=reducer.captured_types,
                Twindow_size_func_other_arguments=sizes.captured_types, **structure.attributes,
            )  # fmt: skip

        return op_dataset("GroupByWindowDataset", structure, make)

    return apply


def _number(function: MapFunction, what: str) -> MapFunction:
    leaves = function.structure.leaves
    if len(leaves) != 1 or leaves[0].dtype is not dtypes.int64 or leaves[0].shape.ndims not in (0, None):
        raise ValueError(f"{what} must return a single tf.int64 tensor.")
    return function


def ignore_errors() -> Transformation:
    """The elements that raise no error."""

    def apply(dataset: Dataset) -> Dataset:
        structure = dataset._structure
        return op_dataset("IgnoreErrorsDataset", structure, lambda: F.IgnoreErrorsDataset(
            dataset._as_variant_tensor(), **structure.attributes))  # fmt: skip

    return apply


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: bool = False,
    num_parallel_calls: Any = None,
) -> Transformation:
    """``dataset.map(map_func).batch(batch_size)``, with the calls for `num_parallel_batches` batches, or
    `num_parallel_calls`, at once. ValueError for both."""
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise ValueError("`map_and_batch` allows only one of num_parallel_batches and num_parallel_calls.")

    def apply(dataset: Dataset) -> Dataset:
        calls = num_parallel_calls
        if calls is None:
            calls = batch_size * (1 if num_parallel_batches is None else num_parallel_batches)
        function = MapFunction(map_func, dataset._structure, name="tf_map_func")
        size = as_int64(batch_size, "batch_size")
        calls, drops = as_int64(calls, "num_parallel_calls"), as_bool(drop_remainder, "drop_remainder")
        structure = function.structure.with_shapes(prefixed_by(size, drops))
        return op_dataset("MapAndBatchDataset", structure, lambda: with_function(
            F.ExperimentalMapAndBatchDataset, dataset, function, structure, [size, calls, drops],
            name="MapAndBatchDataset", preserve_cardinality=True))  # fmt: skip

    return apply


map_and_batch_with_legacy_function = map_and_batch


def scan(initial_state: Any, scan_func: Callable[[Any, Any], Any]) -> Transformation:
    """The elements that ``scan_func(state, element)``, which gives (state, element), makes of each element
    and the state before. TypeError or ValueError if it gives something else."""

    def apply(dataset: Dataset) -> Dataset:
        values = converted(initial_state)
        function, _ = state_function(
            scan_func, Structure.of_values(values), dataset._structure, _next_state, "tf_scan_func"
        )
        structure = Structure(function.structure.form[1])
        return op_dataset("ScanDataset", structure, lambda: F.ScanDataset(
            dataset._as_variant_tensor(), components(values), function.captured,
            f=function.name_in(get_default_graph()), Targuments=function.captured_types,
            **structure.attributes))  # fmt: skip

    return apply


def _next_state(form: Any) -> Any:
    if not isinstance(form, tuple) or len(form) != 2:
        raise TypeError("The scan function must return a pair comprising the new state and the output value.")
    return form[0]


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Transformation:
    """``dataset.shuffle(buffer_size, seed).repeat(count)``."""

    def apply(dataset: Dataset) -> Dataset:
        size, number = as_int64(buffer_size, "buffer_size"), as_int64(-1 if count is None else count, "count")
        seeds, structure = seed_tensors(seed), dataset._structure
        return op_dataset("ShuffleAndRepeatDataset", structure, lambda: F.ShuffleAndRepeatDataset(
            dataset._as_variant_tensor(), size, *seeds, number, **structure.attributes))  # fmt: skip

    return apply


def unbatch() -> Transformation:
    """The elements of batches. ValueError for components that are scalars."""
    return Dataset.unbatch


def get_single_element(dataset: Dataset) -> Any:
    """The element of a dataset that has only one; InvalidArgumentError, while running, for others."""
    structure = dataset._structure
    tensors: Any = F.DatasetToSingleElement(dataset._as_variant_tensor(), **structure.attributes)
    return structure.unpacked(tensors)
