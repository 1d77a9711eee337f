"""V1 checkpoints, the format before bundles: tables (`tables`) of SavedTensorSlices messages.

Under the empty key a message says which tensors and parts there are; each part has a message with its
values, under a key made of name and place (`encodings.slice_key`). A checkpoint is a file, or several whose
names a pattern gives. Types are those that a TensorProto holds; files of TensorFlow's are compressed by
Snappy, ours are not.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.tensor_proto import add_values, make_ndarray
from flowstone.io.checkpoint_files.encodings import slice_key
from flowstone.io.checkpoint_files.slices import Shape, TensorSlice
from flowstone.io.checkpoint_files.tables import Table, TableWriter
from flowstone.io.checkpoint_files.values import Array, assemble, is_stored, size_of
from flowstone.io.file_errors import errors_of
from flowstone.io.file_system import as_path, get_matching_files, open_file, stat, written_whole
from flowstone.io.proto.saved_tensor_slice_pb2 import SavedTensorSlices

__all__ = ["V1Entry", "V1Reader", "write_v1"]

_VERSION = 1


class V1Entry(NamedTuple):
    """What a V1 checkpoint says of a tensor; `slices` are the parts it was saved in."""

    dtype: DType
    shape: Shape
    slices: tuple[TensorSlice, ...]


class V1Reader:
    """The tensors of a V1 checkpoint.

    `prefix`: the file, or a shell pattern of several. Raises NotFoundError where there is none, DataLossError
    for a file that is damaged or no table, and for a directory.
    """

    def __init__(self, prefix: Any) -> None:
        self.prefix = as_path(prefix)
        paths = get_matching_files(self.prefix)
        if not paths:
            raise errors.NotFoundError(None, None, f"{self.prefix}; No such file or directory")
        self._entries: dict[str, V1Entry] = {}
        self._files: list[_TableFile] = []
        self._place: dict[bytes, _TableFile] = {}
        try:
            for path in paths:
                self._add_file(path)
        except BaseException:
            self.close()
            raise

    def _add_file(self, path: str) -> None:
        file = _TableFile(path)
        self._files.append(file)
        for saved in file.message(b"", "the list of tensors").meta.tensor:
            try:
                dtype = dtypes.as_dtype(saved.type)
            except TypeError:
                raise _damaged(path, saved.name, f"its type is {saved.type}") from None
            shape = tuple(dim.size for dim in saved.shape.dim)
            slices = tuple(map(TensorSlice.from_proto, saved.slice))
            if any(size < 0 for size in shape) or not all(part.fits(shape) for part in slices):
                raise _damaged(path, saved.name, f"its shape is {shape}")
            other = self._entries.get(saved.name, V1Entry(dtype, shape, ()))
            if (other.dtype, other.shape) != (dtype, shape):
                raise _damaged(path, saved.name, "another file has one of another type or shape")
            self._entries[saved.name] = V1Entry(dtype, shape, other.slices + slices)
            for part in slices:
                self._place[slice_key(saved.name, part.extents)] = file

    def names(self) -> list[str]:
        """The names of all tensors, in order."""
        return sorted(self._entries)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def entry(self, name: str) -> V1Entry:
        """Type, shape and parts of a tensor. NotFoundError if there is none of this name."""
        if name not in self._entries:
            raise errors.NotFoundError(None, None, f"Key {name} not found in checkpoint {self.prefix}")
        return self._entries[name]

    def read(self, name: str, part: TensorSlice | None = None) -> Array:
        """The values of a tensor or of a part of it, as an array of their own; strings are `bytes`.

        Raises NotFoundError for a tensor that is not there, or not with all of the part;
        InvalidArgumentError for a part that it cannot have; DataLossError for damaged data.
        """
        entry = self.entry(name)
        if part is not None and not part.fits(entry.shape):
            raise errors.InvalidArgumentError(
                None, None, f"{self.prefix}; tensor {name} of shape {entry.shape} has no part {part}"
            )
        wanted = part or TensorSlice.full(len(entry.shape))
        result = assemble(
            wanted, entry.shape, entry.dtype, entry.slices, lambda each: self._values(name, entry, each)
        )
        if result is None:
            raise errors.NotFoundError(
                None, None, f"{self.prefix}; the checkpoint has not all of part {wanted} of tensor {name}"
            )
        return result

    def _values(self, name: str, entry: V1Entry, part: TensorSlice) -> Array:
        key = slice_key(name, part.extents)
        file = self._place[key]
        proto = file.message(key, f"tensor {name}").data.data
        shape = part.shape(entry.shape)
        proto.dtype = entry.dtype.as_datatype_enum
        proto.tensor_shape.Clear()
        given = sum(len(value) for field, value in proto.ListFields() if field.name.endswith("_val"))
        given //= 2 if entry.dtype.is_complex else 1
        if not proto.tensor_content and given != size_of(shape):
            raise _damaged(file.path, name, f"{given} values for part {part} of shape {shape}")
        for size in shape:
            proto.tensor_shape.dim.add(size=size)
        try:
            return make_ndarray(proto)
        except (ValueError, TypeError) as error:
            raise _damaged(file.path, name, str(error)) from None

    def close(self) -> None:
        """Closes the files."""
        for file in self._files:
            file.close()
        self._files.clear()

    def __enter__(self) -> V1Reader:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _damaged(path: str, name: str, why: str) -> errors.DataLossError:
    return errors.DataLossError(None, None, f"{path}; tensor {name} is corrupt: {why}")


class _TableFile:
    def __init__(self, path: str) -> None:
        self.path = path
        status = stat(path)
        if status.is_directory:
            raise errors.DataLossError(None, None, f"{path}; Is a directory, no table of tensors")
        size = status.length
        self._file: BinaryIO = open_file(path)
        self._lock = threading.Lock()
        try:
            self._table = Table(self._read, size, path)
        except BaseException:
            self._file.close()
            raise

    def _read(self, offset: int, size: int) -> bytes:
        with self._lock, errors_of(self.path):
            self._file.seek(offset)
            return self._file.read(size)

    def message(self, key: bytes, what: str) -> Any:
        data = self._table.get(key)
        if data is None:
            raise errors.DataLossError(None, None, f"{self.path}; {what} is missing")
        try:
            return SavedTensorSlices.FromString(data)
        except DecodeError:
            raise errors.DataLossError(None, None, f"{self.path}; {what} is corrupt") from None

    def close(self) -> None:
        self._file.close()


def write_v1(
    path: Any, tensors: Iterable[tuple[str, Any, tuple[Shape, TensorSlice] | None]], durable: bool = True
) -> None:
    """Writes a V1 checkpoint of (name, array, None) or (name, array, (whole shape, part)).

    Raises InvalidArgumentError for a part twice, or of another shape than its array, and for parts that
    differ in type or in the shape of the whole; UnimplementedError for types without values.
    """
    listed = SavedTensorSlices()
    listed.meta.versions.producer = _VERSION
    by_name: dict[str, Any] = {}
    values: dict[bytes, tuple[str, Array, TensorSlice]] = {}
    for name, value, place in tensors:
        array = np.asarray(value)
        shape, part = place or (array.shape, TensorSlice.full(array.ndim))
        key = slice_key(name, part.extents)
        _list_part(listed, by_name, name, array, tuple(shape), part)
        if key in values:
            raise errors.InvalidArgumentError(None, None, f"Part {part} of tensor {name} was added twice")
        values[key] = (name, array, part)
    with written_whole(path, durable) as file:
        table = TableWriter(file)
        table.add(b"", listed.SerializeToString())
        for key in sorted(values):
            table.add(key, _value_message(*values[key]).SerializeToString())
        table.finish()


def _list_part(
    listed: Any, by_name: dict[str, Any], name: str, array: Array, shape: Shape, part: TensorSlice
) -> None:
    dtype = dtypes.as_dtype(array.dtype)
    if not is_stored(dtype):
        raise errors.UnimplementedError(None, None, f"Tensor {name} of type {dtype.name} cannot be written")
    if not part.fits(shape) or array.shape != part.shape(shape):
        raise errors.InvalidArgumentError(
            None, None, f"{array.shape} is not the shape of part {part} of tensor {name} of shape {shape}"
        )
    entry = by_name.get(name)
    if entry is None:
        entry = by_name[name] = listed.meta.tensor.add(name=name, type=dtype.as_datatype_enum)
        entry.shape.SetInParent()
        for size in shape:
            entry.shape.dim.add(size=size)
    elif entry.type != dtype.as_datatype_enum or tuple(dim.size for dim in entry.shape.dim) != shape:
        raise errors.InvalidArgumentError(None, None, f"The parts of tensor {name} differ in type or shape")
    entry.slice.append(part.as_proto())


def _value_message(name: str, array: Array, part: TensorSlice) -> Any:
    dtype = dtypes.as_dtype(array.dtype)
    message = SavedTensorSlices()
    message.data.name = name
    message.data.slice.CopyFrom(part.as_proto())
    message.data.data.SetInParent()
    add_values(message.data.data, array, dtype)
    return message
