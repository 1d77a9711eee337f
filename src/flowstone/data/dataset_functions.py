"""Functions of `tf.data` in place of methods, and what it says of sizes."""

from __future__ import annotations

from typing import Any

from flowstone.data.dataset import Dataset
from flowstone.data.iterator import Iterator

__all__ = [
    "AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "get_output_classes",
    "get_output_shapes", "get_output_types", "make_initializable_iterator", "make_one_shot_iterator",
]  # fmt: skip

AUTOTUNE = -1
"""In place of a number: as many as is best."""
INFINITE_CARDINALITY = -1
"""The number of elements of a dataset that does not end."""
UNKNOWN_CARDINALITY = -2
"""The number of elements of a dataset of which it is not known."""


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """The nested classes of an element's components, Tensor or SparseTensor."""
    return dataset_or_iterator.output_classes


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """The nested TensorShapes of an element's components."""
    return dataset_or_iterator.output_shapes


def get_output_types(dataset_or_iterator: Any) -> Any:
    """The nested DTypes of an element's components."""
    return dataset_or_iterator.output_types


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """`Dataset.make_one_shot_iterator`."""
    return dataset.make_one_shot_iterator()


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """`Dataset.make_initializable_iterator`."""
    return dataset.make_initializable_iterator(shared_name)
