"""`Dataset`: a description of elements, made of others step by step; see `tf.data`.

A Dataset adds its op to the graph that is the default one when it is made; in another graph, such as that
of a function, it adds those of all that it is made of anew.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flowstone.data.arguments import as_bool, as_int64, prefixed_by, seed_tensors
from flowstone.data.elements import Described
from flowstone.data.found_files import found_files
from flowstone.data.functions import DatasetFunction, MapFunction, state_function, with_function
from flowstone.data.generators import generated
from flowstone.data.iterator import Iterator, initializable_iterator, one_shot_iterator
from flowstone.data.options import Options, Tunable, as_optimized, is_made_apart
from flowstone.data.padding import padded_shapes_of, padding_values_of
from flowstone.data.structure import Structure, components, converted, flatten, packed, sliced
from flowstone.data.windows import Windowed
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import SparseTensor, SparseTensorValue
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.datasets.mapping import AUTOTUNE

__all__ = ["Dataset"]


class Dataset(Described, Tunable, Windowed, ABC):
    """A sequence of elements: nested tuples and dicts of tensors, sparse tensors and datasets.

    Each method returns a new Dataset. `output_types`, `output_shapes` and `output_classes` are nested as the
    elements are.
    """

    # ---- what it is

    @abstractmethod
    def _as_variant_tensor(self) -> Tensor:
        """The dataset as a tensor of the default graph."""

    @property
    @abstractmethod
    def output_classes(self) -> Any:
        """The class of each component, Tensor or SparseTensor."""

    @property
    @abstractmethod
    def output_shapes(self) -> Any:
        """The TensorShape of each component."""

    @property
    @abstractmethod
    def output_types(self) -> Any:
        """The DType of each component."""

    @property
    def _structure(self) -> Structure:
        return Structure.of(self.output_types, self.output_shapes, self.output_classes)

    @staticmethod
    def _of_op(kind: str, structure: Structure, make: Callable[[], Tensor]) -> Dataset:
        return op_dataset(kind, structure, make)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._structure}>"

    def __iter__(self) -> Any:
        """RuntimeError: the elements of a dataset are tensors, which an iterator's `get_next` has."""
        raise RuntimeError(
            "Only functions that AutoGraph converts (tf.function) loop over a dataset. "
            "In a graph, take the tensors of its iterator: dataset.make_one_shot_iterator().get_next()."
        )

    # ---- iterators

    def make_one_shot_iterator(self) -> Iterator:
        """An iterator that passes over the dataset once and needs no initialiser.

        ValueError if the dataset depends on state of the graph, such as variables, tables or placeholders.
        """
        return one_shot_iterator(self._structure, lambda: as_optimized(self))

    def make_initializable_iterator(self, shared_name: str | None = None) -> Iterator:
        """An iterator that begins when its `initializer` runs; each run begins anew.

        `shared_name`: sessions of one target share the iterator of this name.
        """
        return initializable_iterator(self._structure, as_optimized(self), shared_name)

    # ---- sources

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """One element: `tensors`, nested as it is."""
        values = converted(tensors)
        structure = Structure.of_values(values)
        return op_dataset("TensorDataset", structure, lambda: F.TensorDataset(
            components(values), output_shapes=structure.flat_shapes))  # fmt: skip

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """The slices of `tensors`, nested, along their first dimensions, which are equal.

        ValueError if they are known not to be, or for a scalar.
        """
        values = converted(tensors)
        whole = Structure.of_values(values)
        for leaf in whole.leaves:
            if leaf.shape.ndims == 0:
                raise ValueError("A scalar has no slices: from_tensors makes it the one element.")
        sizes = {leaf.shape[0].value for leaf in whole.leaves if leaf.shape.ndims is not None}
        if len(sizes - {None}) > 1:
            raise ValueError(
                f"Dimensions {' and '.join(map(str, sorted(sizes - {None})))} are not compatible"
            )
        structure = whole.with_shapes(lambda shape: shape[1:] if shape.ndims is not None else shape)
        return op_dataset("TensorSliceDataset", structure, lambda: F.TensorSliceDataset(
            sliced(values), output_shapes=structure.flat_shapes))  # fmt: skip

    @staticmethod
    def from_sparse_tensor_slices(sparse_tensor: Any) -> Dataset:
        """(indices, values, dense_shape) of each slice of a SparseTensor along its first dimension, whose
        elements are in order. TypeError for anything else."""
        if isinstance(sparse_tensor, SparseTensorValue):
            sparse_tensor = SparseTensor.from_value(sparse_tensor)
        if not isinstance(sparse_tensor, SparseTensor):
            raise TypeError("`sparse_tensor` must be a `tf.SparseTensor` object.")
        rank = sparse_tensor.dense_shape.shape[0].value
        inner = None if rank is None else rank - 1
        structure = Structure.of(
            (dtypes.int64, sparse_tensor.dtype, dtypes.int64), ([None, inner], [None], [inner])
        )
        return op_dataset("SparseTensorSliceDataset", structure, lambda: F.SparseTensorSliceDataset(
            sparse_tensor.indices, sparse_tensor.values, sparse_tensor.dense_shape))  # fmt: skip

    @staticmethod
    def from_generator(
        generator: Callable[..., Any], output_types: Any, output_shapes: Any = None, args: Any = None
    ) -> Dataset:
        """What ``generator(*args)`` yields, anew in each pass; elements are nested as `output_types`.

        The generator runs in this process, as a `py_func` does. `args`: tensors, whose values it gets. Raises
        TypeError if `generator` is not callable; elements of other types or shapes are errors of the step.
        """
        elements = generated(generator, Structure.of(output_types, output_shapes), args)
        made: Dataset = elements(Dataset.from_tensors)
        return made

    @staticmethod
    def range(*args: Any) -> Dataset:
        """int64 scalars: ``range(stop)``, ``range(start, stop)`` or ``range(start, stop, step)``."""
        if not 1 <= len(args) <= 3:
            raise ValueError(f"Invalid arguments to RangeDataset: {args}")
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        numbers = [
            as_int64(value, name) for value, name in ((start, "start"), (stop, "stop"), (step, "step"))
        ]
        structure = Structure.of(dtypes.int64, [])
        return op_dataset("RangeDataset", structure, lambda: F.RangeDataset(*numbers, **structure.attributes))

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        """Elements of several datasets side by side, nested as `datasets` is, until the first ends."""
        parts = flatten(datasets)
        for part in parts:
            if not isinstance(part, Dataset):
                what = "a list" if isinstance(part, list) else type(part).__name__
                raise TypeError(
                    "The argument to `Dataset.zip()` must be a nested structure of `Dataset` objects; got "
                    f"{what}. Use a tuple instead of a list."
                )
        structure = Structure(packed(datasets, [part._structure.form for part in parts]))
        return op_dataset("ZipDataset", structure, lambda: F.ZipDataset(
            [part._as_variant_tensor() for part in parts], **structure.attributes))  # fmt: skip

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: int | None = None) -> Dataset:
        """The names of the files that match a pattern, or any of a vector of patterns: string scalars.

        `shuffle`: whether they come in random order (they do if it is None), with `seed`. If there is none,
        the step that makes the iterator fails with InvalidArgumentError.
        """
        with get_default_graph().name_scope("list_files"):
            found = found_files(file_pattern)
            names = Dataset.from_tensor_slices(found)
            if shuffle is None or shuffle:
                count = shape_of(found, out_type=dtypes.int64)[0]
                return names.shuffle(F.Maximum(count, 1), seed=seed)
            return names

    # ---- all, some, again

    def repeat(self, count: Any = None) -> Dataset:
        """The dataset `count` times; without end if that is None or -1."""
        number = as_int64(-1 if count is None else count, "count")
        return _derived("RepeatDataset", self, lambda x, elements: F.RepeatDataset(x, number, **elements))

    def take(self, count: Any) -> Dataset:
        """The first `count` elements; all for -1."""
        number = as_int64(count, "count")
        return _derived("TakeDataset", self, lambda x, elements: F.TakeDataset(x, number, **elements))

    def skip(self, count: Any) -> Dataset:
        """What comes after the first `count` elements; nothing for -1."""
        number = as_int64(count, "count")
        return _derived("SkipDataset", self, lambda x, elements: F.SkipDataset(x, number, **elements))

    def shard(self, num_shards: Any, index: Any) -> Dataset:
        """Every element whose number modulo `num_shards` is `index`.

        InvalidArgumentError in the step that makes its iterator, if the numbers are out of range.
        """
        shards, number = as_int64(num_shards, "num_shards"), as_int64(index, "index")
        return _derived(
            "ShardDataset", self, lambda x, elements: F.ShardDataset(x, shards, number, **elements)
        )

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements for which ``predicate(element)``, a scalar bool tensor, holds. ValueError if it is
        something else."""
        function = MapFunction(predicate, self._structure, name="tf_predicate")
        (result,) = function.structure.leaves if len(function.structure.leaves) == 1 else (None,)
        if result is None or result.dtype is not dtypes.bool or not result.shape.is_compatible_with([]):
            raise ValueError("`predicate` must return a scalar boolean tensor.")
        return _derived("FilterDataset", self, lambda x, elements: F.FilterDataset(
            x, function.captured, predicate=function.name_in(x.graph),
            Targuments=function.captured_types, **elements))  # fmt: skip

    def concatenate(self, dataset: Dataset) -> Dataset:
        """The elements of this one, then those of `dataset`. TypeError if they have other types."""
        mine, others = self._structure, dataset._structure
        if str(mine.types) != str(others.types):
            raise TypeError(
                f"Two datasets to concatenate have different types {mine.types} and {others.types}"
            )
        if str(mine.classes) != str(others.classes):
            raise TypeError(
                f"Two datasets to concatenate have different classes {mine.classes} and {others.classes}"
            )
        structure = mine.common_with(others)
        return op_dataset("ConcatenateDataset", structure, lambda: F.ConcatenateDataset(
            self._as_variant_tensor(), dataset._as_variant_tensor(), **structure.attributes))  # fmt: skip

    def shuffle(
        self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = None
    ) -> Dataset:
        """The elements in random order: each is drawn among the next `buffer_size`.

        `seed`: see `tf.set_random_seed`. `reshuffle_each_iteration`: whether each pass has another order (it
        has if that is None).
        """
        size, seeds = as_int64(buffer_size, "buffer_size"), seed_tensors(seed)
        differs = True if reshuffle_each_iteration is None else reshuffle_each_iteration
        return _derived("ShuffleDataset", self, lambda x, elements: F.ShuffleDataset(
            x, size, *seeds, reshuffle_each_iteration=differs, **elements))  # fmt: skip

    def prefetch(self, buffer_size: Any) -> Dataset:
        """The same elements, of which a thread fetches up to `buffer_size` ahead; -1: as many as is good."""
        size = as_int64(-1 if buffer_size is None else buffer_size, "buffer_size")
        return _derived("PrefetchDataset", self, lambda x, elements: F.PrefetchDataset(x, size, **elements))

    def cache(self, filename: Any = "") -> Dataset:
        """The same elements, kept in memory, or in the files that begin with `filename`, by the first whole
        pass."""
        name = convert_to_tensor(filename, dtypes.string, name="filename")
        return _derived("CacheDataset", self, lambda x, elements: F.CacheDataset(x, name, **elements))

    # ---- batches

    def batch(self, batch_size: Any, drop_remainder: Any = False) -> Dataset:
        """Batches of `batch_size` elements of one shape. The last one may be smaller, unless
        `drop_remainder`."""
        size, drops = as_int64(batch_size, "batch_size"), as_bool(drop_remainder)
        structure = self._structure.with_shapes(prefixed_by(size, drops))
        return op_dataset("BatchDataset", structure, lambda: F.BatchDatasetV2(
            self._as_variant_tensor(), size, drops, **structure.attributes))  # fmt: skip

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any,
        padding_values: Any = None,
        drop_remainder: Any = False,
    ) -> Dataset:
        """Batches of elements padded at their ends to `padded_shapes`, nested as the elements; -1 or None in
        them is the longest of the batch.

        `padding_values`: scalars, nested so; zeros and empty strings if None. TypeError for sparse
        components, and values of other types.
        """
        if any(leaf.is_sparse for leaf in self._structure.leaves):
            raise TypeError("Batching of padded sparse tensors is not currently supported")
        size = as_int64(batch_size, "batch_size")
        shapes, static = padded_shapes_of(self._structure, padded_shapes)
        values = padding_values_of(self._structure, padding_values)
        drops = as_bool(drop_remainder)
        form = packed(self._structure.form, [
            replace(leaf, shape=shape) for leaf, shape in zip(self._structure.leaves, static)
        ])  # fmt: skip
        structure = Structure(form).with_shapes(prefixed_by(size, drops))
        return op_dataset("PaddedBatchDataset", structure, lambda: F.PaddedBatchDatasetV2(
            self._as_variant_tensor(), size, shapes, values, drops,
            output_shapes=structure.flat_shapes))  # fmt: skip

    # ---- functions of elements

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None) -> Dataset:
        """``map_func(element)`` of each element; the parts of a tuple are separate arguments.

        `num_parallel_calls`: how many calls run at once; the order stays.
        """
        function = MapFunction(map_func, self._structure, name="tf_map_func")
        structure = function.structure
        if num_parallel_calls is None:
            return op_dataset("MapDataset", structure, lambda: with_function(
                F.MapDataset, self, function, structure, []))  # fmt: skip
        calls = convert_to_tensor(num_parallel_calls, dtypes.int32, name="num_parallel_calls")
        return op_dataset("ParallelMapDataset", structure, lambda: with_function(
            F.ParallelMapDataset, self, function, structure, [calls]))  # fmt: skip

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any]) -> Any:
        """``reduce_func(state, element)`` of each element in turn, from `initial_state` on; tensors, nested
        as the state. TypeError or ValueError if a state has other types or another form."""
        with get_default_graph().name_scope("initial_state"):
            values = converted(initial_state)
        function, state = state_function(
            reduce_func, Structure.of_values(values), self._structure, lambda form: form, "reduce_func"
        )
        results: Any = F.ReduceDataset(
            self._as_variant_tensor(), components(values), function.captured,
            f=function.name_in(get_default_graph()), Targuments=function.captured_types,
            **state.attributes,
        )  # fmt: skip
        return state.unpacked(results)

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """The elements of the datasets ``map_func(element)``, one dataset after the other. TypeError if it
        returns none."""
        function = DatasetFunction(map_func, self._structure, name="tf_map_func", what="map_func")
        structure = function.dataset._structure
        return op_dataset("FlatMapDataset", structure, lambda: with_function(
            F.FlatMapDataset, self, function, structure, []))  # fmt: skip

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: Any = AUTOTUNE,
        block_length: Any = 1,
        num_parallel_calls: Any = None,
    ) -> Dataset:
        """The elements of the datasets ``map_func(element)``, of which `cycle_length` take turns, each giving
        `block_length` elements. `num_parallel_calls`: how many of them are asked at once. -1 of the first or
        last: as many as the machine runs at once."""
        function = DatasetFunction(map_func, self._structure, name="tf_map_func", what="map_func")
        structure = function.dataset._structure
        numbers = [as_int64(cycle_length, "cycle_length"), as_int64(block_length, "block_length")]
        if num_parallel_calls is None:
            return op_dataset("InterleaveDataset", structure, lambda: with_function(
                F.InterleaveDataset, self, function, structure, numbers))  # fmt: skip
        numbers.append(as_int64(num_parallel_calls, "num_parallel_calls"))
        return op_dataset("ParallelInterleaveDataset", structure, lambda: with_function(
            F.ParallelInterleaveDatasetV2, self, function, structure, numbers))  # fmt: skip

    def enumerate(self, start: Any = 0) -> Dataset:
        """(number, element) of each element, int64 numbers from `start` on."""
        return Dataset.zip((Dataset.range(start, dtypes.int64.max), self))

    def apply(self, transformation_func: Callable[[Dataset], Any]) -> Dataset:
        """``transformation_func(self)``. TypeError if that is no Dataset."""
        dataset = transformation_func(self)
        if not isinstance(dataset, Dataset):
            raise TypeError("`transformation_func` must return a Dataset.")
        return dataset


class OpDataset(Dataset):
    """A dataset of this `structure` that `make()` adds to the default graph."""

    def __init__(self, structure: Structure, make: Callable[[], Tensor]) -> None:
        self._elements, self._make = structure, make
        self._made = self._made_now()

    def __repr__(self) -> str:  # with the names of TensorFlow 1.15's classes
        name = type(self).__name__
        return f"<{'DatasetV1Adapter' if name in _classes else name + 'V1'} {self._structure}>"

    @property
    def _structure(self) -> Structure:
        return self._elements

    def _as_variant_tensor(self) -> Tensor:
        graph = get_default_graph()
        is_as_wished = self._is_apart or not is_made_apart(graph)
        return self._made if self._made.graph is graph and is_as_wished else self._made_now()

    def _made_now(self) -> Tensor:
        with self._as_wished():
            return self._make()

    def with_options(self, options: Options) -> Any:
        """The same dataset with these options besides those that it has. TypeError for what are none."""
        found = super().with_options(options)
        if found._is_apart and not self._is_apart:
            found._made = found._made_now()
        return found

    @property
    def output_classes(self) -> Any:
        """The class of each component."""
        return self._elements.classes

    @property
    def output_shapes(self) -> Any:
        """The TensorShape of each component."""
        return self._elements.shapes

    @property
    def output_types(self) -> Any:
        """The DType of each component."""
        return self._elements.types


def op_dataset(kind: str, structure: Structure, make: Callable[[], Tensor]) -> Dataset:
    """A dataset of the class `kind`, with this structure, that ``make()`` adds to the default graph."""
    dataset = OpDataset(structure, make)
    dataset.__class__ = _classes.setdefault(kind, type(kind, (OpDataset,), {}))
    return dataset


_classes: dict[str, type[OpDataset]] = {}  # by their names, which users see


def _derived(kind: str, source: Dataset, make: Callable[[Tensor, dict[str, Any]], Tensor]) -> Dataset:
    """A dataset with elements like the source's, which `make` makes of the source and its attributes."""
    structure = source._structure
    return op_dataset(kind, structure, lambda: make(source._as_variant_tensor(), structure.attributes))
