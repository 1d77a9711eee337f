"""TFRecord files: byte strings, one after the other, each with checksums of its length and of its bytes.

    length      8 bytes, little-endian
    checksum    of the length, 4 bytes (`checksums`)
    bytes
    checksum    of the bytes, 4 bytes

The whole file may be compressed. Offsets are those of the stream of records, before compression. What is cut
off or changed raises DataLossError with file and offset.

>>> encode([b"abc"]).hex()
'0300000000000000b099490e6162636e57f121'
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, BinaryIO

from flowstone.framework import errors
from flowstone.io.checksums import crc32c, masked, masked_crc32c
from flowstone.io.compression import Decompressor, check_kind, compressor
from flowstone.io.exit_writes import done_writing, write_at_exit
from flowstone.io.file_errors import errors_of
from flowstone.io.file_system import as_path, open_file

__all__ = [
    "RecordReader",
    "TFRecordCompressionType",
    "TFRecordOptions",
    "TFRecordWriter",
    "encode",
    "split",
    "tf_record_iterator",
]

_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")
_AROUND = _HEADER.size + _FOOTER.size
_PIECE = 1 << 20  # bytes read at a time
_WRITTEN = 1 << 18  # bytes kept before they are written
_MOST_LENGTHS = 4096

_headers: dict[int, bytes] = {}  # by length; most files have records of few lengths


def _header(length: int) -> bytes:
    header = _headers.get(length)
    if header is None:
        number = length.to_bytes(8, "little")
        header = number + _FOOTER.pack(masked_crc32c(number))
        if len(_headers) < _MOST_LENGTHS:
            _headers[length] = header
    return header


def encode(records: Iterable[bytes]) -> bytes:
    """The records as a file has them."""
    parts: list[bytes] = []
    for record in records:
        parts += (_header(len(record)), record, _FOOTER.pack(masked(crc32c(record))))
    return b"".join(parts)


def split(data: bytes, path: str = "", offset: int = 0) -> tuple[list[bytes], int]:
    """The whole records in `data`, each verified, and where the first that is not whole begins.

    Raises DataLossError for a checksum that does not hold; `path` and `offset`, that of `data`, are for it.
    """
    records, end, is_corrupt = _whole_records(data)
    if is_corrupt:
        raise _corrupted(path, offset + end)
    return records, end


def _whole_records(data: bytes) -> tuple[list[bytes], int, bool]:
    """The records of `data`, where they end, and whether the next one is corrupt, not just cut off."""
    records: list[bytes] = []
    end = len(data)
    at = 0
    while at + _HEADER.size <= end:
        begin = at + _HEADER.size
        length = int.from_bytes(data[at : at + 8], "little")
        if data[at:begin] != _header(length):
            return records, at, True
        stop = begin + length
        if stop + _FOOTER.size > end:
            break
        record = data[begin:stop]
        if _FOOTER.unpack_from(data, stop)[0] != masked(crc32c(record)):
            return records, at, True
        records.append(record)
        at = stop + _FOOTER.size
    return records, at, False


def _corrupted(path: str, offset: int) -> errors.DataLossError:
    return errors.DataLossError(None, None, f"{path}; corrupted record at {offset}")


class RecordReader:
    """An iterator over the records of a file.

    `path`: of any store. `compression`: "", "ZLIB" or "GZIP". `offset`: where to begin, an `offset` of
    before. With `to_be_continued`, a record that is not whole yet is the end of the file for now.

    Raises DataLossError for a record that is corrupt or cut off, the errors of `file_system` if the file
    cannot be read.
    """

    def __init__(
        self, path: Any, compression: str = "", offset: int = 0, to_be_continued: bool = False
    ) -> None:
        check_kind(compression)
        self._path = as_path(path)
        self._continued = to_be_continued
        self._file: BinaryIO = open_file(self._path)
        self._stream = Decompressor(self._file.read, compression, self._path) if compression else None
        self._records: list[bytes] = []  # split already, the next one last
        self._rest = b""
        self._is_corrupt = False  # what is behind those split
        self._offset = self._split_offset = offset
        self._skip(offset)

    def _skip(self, offset: int) -> None:
        if self._stream is None:
            with errors_of(self._path):
                self._file.seek(offset)
            return
        while offset > 0 and (piece := self._stream.read_piece()):
            self._rest = piece[offset:]
            offset -= len(piece)

    @property
    def offset(self) -> int:
        """Where the next record begins in the stream of records."""
        return self._offset

    def __iter__(self) -> RecordReader:
        return self

    def __next__(self) -> bytes:
        if not self._records and not self._split():
            raise StopIteration
        record = self._records.pop()
        self._offset += len(record) + _AROUND
        return record

    def read_many(self, most: int) -> list[bytes]:
        """The next records, at most so many; none at the end."""
        records: list[bytes] = []
        while len(records) < most and (self._records or self._split()):
            taken = self._records[-(most - len(records)) :]
            del self._records[-len(taken) :]
            records += reversed(taken)
        self._offset += sum(map(len, records)) + _AROUND * len(records)
        return records

    def _split(self) -> bool:
        """Splits more of the file, until there is a record; False at its end."""
        if self._is_corrupt:
            raise _corrupted(self._path, self._split_offset)
        if _missing(self._rest) <= 0:
            self._take(self._rest)
        pieces, missing = [self._rest], _missing(self._rest)
        while not self._records and (piece := self._read_piece()):
            pieces.append(piece)
            missing -= len(piece)
            if missing <= 0:
                self._take(b"".join(pieces))
                pieces, missing = [self._rest], _missing(self._rest)
        if self._records:
            return True
        self._rest = b"".join(pieces)
        if self._rest and not self._continued:
            message = f"{self._path}; truncated record at {self._split_offset}"
            raise errors.DataLossError(None, None, message)
        return False

    def _take(self, data: bytes) -> None:
        self._records, end, self._is_corrupt = _whole_records(data)
        self._records.reverse()
        self._rest = data[end:]
        self._split_offset += end
        if self._is_corrupt and not self._records:
            raise _corrupted(self._path, self._split_offset)

    def _read_piece(self) -> bytes:
        with errors_of(self._path):
            return self._file.read(_PIECE) if self._stream is None else self._stream.read_piece()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _missing(data: bytes) -> int:
    """How many more bytes it takes to split a record off `data`, whose header was verified, at least."""
    if len(data) < _HEADER.size:
        return _HEADER.size - len(data)
    return int.from_bytes(data[:8], "little") + _AROUND - len(data)


def tf_record_iterator(path: Any, options: TFRecordOptions | None = None) -> Iterator[bytes]:
    """The records of a TFRecord file.

    `options`: TFRecordOptions, or the name of the compression. Raises DataLossError for a record that is
    corrupt or cut off, NotFoundError and the like where the file cannot be read.
    """
    compression = TFRecordOptions.get_compression_type_string(options)
    with RecordReader(path, compression) as reader:
        yield from reader


# ---- options


class TFRecordCompressionType:
    """How a file of records is compressed."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """How a file of records is compressed, and by which of zlib's parameters.

    `compression_type`: of TFRecordCompressionType, "", "ZLIB", "GZIP", None (none) or another
    TFRecordOptions. `flush_mode`: zlib's mode for `TFRecordWriter.flush` (None: Z_SYNC_FLUSH). The sizes of
    buffers say nothing here. `window_bits`: up to 15.

    Raises ValueError for another type.
    """

    compression_type_map = {
        TFRecordCompressionType.ZLIB: "ZLIB",
        TFRecordCompressionType.GZIP: "GZIP",
        TFRecordCompressionType.NONE: "",
    }

    def __init__(
        self,
        compression_type: Any = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        self.get_compression_type_string(compression_type)
        self.compression_type = compression_type
        self.flush_mode = flush_mode
        self.input_buffer_size, self.output_buffer_size = input_buffer_size, output_buffer_size
        self.window_bits, self.compression_level = window_bits, compression_level
        self.compression_method, self.mem_level = compression_method, mem_level
        self.compression_strategy = compression_strategy

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """The name of the compression: "" for none. ValueError for what says none."""
        if not options:
            return ""
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        if options in cls.compression_type_map:
            return cls.compression_type_map[options]
        if options in cls.compression_type_map.values():
            return str(options)
        raise ValueError(f'Not a valid compression_type: "{options}"')

    def _compressor(self) -> Any:
        def given(value: int | None, default: int) -> int:
            return default if value is None else value

        return compressor(
            self.get_compression_type_string(self),
            given(self.compression_level, zlib.Z_DEFAULT_COMPRESSION),
            min(abs(given(self.window_bits, zlib.MAX_WBITS)), zlib.MAX_WBITS),
            given(self.mem_level, 8),
            given(self.compression_strategy, zlib.Z_DEFAULT_STRATEGY),
        )


# ---- writing


class TFRecordWriter:
    """Writes records to a new file; threads may share it.

    `options`: TFRecordOptions, or the name of the compression. Raises the errors of `file_system` where the
    file cannot be written; `write` and `flush` raise FailedPreconditionError once it is closed. A writer that
    is dropped, or still open when the interpreter exits, ends its file.
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        kind = TFRecordOptions.get_compression_type_string(options)
        if not isinstance(options, TFRecordOptions):
            options = TFRecordOptions(kind)
        self._path = as_path(path)
        self._compressor = options._compressor() if kind else None
        self._flush_mode = zlib.Z_SYNC_FLUSH if options.flush_mode is None else options.flush_mode
        self._lock = threading.Lock()
        self._parts: list[bytes] = []
        self._size = 0
        self._file: BinaryIO | None = None
        self._file = open_file(self._path, "wb")
        write_at_exit(self)

    def write(self, record: bytes) -> None:
        """Writes a record. TypeError if it is not bytes."""
        if not isinstance(record, bytes):
            raise TypeError(f"expected bytes, {type(record).__name__} found")
        with self._lock:
            self._open()
            self._parts += (_header(len(record)), record, _FOOTER.pack(masked(crc32c(record))))
            self._size += len(record) + _AROUND
            if self._size >= _WRITTEN:
                self._write_parts()

    def _open(self) -> BinaryIO:
        if self._file is None:
            raise errors.FailedPreconditionError(
                None, None, f"{self._path}; Writer not initialized or previously closed"
            )
        return self._file

    def _write_parts(self) -> None:
        data = b"".join(self._parts)
        self._parts, self._size = [], 0
        if self._compressor is not None:
            data = self._compressor.compress(data)
        with errors_of(self._path):
            self._open().write(data)

    def flush(self) -> None:
        """Hands all that was written to the store, so that readers see it."""
        with self._lock:
            file = self._open()
            self._write_parts()
            with errors_of(self._path):
                if self._compressor is not None:
                    file.write(self._compressor.flush(self._flush_mode))
                file.flush()

    def write_at_exit(self) -> None:
        """Ends the file."""
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()

    def close(self) -> None:
        """Ends the file."""
        with self._lock:
            if self._file is None:
                return
            done_writing(self)
            try:
                self._write_parts()
                with errors_of(self._path):
                    if self._compressor is not None:
                        self._file.write(self._compressor.flush())
            finally:
                file, self._file = self._file, None
                with errors_of(self._path):
                    file.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
