"""A tensor that a run has dumped: the file, what its name tells, and its value."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event

from flowstone.framework.types.tensor_proto import make_ndarray
from flowstone.io import file_system

__all__ = [
    "DEVICE_PREFIX",
    "DebugTensorDatum",
    "InconvertibleTensorProto",
    "has_inf_or_nan",
    "load_tensor_from_event",
    "load_tensor_from_event_file",
]

DEVICE_PREFIX = "_tfdbg_device_"


class InconvertibleTensorProto:
    """Stands for a dumped tensor that is no array: one without a value, or a handle."""

    def __init__(self, tensor_proto: Any, initialized: bool = True) -> None:
        self._tensor_proto, self._initialized = tensor_proto, initialized

    @property
    def initialized(self) -> bool:
        """Whether the tensor had a value."""
        return self._initialized

    def __str__(self) -> str:
        return "Uninitialized tensor" if not self._initialized else str(self._tensor_proto)


def load_tensor_from_event(event: Any) -> Any:
    """The array in an Event; an InconvertibleTensorProto for what is no array."""
    proto = event.summary.value[0].tensor
    if not (proto.tensor_content or proto.string_val or proto.ListFields()[2:]) and not _is_empty(proto):
        return InconvertibleTensorProto(proto, initialized=False)
    try:
        return make_ndarray(proto)
    except (TypeError, ValueError, KeyError):
        return InconvertibleTensorProto(proto)


def _is_empty(proto: Any) -> bool:
    return any(dim.size == 0 for dim in proto.tensor_shape.dim)


def load_tensor_from_event_file(event_file_path: str) -> Any:
    """The array in a file of one Event."""
    return load_tensor_from_event(Event.FromString(file_system.read_bytes(event_file_path)))


def has_inf_or_nan(datum: Any, tensor: Any) -> bool:
    """The filter of tensors with an infinity or a NaN; False for types that have none."""
    if isinstance(tensor, InconvertibleTensorProto) or not hasattr(tensor, "dtype"):
        return False
    if not (np.issubdtype(tensor.dtype, np.floating) or np.issubdtype(tensor.dtype, np.complexfloating)):
        return False
    return bool(np.any(~np.isfinite(tensor)))


class DebugTensorDatum:
    """A dumped tensor.

    Args:
        dump_root: the folder of a run's dumps.
        debug_dump_rel_path: the file below it: `DEVICE/NODE_SLOT_OP_MICROSECONDS`.

    Raises ValueError for a path of another form.
    """

    def __init__(self, dump_root: str, debug_dump_rel_path: str) -> None:
        folder, _, path = debug_dump_rel_path.replace(os.sep, "/").partition("/")
        parts = path.rsplit("_", 3)
        if not folder.startswith(DEVICE_PREFIX) or len(parts) != 4 or not parts[1].isdecimal():
            raise ValueError(f"{debug_dump_rel_path} is no path of a dumped tensor")
        self._device_name = folder.removeprefix(DEVICE_PREFIX).replace(",", "/").replace("device_", "device:")
        for job in ("job", "replica", "task"):
            self._device_name = self._device_name.replace(f"/{job}_", f"/{job}:")
        head, _, number = self._device_name.rpartition("_")
        self._device_name = f"{head}:{number}"
        self._node_name, self._output_slot, self._debug_op = parts[0], int(parts[1]), parts[2]
        self._extended_timestamp = parts[3]
        self._file_path = os.path.join(dump_root, debug_dump_rel_path)

    def __str__(self) -> str:
        place = f"({self.device_name}) {self.node_name}:{self.output_slot}"
        return f"{{DebugTensorDatum {place} @ {self.debug_op} @ {self.timestamp}}}"

    __repr__ = __str__

    def get_tensor(self) -> Any:
        """The value: an array, or an InconvertibleTensorProto."""
        return load_tensor_from_event_file(self._file_path)

    @property
    def timestamp(self) -> int:
        """When it was dumped, in microseconds."""
        return int(self._extended_timestamp.partition("-")[0])

    @property
    def extended_timestamp(self) -> str:
        """When it was dumped, with a number where several were dumped at once."""
        return self._extended_timestamp

    @property
    def debug_op(self) -> str:
        """The op that dumped it, such as DebugIdentity."""
        return self._debug_op

    @property
    def device_name(self) -> str:
        """The name of the device."""
        return self._device_name

    @property
    def node_name(self) -> str:
        """The node whose output it is."""
        return self._node_name

    @property
    def output_slot(self) -> int:
        """The number of the output."""
        return self._output_slot

    @property
    def tensor_name(self) -> str:
        """The tensor's name, NODE:SLOT."""
        return f"{self._node_name}:{self._output_slot}"

    @property
    def watch_key(self) -> str:
        """NODE:SLOT:OP."""
        return f"{self.tensor_name}:{self._debug_op}"

    @property
    def file_path(self) -> str:
        """The file."""
        return self._file_path

    @property
    def dump_size_bytes(self) -> int:
        """The file's size."""
        return int(file_system.stat(self._file_path).length)
