"""Reading V2 checkpoints: an index, ``PREFIX.index``, and shards of data, ``PREFIX.data-00000-of-00001`` ….

The index is a table (`tables`): under the empty key a BundleHeaderProto, under each tensor's name a
BundleEntryProto that says where its bytes are. A tensor that was saved in parts has an entry that lists them;
each part has an entry of its own under a key made of name and place (`encodings.slice_key`).

Bytes are read straight into the array that is returned, in pieces whose checksum is computed while they are
in the cache. DataLossError names the file and the tensor; sizes are compared before anything is allocated.
"""

from __future__ import annotations

import contextlib
import os
import threading
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.io.checkpoint_files.encodings import slice_key
from flowstone.io.checkpoint_files.slices import Shape, TensorSlice
from flowstone.io.checkpoint_files.tables import Table
from flowstone.io.checkpoint_files.values import (
    Array,
    assemble,
    decode_strings,
    is_stored,
    size_of,
    stored_type,
)
from flowstone.io.checksums import crc32c, masked
from flowstone.io.file_errors import errors_of
from flowstone.io.file_system import as_path, open_file, read_bytes, stat
from flowstone.io.proto.tensor_bundle_pb2 import BundleEntryProto, BundleHeaderProto

__all__ = ["BundleEntry", "BundleReader", "data_path", "index_path"]

_PIECE = 1 << 20  # bytes read at a time: they are still in the cache for the checksum
_VERSION = 1  # of the format, ours


def index_path(prefix: str) -> str:
    """The path of the index of the checkpoint `prefix`."""
    return f"{prefix}.index"


def data_path(prefix: str, shard: int, shards: int) -> str:
    """The path of a shard of the data of the checkpoint `prefix`."""
    return f"{prefix}.data-{shard:05d}-of-{shards:05d}"


class BundleEntry(NamedTuple):
    """What the index says of a tensor or part; `crc` is masked, `slices` are the parts it was saved in."""

    dtype: DType
    shape: Shape
    shard: int
    offset: int
    size: int
    crc: int
    slices: tuple[TensorSlice, ...]


class BundleReader:
    """The tensors of the V2 checkpoint `prefix`.

    Raises NotFoundError where there is none, DataLossError for a damaged index, InvalidArgumentError for one
    that only later versions may read. Threads may share a reader; `close` closes its files.
    """

    def __init__(self, prefix: Any) -> None:
        self.prefix = as_path(prefix)
        self._path = index_path(self.prefix)
        data = read_bytes(self._path)
        table = Table(lambda offset, size: data[offset : offset + size], len(data), self._path)
        entries = dict(table)
        self.header = self._parsed(BundleHeaderProto, entries.pop(b"", None), "")
        self._check_header()
        self._is_big_endian = self.header.endianness == BundleHeaderProto.BIG
        self._raw = entries
        self._shards: dict[int, _Shard] = {}
        self._lock = threading.Lock()

    def _parsed(self, cls: Any, data: bytes | None, name: str) -> Any:
        what = f"the entry of tensor {name}" if name else "the header"
        if data is None:
            raise errors.DataLossError(None, None, f"{self._path}; {what} is missing")
        try:
            return cls.FromString(data)
        except DecodeError:
            raise errors.DataLossError(None, None, f"{self._path}; {what} is corrupt") from None

    def _check_header(self) -> None:
        if self.header.num_shards < 0:
            raise errors.DataLossError(None, None, f"{self._path}; {self.header.num_shards} shards")
        if self.header.version.min_consumer > _VERSION:
            needed = self.header.version.min_consumer
            message = f"{self._path}; the format has version {needed}, which {_VERSION} does not read"
            raise errors.InvalidArgumentError(None, None, message)

    # ---- what there is

    def names(self) -> list[str]:
        """The names of all tensors, in order."""
        # The keys of parts begin with a zero byte, which no name does.
        return [key.decode("utf-8", "surrogateescape") for key in self._raw if not key.startswith(b"\0")]

    def __contains__(self, name: str) -> bool:
        return name.encode("utf-8", "surrogateescape") in self._raw

    def entry(self, name: str) -> BundleEntry:
        """What the index says of a tensor. NotFoundError if there is none of this name."""
        key = name.encode("utf-8", "surrogateescape")
        if key not in self._raw:
            raise errors.NotFoundError(None, None, f"Key {name} not found in checkpoint {self.prefix}")
        return self._entry(key, name)

    def _entry(self, key: bytes, name: str) -> BundleEntry:
        proto = self._parsed(BundleEntryProto, self._raw.get(key), name)
        try:
            dtype = dtypes.as_dtype(proto.dtype)
        except TypeError:
            raise self._damaged(name, f"its type is {proto.dtype}") from None
        shape = tuple(dim.size for dim in proto.shape.dim)
        slices = tuple(map(TensorSlice.from_proto, proto.slices))
        if any(size < 0 for size in shape) or proto.shape.unknown_rank or size_of(shape) >= 2**63:
            raise self._damaged(name, f"its shape is {shape}")
        if any(not part.fits(shape) for part in slices):
            raise self._damaged(name, f"it has parts that its shape {shape} has not")
        return BundleEntry(dtype, shape, proto.shard_id, proto.offset, proto.size, proto.crc32c, slices)

    def _damaged(self, name: str, why: str, path: str = "") -> errors.DataLossError:
        return errors.DataLossError(None, None, f"{path or self._path}; tensor {name} is corrupt: {why}")

    # ---- values

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
        if entry.slices:
            return self._joined(name, entry, part or TensorSlice.full(len(entry.shape)))
        array = self._values(name, entry)
        if part is None or part.is_full(entry.shape):
            return array
        return np.ascontiguousarray(array[part.where(entry.shape)]).reshape(part.shape(entry.shape))

    def _joined(self, name: str, entry: BundleEntry, wanted: TensorSlice) -> Array:
        def values(part: TensorSlice) -> Array:
            own = self._entry(slice_key(name, part.extents), name)
            if own.dtype is not entry.dtype or own.shape != part.shape(entry.shape):
                raise self._damaged(name, f"its part {part} is of type {own.dtype.name}, shape {own.shape}")
            return self._values(name, own)

        result = assemble(wanted, entry.shape, entry.dtype, entry.slices, values)
        if result is None:
            raise errors.NotFoundError(
                None, None, f"{self.prefix}; the checkpoint has not all of part {wanted} of tensor {name}"
            )
        return result

    def _values(self, name: str, entry: BundleEntry) -> Array:
        dtype, count = entry.dtype, size_of(entry.shape)
        if not is_stored(dtype):
            raise errors.UnimplementedError(
                None, None, f"{self.prefix}; tensor {name} of type {dtype.name} cannot be read"
            )
        shard = self._shard(entry, name)
        if entry.offset < 0 or entry.size < 0 or entry.offset + entry.size > shard.size:
            raise self._damaged(
                name, f"bytes {entry.offset} to {entry.offset + entry.size} of {shard.size}", shard.path
            )
        if dtype is dtypes.string:
            return self._strings(name, entry, shard)
        if entry.size != count * dtype.size:
            raise self._damaged(name, f"{entry.size} bytes for {count} values of {dtype.name}", shard.path)
        stored = stored_type(dtype, self._is_big_endian)
        array = np.empty(count, stored)
        crc = shard.read_into(array.view(np.uint8), entry.offset)
        if masked(crc) != entry.crc:
            raise self._damaged(name, "checksum mismatch", shard.path)
        own = np.dtype(dtype.as_numpy_dtype)
        return (array if stored == own else array.astype(own)).reshape(entry.shape)

    def _strings(self, name: str, entry: BundleEntry, shard: _Shard) -> Array:
        buffer = np.empty(entry.size, np.uint8)
        shard.read_into(buffer, entry.offset)
        try:
            strings, crc = decode_strings(buffer.tobytes(), size_of(entry.shape))
        except ValueError as error:
            raise self._damaged(name, str(error), shard.path) from None
        if masked(crc) != entry.crc:
            raise self._damaged(name, "checksum mismatch", shard.path)
        result = np.empty(len(strings), object)
        result[:] = strings
        return result.reshape(entry.shape)

    def _shard(self, entry: BundleEntry, name: str) -> _Shard:
        count = self.header.num_shards
        if not 0 <= entry.shard < count:
            raise self._damaged(name, f"it is in shard {entry.shard} of {count}")
        with self._lock:
            if entry.shard not in self._shards:
                self._shards[entry.shard] = _Shard(data_path(self.prefix, entry.shard, count))
            return self._shards[entry.shard]

    def close(self) -> None:
        """Closes the files of data."""
        with self._lock:
            for shard in self._shards.values():
                shard.close()
            self._shards.clear()

    def __enter__(self) -> BundleReader:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Shard:
    """A file of data. A file of this machine is read by threads at once, another store's by one at a time."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = stat(path).length
        self._file: BinaryIO = open_file(path)
        self._lock = threading.Lock()
        self._descriptor = _descriptor(self._file)

    def read_into(self, buffer: Array, offset: int) -> int:
        """Fills `buffer` with the bytes from `offset` on; returns their CRC-32C."""
        crc = 0
        for begin in range(0, len(buffer), _PIECE):
            piece = buffer[begin : begin + _PIECE]
            self._fill(piece, offset + begin)
            crc = crc32c(piece, crc)
        return crc

    def _fill(self, piece: Array, offset: int) -> None:
        done, room = 0, piece.data
        while done < len(piece):
            with errors_of(self.path):
                if self._descriptor is not None:
                    read = os.preadv(self._descriptor, [room[done:]], offset + done)
                else:
                    with self._lock:
                        self._file.seek(offset + done)
                        read = self._file.readinto(room[done:])  # type: ignore[attr-defined]
            if not read:
                raise errors.DataLossError(
                    None, None, f"{self.path}; the file ends early, at {offset + done}"
                )
            done += read

    def close(self) -> None:
        self._file.close()


def _descriptor(file: BinaryIO) -> int | None:
    """The file's number where `preadv` reads it."""
    if hasattr(os, "preadv"):
        with contextlib.suppress(OSError, AttributeError):
            return file.fileno()
    return None
