"""`tensorflow.python.data.ops.multi_device_iterator_ops`: a dataset's elements, dealt out to devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.data.structure import Structure
from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.variables.resource_variable import ResourceVariable

__all__ = ["MultiDeviceIterator"]


class MultiDeviceIterator:
    """Element i of the dataset goes to device i modulo the number of devices.

    A device that asks more often than the others has the iterator read ahead; what is theirs is kept.

    Args:
        dataset: a Dataset.
        devices: names of devices.
        max_buffer_size, prefetch_buffer_size: how far TensorFlow reads ahead; flowstone reads when asked.
        source_device: where the dataset is read.
    """

    def __init__(
        self,
        dataset: Any,
        devices: Sequence[str],
        max_buffer_size: int = 1,
        prefetch_buffer_size: int = 1,
        source_device: str = "/cpu:0",
    ) -> None:
        self._structure: Structure = dataset._structure
        self._devices, self._source_device = list(devices), source_device
        with get_default_graph().device(source_device):
            self._handle = F.MultiDeviceIterator(
                devices=self._devices, shared_name="", container="", **self._structure.attributes
            )
            self._incarnation = ResourceVariable(
                0, trainable=False, dtype=dtypes.int64, name="incarnation", collections=[]
            )
            started = F.MultiDeviceIteratorInit(
                dataset._as_variant_tensor(),
                self._handle,
                convert_to_tensor(max_buffer_size, dtypes.int64),
            )
            assigned = self._incarnation.assign(started)
            self._initializer: Operation = getattr(assigned, "op", assigned)

    def get_next(self, device: str | None = None) -> Any:
        """The next element for `device`, nested as the dataset's; without one, a list of all devices'.

        Raises ValueError for a device that the iterator was not made for.
        """
        if device is not None:
            return self._next(self._devices.index(device))
        return [self._next(number) for number in range(len(self._devices))]

    def _next(self, number: int) -> Any:
        with get_default_graph().device(self._source_device):
            tensors: Any = F.MultiDeviceIteratorGetNextFromShard(
                self._handle,
                convert_to_tensor(number, dtypes.int32),
                self._incarnation.read_value(),
                **self._structure.attributes,
            )
        return self._structure.unpacked(tensors)

    @property
    def initializer(self) -> Operation:
        """Begins a pass over the dataset."""
        return self._initializer

    @property
    def output_classes(self) -> Any:
        """The class of each component."""
        return self._structure.classes

    @property
    def output_shapes(self) -> Any:
        """The TensorShape of each component."""
        return self._structure.shapes

    @property
    def output_types(self) -> Any:
        """The DType of each component."""
        return self._structure.types
