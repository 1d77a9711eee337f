"""Iterators that deal a dataset's elements out to devices: element i goes to device i modulo their number.

A device that asks has the elements of the others put aside until these ask, however many they are.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, Environment, StepCall, Value
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.datasets.iteration import ELEMENTS, Dataset, Element
from flowstone.ops.datasets.iterators import IteratorState, check_element
from flowstone.ops.queues.queue_ops import find_resource

__all__ = ["MultiDeviceIteratorState"]


class MultiDeviceIteratorState:
    """A pass over a dataset, and what is put aside for each of `count` devices."""

    def __init__(self, name: str, count: int, types: Sequence[DType], shapes: Sequence[Dims]) -> None:
        self._source = IteratorState(name, types, shapes)
        self._aside: list[deque[Element]] = [deque() for _ in range(count)]
        self._next, self._incarnation = 0, 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<multi-device {self._source!r}>"

    def start(self, dataset: Dataset) -> int:
        """Begins a pass; the number that it has from now on."""
        self._source.start(dataset)
        self._aside = [deque() for _ in self._aside]
        self._next = 0
        self._incarnation += 1
        return self._incarnation

    def next(self, step: Any, shard: int, incarnation: int) -> Element:
        """The device's next element.

        OutOfRangeError at the end; InvalidArgumentError for a device that is not there, or an ended pass.
        """
        if not 0 <= shard < len(self._aside):
            raise invalid(f"shard_num must be in [0, {len(self._aside)}), got: {shard}")
        if incarnation != self._incarnation:
            raise invalid(f"the iterator's pass {incarnation} is over: pass {self._incarnation} has begun")
        with self._lock:
            while not self._aside[shard]:
                self._aside[self._next].append(self._source.next(step))
                self._next = (self._next + 1) % len(self._aside)
            return self._aside[shard].popleft()

    def release(self) -> None:
        """Ends the pass, because the container or the session ends."""
        self._source.release()


multi_device_iterator_op = op(
    "MultiDeviceIterator",
    "-> handle: resource",
    "devices: list(string) >= 1 ; shared_name: string ; container: string"
    " ; output_types: list(type) >= 1 ; output_shapes: list(shape) >= 1",
    stateful=True,
    capturable=False,
)
multi_device_iterator_op.infer(lambda node: ())
multi_device_iterator_op.not_differentiable()


@multi_device_iterator_op.kernel(CPU)
def _(node: Node, env: Environment) -> Value:
    attributes = node.attributes

    def make(name: str) -> MultiDeviceIteratorState:
        types, shapes = attributes["output_types"], attributes["output_shapes"]
        return MultiDeviceIteratorState(name, len(attributes["devices"]), types, shapes)

    return Value(find_resource(node, env, "multi_device_iterator", make))


init_op = op(
    "MultiDeviceIteratorInit",
    "dataset: variant, multi_device_iterator: resource, max_buffer_size: int64 -> incarnation_id: int64",
    "",
    stateful=True,
    mutates=[1],
    capturable=False,
)
init_op.infer(lambda node: ())
init_op.not_differentiable()


@init_op.kernel(CPU)
def _(node: Node, env: Environment) -> StepCall:
    def start(step: Any, dataset: Dataset, iterator: MultiDeviceIteratorState, most: Any) -> torch.Tensor:
        return torch.tensor(iterator.start(dataset))

    return StepCall(start)


get_next_op = op(
    "MultiDeviceIteratorGetNextFromShard",
    "multi_device_iterator: resource, shard_num: int32, incarnation_id: int64 -> components: *output_types",
    ELEMENTS,
    stateful=True,
    mutates=[0],
    overlapping=True,
    capturable=False,
)
get_next_op.infer(lambda node: list(node.attributes["output_shapes"]))
get_next_op.not_differentiable()


@get_next_op.kernel(CPU)
def _(node: Node, env: Environment) -> StepCall:
    types, shapes = node.attributes["output_types"], node.attributes["output_shapes"]

    def get(step: Any, iterator: MultiDeviceIteratorState, shard: Any, incarnation: Any) -> Element:
        found = iterator.next(step, int(shard), int(incarnation))
        check_element(found, types, shapes)
        return found

    return StepCall(get)
