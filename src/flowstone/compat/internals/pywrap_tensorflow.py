"""`tensorflow.python.pywrap_tensorflow`: readers and writers of records and events."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import flowstone as tf
from flowstone.io.events import EventWriter
from flowstone.io.records import RecordReader, TFRecordWriter

__all__ = [
    "EventsWriter",
    "IsGoogleCudaEnabled",
    "PyRecordReader_New",
    "PyRecordWriter_New",
    "TF_TryEvaluateConstant_wrapper",
    "preload_check",
    "self_check",
]


def TF_TryEvaluateConstant_wrapper(graph: Any, output: Any) -> Any:
    """The value of a tensor of `graph` that is known without running a step, or None.

    Args:
        graph: a graph's `_c_graph`, the graph itself; `output`: a tensor's `_as_tf_output()`, itself.
    """
    return tf.get_static_value(output)


class EventsWriter:
    """Writes Event messages to a file whose name begins with `file_prefix`."""

    def __init__(self, file_prefix: str | bytes) -> None:
        self._writer = EventWriter(tf.compat.as_str_any(file_prefix))

    def WriteEvent(self, event: Any) -> None:
        """Writes an event."""
        self._writer.write(event)

    def Flush(self) -> bool:
        """Has all events so far in the file."""
        self._writer.flush()
        return True

    def Close(self) -> bool:
        """Closes the file."""
        self._writer.close()
        return True

    def FileName(self) -> bytes:
        """The file's path."""
        return tf.compat.as_bytes(self._writer.path)


class _RecordsOneByOne:
    """The records of a file: `GetNext()`, then `record()` and `offset()` of the one that it came to."""

    def __init__(self, reader: RecordReader) -> None:
        self._reader = reader
        self._record = b""

    def GetNext(self, status: Any = None) -> None:
        """Goes to the next record. OutOfRangeError at the end, DataLossError for a damaged one."""
        try:
            self._record = next(self._reader)
        except StopIteration:
            raise tf.errors.OutOfRangeError(None, None, "eof") from None

    def record(self) -> bytes:
        """The bytes of the current record."""
        return self._record

    def offset(self) -> int:
        """Where the next record begins in the file."""
        return self._reader.offset

    def Close(self) -> None:
        """Closes the file."""
        self._reader.close()


def PyRecordReader_New(
    filename: str | bytes, start_offset: int, compression_type_string: str | bytes, status: Any = None
) -> _RecordsOneByOne:
    """A reader of the records of a file from an offset; the compression is "", "ZLIB" or "GZIP"."""
    kind = tf.compat.as_str_any(compression_type_string)
    return _RecordsOneByOne(RecordReader(tf.compat.as_str_any(filename), kind, start_offset))


class _RecordWriter:
    """Writes records to a file."""

    def __init__(self, writer: TFRecordWriter) -> None:
        self._writer = writer

    def WriteRecord(self, record: bytes, status: Any = None) -> None:
        """Writes a record."""
        self._writer.write(record)

    def Flush(self, status: Any = None) -> None:
        """Has all records so far in the file."""
        self._writer.flush()

    def Close(self, status: Any = None) -> None:
        """Closes the file."""
        self._writer.close()


def PyRecordWriter_New(
    filename: str | bytes, compression_type_string: Any, status: Any = None
) -> _RecordWriter:
    """A writer of records to a file; the compression is "", "ZLIB" or "GZIP", or TFRecordOptions."""
    options = compression_type_string
    if isinstance(options, (str, bytes)):
        options = tf.compat.as_str_any(options)
    return _RecordWriter(TFRecordWriter(tf.compat.as_str_any(filename), options or None))


def IsGoogleCudaEnabled() -> bool:
    """Whether operations can be placed on GPUs of CUDA."""
    return bool(tf.test.is_built_with_cuda())


def preload_check() -> None:
    """Does nothing: nothing is loaded that depends on the operating system's libraries."""


self_check = SimpleNamespace(preload_check=preload_check)
