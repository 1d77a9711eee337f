"""Readers: `TextLineReader` and its like take names of files from a queue and give their records to steps.

>>> from flowstone.framework.graphs.graph import Graph
>>> with Graph().as_default():
...     print(TextLineReader().reader_ref.op.name)
TextLineReaderV2
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.io.records import TFRecordOptions
from flowstone.ops.queues.queues import QueueBase
from flowstone.ops.readers import reader_ops as _reader_ops  # noqa: F401  (declares the ops)

__all__ = [
    "FixedLengthRecordReader",
    "IdentityReader",
    "LMDBReader",
    "ReaderBase",
    "TFRecordReader",
    "TextLineReader",
    "WholeFileReader",
]


class ReaderBase:
    """What all readers have in common. `reader_ref`: the handle."""

    def __init__(self, reader_ref: Any, supports_serialize: bool = False) -> None:
        self._reader_ref = reader_ref
        self._supports_serialize = supports_serialize

    @property
    def reader_ref(self) -> Any:
        """The handle."""
        return self._reader_ref

    @property
    def supports_serialize(self) -> bool:
        """Whether its state can be saved."""
        return self._supports_serialize

    def read(self, queue: Any, name: str | None = None) -> Any:
        """The next record, as a named tuple (key, value) of string scalars.

        `queue`: a queue of strings, or its handle, from which the reader takes a name when it needs one; the
        step waits meanwhile. A step fails with OutOfRangeError if the queue is closed and empty.
        """
        return self._op("Read")(self._reader_ref, self._queue(queue), name=name)

    def read_up_to(self, queue: Any, num_records: Any, name: str | None = None) -> Any:
        """Up to `num_records` records of one file, as a named tuple (keys, values) of string vectors."""
        return self._op("ReadUpTo")(self._reader_ref, self._queue(queue), num_records, name=name)

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """How many records it has read: int64, []."""
        return self._op("NumRecordsProduced")(self._reader_ref, name=name)  # type: ignore[no-any-return]

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """How many files it has read to their end: int64, []."""
        return self._op("NumWorkUnitsCompleted")(self._reader_ref, name=name)  # type: ignore[no-any-return]

    def serialize_state(self, name: str | None = None) -> Tensor:
        """Its state, a string scalar. UnimplementedError in the step unless `supports_serialize`."""
        return self._op("SerializeState")(self._reader_ref, name=name)  # type: ignore[no-any-return]

    def restore_state(self, state: Any, name: str | None = None) -> Operation:
        """Takes a state that `serialize_state` gave. UnimplementedError unless `supports_serialize`."""
        return self._op("RestoreState")(self._reader_ref, state, name=name)  # type: ignore[no-any-return]

    def reset(self, name: str | None = None) -> Operation:
        """Begins anew, with the next name of the queue."""
        return self._op("Reset")(self._reader_ref, name=name)  # type: ignore[no-any-return]

    def _is_resource(self) -> bool:
        return self._reader_ref.dtype.base_dtype is dtypes.resource

    def _op(self, name: str) -> Any:
        return getattr(F, f"Reader{name}{'V2' if self._is_resource() else ''}")

    def _queue(self, queue: Any) -> Any:
        handle = queue.queue_ref if isinstance(queue, QueueBase) else queue
        if not self._is_resource() and handle.dtype.base_dtype is dtypes.resource:
            return F.FakeQueue(handle)
        return handle


class WholeFileReader(ReaderBase):
    """Gives all of a file as one record, whose key is its name."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(F.WholeFileReaderV2(name=name), supports_serialize=True)


class TextLineReader(ReaderBase):
    """Gives the lines of files, without their ends; keys are the file's name and the line's number.

    `skip_header_lines`: how many lines at the beginning of each file are left out.
    """

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        super().__init__(F.TextLineReaderV2(skip_header_lines=skip_header_lines or 0, name=name))


class FixedLengthRecordReader(ReaderBase):
    """Gives records of `record_bytes`; keys are the file's name and the record's number.

    `header_bytes` and `footer_bytes` are left out. `hop_bytes`: from the beginning of a record to that of
    the next (0: `record_bytes`). `encoding`: "ZLIB" or "GZIP" if the file is compressed.
    """

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        handle = F.FixedLengthRecordReaderV2(
            record_bytes=record_bytes,
            header_bytes=header_bytes or 0,
            footer_bytes=footer_bytes or 0,
            hop_bytes=hop_bytes or 0,
            encoding=encoding or "",
            name=name,
        )
        super().__init__(handle)


class TFRecordReader(ReaderBase):
    """Gives the records of TFRecord files; keys are the file's name and where the record begins.

    `options`: of `tf.python_io.TFRecordOptions`, the compression.
    """

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        compression = TFRecordOptions.get_compression_type_string(options)
        super().__init__(F.TFRecordReaderV2(name=name, compression_type=compression))


class LMDBReader(ReaderBase):
    """Gives the entries of LMDB databases, in the order of their keys; needs the package lmdb."""

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        super().__init__(F.LMDBReader(name=name))


class IdentityReader(ReaderBase):
    """Gives what the queue holds, as both key and value."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(F.IdentityReaderV2(name=name), supports_serialize=True)
