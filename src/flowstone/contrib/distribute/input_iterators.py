"""Inputs of replicas: one pipeline, whose elements are given out.

A *global* batch is split: with n replicas the i-th gets the i-th part of ``ceil(size / n)`` examples, the
last ones of a short batch fewer, or none. Batches that an input function makes for replicas are given out
whole, the n next ones a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import flowstone as tf
from flowstone.contrib.distribute.distributed_values import merged

__all__ = ["DistributedDataset", "FunctionIterator", "InputContext", "InputIterator"]


class InputContext(NamedTuple):
    """What a function of inputs is told: the number of pipelines, which one it feeds, and of replicas."""

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """A replica's part of a batch. ValueError if it does not divide."""
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size} is not divisible by `num_replicas_in_sync` "
                f"{self.num_replicas_in_sync} "
            )
        return global_batch_size // self.num_replicas_in_sync


class InputIterator:
    """An iterator over a Dataset, whose elements go to the replicas on `devices`.

    Args:
        dataset: the Dataset.
        devices: of the replicas; without several, elements are given out as they are.
        splits: whether an element is a global batch, to be split; else each replica gets one of its own.
        one_shot: whether it needs no initialiser.
    """

    def __init__(
        self, dataset: Any, devices: Sequence[str] = (), splits: bool = False, one_shot: bool = False
    ) -> None:
        self._devices, self._splits = tuple(devices), splits
        types, shapes, classes = dataset.output_types, dataset.output_shapes, dataset.output_classes
        self.output_types, self.output_shapes, self.output_classes = types, shapes, classes
        if splits and len(self._devices) > 1:
            dataset = _split(dataset, len(self._devices))
        with tf.device(self._devices[0] if self._devices else None):
            self._iterator = (
                dataset.make_one_shot_iterator() if one_shot else dataset.make_initializable_iterator()
            )

    def initialize(self) -> Any:
        """The operation that starts the iterator."""
        return self._iterator.initializer

    initializer = property(initialize)

    def get_next(self, name: str | None = None) -> Any:
        """The next element; for several replicas, of each its own."""
        count = len(self._devices)
        if count < 2:
            return self._iterator.get_next(name)
        with tf.device(self._devices[0]):
            if self._splits:
                return merged(self._iterator.get_next(name))
            elements: list[Any] = []
            for _ in range(count):
                before = [each.op for each in tf.nest.flatten(elements[-1:]) if isinstance(each, tf.Tensor)]
                with tf.control_dependencies(before):
                    elements.append(self._iterator.get_next(name))
        return merged(elements)

    next = get_next


def _split(dataset: Any, count: int) -> Any:
    """The Dataset of tuples of the parts of the elements of a Dataset of global batches."""
    types = dataset.output_types

    def parts(*given: Any) -> tuple[Any, ...]:
        element: Any = given if isinstance(types, tuple) else given[0]
        if hasattr(types, "_fields"):
            element = type(types)(*given)
        return tuple(_part(element, i, count) for i in range(count))

    return dataset.map(parts)


def _part(element: Any, i: int, count: int) -> Any:
    if isinstance(element, dict):
        return {key: _part(value, i, count) for key, value in element.items()}
    if isinstance(element, (list, tuple)) and not isinstance(element, tf.SparseTensor):
        parts = [_part(value, i, count) for value in element]
        return type(element)(*parts) if hasattr(element, "_fields") else type(element)(parts)
    if isinstance(element, tf.SparseTensor):
        return _part_of_sparse(element, i, count)
    if element.shape.ndims == 0:
        raise ValueError("a Dataset is split among replicas by the first dimension of its elements: batch it")
    size = element.shape.as_list()[0] if element.shape.ndims is not None else None
    if size is not None:
        chunk = -(-size // count)
        return element[i * chunk : min((i + 1) * chunk, size)]
    chunk = (tf.shape(element)[0] + (count - 1)) // count
    return element[i * chunk : (i + 1) * chunk]


def _part_of_sparse(element: Any, i: int, count: int) -> Any:
    shape = element.dense_shape
    chunk = (shape[0] + (count - 1)) // count
    start = tf.concat([[i * chunk], tf.zeros_like(shape[1:])], 0)
    return tf.sparse.slice(element, start, tf.concat([[chunk], shape[1:]], 0))


class FunctionIterator:
    """What a function gives each time, as an iterator.

    Args:
        function: gives an element.
        count: of the replicas, for each of which it is called.
    """

    def __init__(self, function: Callable[[], Any], count: int = 1) -> None:
        self._function, self._count = function, count

    def get_next(self) -> Any:
        """The next element; for several replicas, of each its own."""
        elements = [self._function() for _ in range(self._count)]
        return elements[0] if self._count == 1 else merged(elements)

    def initialize(self) -> Any:
        """An operation that does nothing."""
        return tf.no_op()

    initializer = property(initialize)


class DistributedDataset:
    """A Dataset whose iterators give its elements to the replicas on `devices`; see `InputIterator`."""

    def __init__(self, dataset: Any, devices: Sequence[str], splits: bool) -> None:
        self._dataset, self._devices, self._splits = dataset, devices, splits

    @property
    def element_spec(self) -> Any:
        """What an element is, of each replica."""
        spec = self._dataset.element_spec
        return merged([spec] * len(self._devices)) if not self._splits else spec

    def make_initializable_iterator(self, shared_name: str | None = None) -> InputIterator:
        """An iterator that its `initializer` starts."""
        return InputIterator(self._dataset, self._devices, self._splits)

    def make_one_shot_iterator(self) -> InputIterator:
        """An iterator that needs no initialiser."""
        return InputIterator(self._dataset, self._devices, self._splits, one_shot=True)

    def __iter__(self) -> Any:
        raise RuntimeError(
            "A distributed Dataset is iterated over in eager mode only: "
            "use its make_initializable_iterator or make_one_shot_iterator"
        )
