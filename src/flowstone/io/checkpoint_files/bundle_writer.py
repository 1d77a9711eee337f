"""Writing V2 checkpoints (`bundle_reader` says what is in them).

Data go to a file of another name, in the order in which tensors are added, from the arrays' own memory. At
the end all is synchronised, the data get their name, and then the index, without which there is no
checkpoint.

Where a checkpoint of the same name is replaced, there is a whole one at every instant: a second name of the
new data, as shard 0 of 2, is what a first new index says; once that is in place, the data take the old ones'
name, a second index says so, and the other name goes.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.io.checkpoint_files.bundle_reader import BundleReader, data_path, index_path
from flowstone.io.checkpoint_files.encodings import slice_key
from flowstone.io.checkpoint_files.slices import Shape, TensorSlice
from flowstone.io.checkpoint_files.tables import TableWriter
from flowstone.io.checkpoint_files.values import Array, as_bytes, encode_strings, is_stored
from flowstone.io.checksums import crc32c, masked
from flowstone.io.file_errors import errors_of
from flowstone.io.file_system import (
    as_path,
    delete_file,
    file_exists,
    get_matching_files,
    open_file,
    rename,
    written_whole,
)
from flowstone.io.proto.tensor_bundle_pb2 import BundleEntryProto, BundleHeaderProto
from flowstone.io.stores import LOCAL, LOCAL_SCHEME, store_of, sync_directory

__all__ = ["BundleWriter", "merge_bundles", "write_bundle"]

_PIECE = 1 << 20  # bytes whose checksum is computed before they are written
_VERSION = 1


class BundleWriter:
    """Writes a V2 checkpoint `prefix`, of one shard. As a context it is discarded where that ends with an
    error.

    `durable`: nothing has its name before it would survive a crash of the machine.
    """

    def __init__(self, prefix: Any, durable: bool = True) -> None:
        self.prefix = as_path(prefix)
        self._durable = durable
        self._entries: dict[bytes, Any] = {}
        self._offset = 0
        self._temporary = f"{data_path(self.prefix, 0, 1)}.tempstate{os.urandom(8).hex()}"
        self._file: BinaryIO = open_file(self._temporary, "wb")

    def add(self, name: str, array: Any, dtype: DType | None = None) -> None:
        """Writes a tensor: a NumPy array, or what has the buffer of one. Strings are objects, `bytes`.

        `dtype`: where NumPy's type does not say it. Raises InvalidArgumentError for an empty name and for a
        name twice, UnimplementedError for types without values.
        """
        self._check_name(name)
        array = np.asarray(array)
        entry = self._write(name, array, dtype)
        self._entries[name.encode("utf-8", "surrogateescape")] = entry

    def add_slice(
        self, name: str, shape: Shape, part: TensorSlice, array: Any, dtype: DType | None = None
    ) -> None:
        """Writes a part of a tensor of shape `shape`; all of it is a tensor like any other.

        Raises InvalidArgumentError for a part that such a tensor does not have, or an array of another shape.
        """
        array = np.asarray(array)
        if not part.fits(shape) or array.shape != part.shape(shape):
            raise errors.InvalidArgumentError(
                None, None, f"{array.shape} is not the shape of part {part} of tensor {name} of shape {shape}"
            )
        if part.is_full(shape):
            return self.add(name, array, dtype)
        key = name.encode("utf-8", "surrogateescape")
        whole = self._entries.get(key)
        if whole is None:
            self._check_name(name)
        elif not whole.slices or tuple(dim.size for dim in whole.shape.dim) != tuple(shape):
            raise errors.InvalidArgumentError(None, None, f"Tensor {name} was added as another one")
        entry = self._write(name, array, dtype)
        if whole is None:
            whole = self._entries[key] = _entry(entry.dtype, shape)
        elif whole.dtype != entry.dtype:
            raise errors.InvalidArgumentError(None, None, f"The parts of tensor {name} differ in type")
        whole.slices.append(part.as_proto())
        self._entries[slice_key(name, part.extents)] = entry

    def _check_name(self, name: str) -> None:
        if not name or name.startswith("\0"):
            raise errors.InvalidArgumentError(None, None, f"{name!r} is not the name of a tensor")
        if name.encode("utf-8", "surrogateescape") in self._entries:
            raise errors.InvalidArgumentError(None, None, f"Adding duplicate key: {name}")

    def _write(self, name: str, array: Array, dtype: DType | None) -> Any:
        dtype = dtypes.as_dtype(array.dtype) if dtype is None else dtype.base_dtype
        if not is_stored(dtype):
            raise errors.UnimplementedError(
                None, None, f"Tensor {name} of type {dtype.name} cannot be written to {self.prefix}"
            )
        entry = _entry(dtype.as_datatype_enum, array.shape)
        with errors_of(self._temporary):
            if dtype is dtypes.string:
                text, crc = encode_strings(array.reshape(-1).tolist())
                self._file.write(text)
                size = len(text)
            else:
                data = as_bytes(array, dtype)
                size, crc = len(data), self._write_numbers(data)
        entry.offset, entry.size, entry.crc32c = self._offset, size, masked(crc)
        self._offset += size
        return entry

    def _write_numbers(self, data: Array) -> int:
        crc = 0
        for begin in range(0, len(data), _PIECE):
            piece = data[begin : begin + _PIECE]
            crc = crc32c(piece, crc)
            self._file.write(piece.data)
        return crc

    def finish(self) -> None:
        """Makes the checkpoint appear."""
        try:
            self._close_data()
            if self._replaces():
                self._replace()
            else:
                rename(self._temporary, data_path(self.prefix, 0, 1), overwrite=True)
                self._write_index(1)
        except BaseException:
            self.discard()
            raise

    def _close_data(self) -> None:
        with errors_of(self._temporary):
            self._file.flush()
            if self._durable and store_of(self._temporary) is LOCAL:
                os.fsync(self._file.fileno())
            self._file.close()

    def _replaces(self) -> bool:
        """Whether there is a readable checkpoint of this name, whose data have the name that ours take."""
        if store_of(self.prefix) is not LOCAL or not file_exists(index_path(self.prefix)):
            return False
        try:
            with BundleReader(self.prefix) as old:
                return bool(old.header.num_shards == 1)
        except errors.OpError:
            return False

    def _replace(self) -> None:
        final, other = data_path(self.prefix, 0, 1), data_path(self.prefix, 0, 2)
        with errors_of(other):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(_local(other))
            os.link(_local(self._temporary), _local(other))
        self._write_index(2)
        with _freed_later(final):
            rename(self._temporary, final, overwrite=True)
        self._write_index(1)
        delete_file(other)

    def _write_index(self, shards: int) -> None:
        _write_index(self.prefix, shards, self._entries, self._durable)

    def discard(self) -> None:
        """Deletes what was written and is no checkpoint."""
        with contextlib.suppress(Exception):
            self._file.close()
        with contextlib.suppress(errors.OpError):
            delete_file(self._temporary)

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if exception_type is None:
            self.finish()
        else:
            self.discard()


@contextlib.contextmanager
def _freed_later(path: str) -> Iterator[None]:
    """A file that is replaced within the context is freed by a thread, since for a large one that takes as
    long as writing it."""
    try:
        descriptor = os.open(_local(path), os.O_RDONLY)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        threading.Thread(target=os.close, args=(descriptor,), name="flowstone files").start()


def _local(path: str) -> str:
    return path.removeprefix(LOCAL_SCHEME)


def _entry(dtype: int, shape: Iterable[int]) -> Any:
    entry = BundleEntryProto(dtype=dtype)
    entry.shape.SetInParent()
    for size in shape:
        entry.shape.dim.add(size=size)
    return entry


def _write_index(prefix: str, shards: int, entries: dict[bytes, Any], durable: bool) -> None:
    if durable and store_of(prefix) is LOCAL:
        sync_directory(os.path.dirname(_local(prefix)))  # the data have their names before the index says so
    header = BundleHeaderProto(num_shards=shards)
    header.version.producer = _VERSION
    with written_whole(index_path(prefix), durable) as file:
        table = TableWriter(file)
        table.add(b"", header.SerializeToString())
        for key in sorted(entries):
            table.add(key, entries[key].SerializeToString())
        table.finish()


def write_bundle(
    prefix: Any, tensors: Iterable[tuple[str, Any, tuple[Shape, TensorSlice] | None]], durable: bool = True
) -> None:
    """Writes a V2 checkpoint of (name, array, None) or (name, array, (whole shape, part)) as they come."""
    with BundleWriter(prefix, durable) as writer:
        for name, array, part in tensors:
            if part is None:
                writer.add(name, array)
            else:
                writer.add_slice(name, *part, array)


def merge_bundles(prefixes: Iterable[Any], merged: Any, durable: bool = True) -> None:
    """Makes one checkpoint `merged` of several, whose files of data become its shards; the others are gone
    then.

    Raises InvalidArgumentError for a tensor that more than one has, except in parts.
    """
    merged, prefixes = as_path(merged), list(map(as_path, prefixes))
    entries: dict[bytes, Any] = {}
    moves: list[str] = []
    for prefix in prefixes:
        with BundleReader(prefix) as reader:
            for key, data in reader._raw.items():
                entry = BundleEntryProto.FromString(data)
                entry.shard_id += len(moves)
                _merge_entry(entries, key, entry)
            count = reader.header.num_shards
            moves += [data_path(prefix, shard, count) for shard in range(count)]
    for number, path in enumerate(moves):
        rename(path, data_path(merged, number, len(moves)), overwrite=True)
    _write_index(merged, len(moves), entries, durable)
    for prefix in prefixes:
        if prefix != merged and get_matching_files(index_path(prefix)):
            delete_file(index_path(prefix))


def _merge_entry(entries: dict[bytes, Any], key: bytes, entry: Any) -> None:
    other = entries.setdefault(key, entry)
    if other is entry:
        return
    name = key.decode("utf-8", "surrogateescape")
    if not (other.slices and entry.slices):
        raise errors.InvalidArgumentError(None, None, f"Duplicate tensor keyed by {name} encountered")
    if (other.dtype, other.shape) != (entry.dtype, entry.shape):
        raise errors.InvalidArgumentError(None, None, f"The parts of tensor {name} differ in type or shape")
    other.slices.extend(entry.slices)
