"""Transformations that choose elements: among datasets, by condition, each once; and datasets of
numbers to choose with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowstone.data.arguments import as_bool, as_int64, seed_tensors
from flowstone.data.dataset import Dataset, OpDataset, op_dataset
from flowstone.data.experimental import scan
from flowstone.data.functions import DatasetFunction, MapFunction, with_function
from flowstone.data.structure import Structure, packed
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import as_dtype
from flowstone.framework.types.shape import as_shape
from flowstone.ops.randomness.stateless import stateless_multinomial

__all__ = [
    "Counter",
    "RandomDataset",
    "assert_element_shape",
    "choose_from_datasets",
    "parallel_interleave",
    "sample_from_datasets",
    "sloppy_interleave",
    "take_while",
    "unique",
]

Transformation = Callable[[Dataset], Dataset]


def Counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64) -> Dataset:
    """The numbers `start`, ``start + step``, … of type `dtype`, without end."""
    kind = as_dtype(dtype)
    first, by = convert_to_tensor(start, kind), convert_to_tensor(step, kind)
    return (
        Dataset.from_tensors(0).repeat().apply(scan(first, lambda number, _: (F.AddV2(number, by), number)))
    )


class RandomDataset(OpDataset):
    """Random int64 scalars from 0 to 2³² - 1, without end. `seed`: see `tf.set_random_seed`."""

    def __init__(self, seed: Any = None) -> None:
        structure, seeds = Structure.of(dtypes.int64, []), seed_tensors(seed)
        super().__init__(structure, lambda: F.RandomDataset(*seeds, **structure.attributes))


# ---- among datasets


def choose_from_datasets(datasets: Sequence[Dataset], choice_dataset: Dataset) -> Dataset:
    """For each number of `choice_dataset`, int64 scalars, the next element of the dataset at that place.

    A dataset that has ended is passed over. TypeError for other choices, and for datasets whose elements
    differ in type.
    """
    leaves = choice_dataset._structure.leaves
    if len(leaves) != 1 or leaves[0].dtype is not dtypes.int64 or leaves[0].shape.ndims not in (0, None):
        raise TypeError(
            "`choice_dataset` must be a dataset of scalar `tf.int64` tensors, not of "
            f"{choice_dataset.output_types} of the shape {choice_dataset.output_shapes}"
        )
    return _directed(choice_dataset, datasets)


def sample_from_datasets(datasets: Sequence[Dataset], weights: Any = None, seed: Any = None) -> Dataset:
    """Elements of `datasets`, each time of one drawn at random.

    `weights`: how likely each is, a vector or a Dataset of vectors; equal if None. ValueError for a vector
    of another length, TypeError for weights that are no floats.
    """
    count = len(datasets)
    if count == 1:
        return datasets[0]
    if isinstance(weights, Dataset):
        logits_of_each = weights.map(_logits)
        selector = Dataset.zip((logits_of_each, RandomDataset(seed).batch(2))).map(_drawn)
        return _directed(selector, datasets)
    logits: Any = [[1.0] * count]  # what the function below makes constants of
    if weights is not None:
        vector = convert_to_tensor(weights, name="weights")
        if vector.dtype not in (dtypes.float32, dtypes.float64):
            raise TypeError(f"`weights` must be convertible to float32 or float64, not {vector.dtype}")
        if not vector.shape.is_compatible_with([count]):
            raise ValueError(f"`weights` must be a vector of the length {count}, one a dataset")
        logits = _logits(vector)
    # After the weights' nodes, whose number is part of the seed.
    selector = RandomDataset(seed).batch(2).map(lambda seed: _drawn(logits, seed))
    return _directed(selector, datasets)


def _logits(weights: Tensor) -> Tensor:
    return F.ExpandDims(F.Log(weights, name="logits"), convert_to_tensor(0, name="ExpandDims/dim"))


def _drawn(logits: Any, seed: Tensor) -> Tensor:
    return F.Reshape(stateless_multinomial(logits, 1, seed), convert_to_tensor([], dtypes.int32))


def _directed(selector: Dataset, datasets: Sequence[Dataset]) -> Dataset:
    first = datasets[0]
    structure = first._structure
    for other in datasets[1:]:
        if str(other.output_types) != str(first.output_types):
            raise TypeError(
                f"Datasets to choose from have different types {first.output_types} and {other.output_types}"
            )
        structure = structure.common_with(other._structure)
    return op_dataset("DirectedInterleaveDataset", structure, lambda: F.DirectedInterleaveDataset(
        selector._as_variant_tensor(), [each._as_variant_tensor() for each in datasets],
        **structure.attributes))  # fmt: skip


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: Any = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Transformation:
    """`Dataset.interleave` that asks `cycle_length` datasets at once.

    The order is that of `interleave`, with `sloppy` as without. `buffer_output_elements` and
    `prefetch_input_elements` say nothing here.
    """

    def apply(dataset: Dataset) -> Dataset:
        function = DatasetFunction(map_func, dataset._structure, name="tf_map_func", what="map_func")
        structure = function.dataset._structure
        numbers = [as_int64(cycle_length, "cycle_length"), as_int64(block_length, "block_length"),
                   as_bool(sloppy, "sloppy")]  # fmt: skip
        for name, number, default in (
            ("buffer_output_elements", buffer_output_elements, block_length),
            ("prefetch_input_elements", prefetch_input_elements, cycle_length),
        ):
            numbers.append(as_int64(default if number is None else number, name))
        return op_dataset("ParallelInterleaveDataset", structure, lambda: with_function(
            F.ParallelInterleaveDataset, dataset, function, structure, numbers))  # fmt: skip

    return apply


def sloppy_interleave(
    map_func: Callable[..., Any], cycle_length: Any, block_length: Any = 1
) -> Transformation:
    """`parallel_interleave` with ``sloppy=True``."""
    return parallel_interleave(map_func, cycle_length, block_length, sloppy=True)


# ---- by condition


def take_while(predicate: Callable[..., Any]) -> Transformation:
    """The elements before the first for which ``predicate(element)``, a scalar bool tensor, does not hold.
    ValueError if it is something else."""

    def apply(dataset: Dataset) -> Dataset:
        function = MapFunction(predicate, dataset._structure, name="tf_predicate")
        leaves = function.structure.leaves
        if len(leaves) != 1 or leaves[0].dtype is not dtypes.bool or leaves[0].shape.ndims not in (0, None):
            raise ValueError("`predicate` must return a scalar boolean tensor.")
        structure = dataset._structure
        return op_dataset("TakeWhileDataset", structure, lambda: F.TakeWhileDataset(
            dataset._as_variant_tensor(), function.captured,
            predicate=function.name_in(get_default_graph()), Targuments=function.captured_types,
            **structure.attributes))  # fmt: skip

    return apply


def unique() -> Transformation:
    """Each element where it comes first. TypeError unless elements are single tensors of int32, int64 or
    string."""

    def apply(dataset: Dataset) -> Dataset:
        structure = dataset._structure
        (leaf,) = structure.leaves if len(structure.leaves) == 1 else (None,)
        if leaf is None or leaf.dtype not in (dtypes.int32, dtypes.int64, dtypes.string):
            raise TypeError(
                f"`tf.data.experimental.unique` only supports inputs with a single `tf.int32`, `tf.int64`, "
                f"or `tf.string` component, not {structure.types}."
            )
        return op_dataset("UniqueDataset", structure, lambda: F.UniqueDataset(
            dataset._as_variant_tensor(), **structure.attributes))  # fmt: skip

    return apply


def assert_element_shape(expected_shapes: Any) -> Transformation:
    """The same elements with these static shapes, nested as they are. ValueError for static shapes that
    differ, InvalidArgumentError, while running, for others."""

    def apply(dataset: Dataset) -> Dataset:
        structure = dataset._structure
        wanted = Structure.of(structure.types, expected_shapes)

        def checked(*element: Any) -> Any:
            tensors = structure.unpacked(_flat(element))
            leaves = [
                F.EnsureShape(x, shape=as_shape(leaf.shape)) if isinstance(x, Tensor) else x
                for x, leaf in zip(_flat((tensors,)), wanted.leaves)
            ]
            return packed(structure.form, leaves)

        for mine, theirs in zip(structure.leaves, wanted.leaves):
            mine.shape.assert_is_compatible_with(theirs.shape)
        return dataset.map(checked)

    return apply


def _flat(element: Any) -> list[Any]:
    if isinstance(element, dict):
        return [leaf for key in sorted(element) for leaf in _flat(element[key])]
    return [leaf for part in element for leaf in _flat(part)] if isinstance(element, tuple) else [element]
