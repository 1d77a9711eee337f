"""Event files, which TensorBoard reads: TFRecord files of Event messages that grow while a program runs.

The name is ``PREFIX.out.tfevents.SECONDS.HOST`` and a suffix; the first event says the version of the
format. An `EventLog` writes such a file in a folder from a thread of its own: whoever adds an event waits
only while its queue is full. `summary_iterator` and `EventReader` read what is there so far.

States of an `EventLog`: *open* (the thread runs) and *closed*; `reopen` goes back, with a new file. Errors
of the thread are raised by the next call. What a program added to a log that it never closes is written when
the interpreter exits.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

from flowstone.framework import errors
from flowstone.framework.types.tensor_proto import messages
from flowstone.io.exit_writes import PATIENCE_S, done_writing, write_at_exit
from flowstone.io.file_system import as_path, recursive_create_dir
from flowstone.io.records import RecordReader, TFRecordWriter

__all__ = ["EventLog", "EventReader", "EventWriter", "summary_iterator"]

_VERSION = "brain.Event:2"


class EventWriter:
    """Writes a new event file, ``PREFIX.out.tfevents.SECONDS.HOST`` and `suffix`; `path` is its path."""

    def __init__(self, prefix: str, suffix: str = "") -> None:
        now = time.time()
        self.path = f"{prefix}.out.tfevents.{int(now):010d}.{socket.gethostname()}{suffix}"
        self._records = TFRecordWriter(self.path)
        self.write(messages("event_pb2").Event(wall_time=now, file_version=_VERSION))
        self.flush()

    def write(self, event: Any) -> None:
        """Writes an Event message."""
        self._records.write(event.SerializeToString())

    def flush(self) -> None:
        """Hands all that was written to the store."""
        self._records.flush()

    def close(self) -> None:
        """Ends the file."""
        self._records.close()


class _Flush:
    """In the queue: asks the thread to flush, and tells when it has."""

    def __init__(self) -> None:
        self.done = threading.Event()


_END = object()  # in the queue: asks the thread to end


class EventLog:
    """The events of a program, in a file in the folder `logdir`, which is made if there is none.

    `max_queue`: events that may wait to be written (0: any number). `flush_secs`: how long they may before
    they are seen. `suffix`: of the file's name. Threads may share it.
    """

    def __init__(self, logdir: Any, max_queue: int = 10, flush_secs: float = 120, suffix: str = "") -> None:
        self.logdir = as_path(logdir)
        self._most, self._flush_secs, self._suffix = max_queue, flush_secs, suffix
        self._lock = threading.Lock()
        self._is_open = False
        self._error: BaseException | None = None
        recursive_create_dir(self.logdir)
        self.reopen()

    def reopen(self) -> None:
        """Begins a new file, if the log is closed."""
        with self._lock:
            if self._is_open:
                return
            self._queue: queue.Queue[Any] = queue.Queue(self._most)
            self._writer = EventWriter(f"{self.logdir.rstrip('/') or '/'}/events", self._suffix)
            self._error = None
            self._thread = threading.Thread(
                target=self._write_all, args=(self._queue, self._writer), name="event log", daemon=True
            )
            self._thread.start()
            self._is_open = True
            write_at_exit(self)

    @property
    def path(self) -> str:
        """The path of the file that is, or was last, written."""
        return self._writer.path

    def add_event(self, event: Any) -> None:
        """Adds an Event message, which must not change afterwards; nothing happens once the log is closed.

        Raises the errors of `file_system` if an earlier one could not be written.
        """
        self._raise_error()
        if self._is_open:
            self._queue.put(event)

    def flush(self) -> None:
        """Returns when all events that were added are in the store."""
        if self._is_open:
            request = self._request_flush()
            while not request.done.wait(timeout=1) and self._thread.is_alive():
                pass
        self._raise_error()

    def write_at_exit(self) -> None:
        """Has all events that were added written, as far as the thread can in time."""
        with contextlib.suppress(queue.Full):
            self._request_flush(PATIENCE_S).done.wait(PATIENCE_S)

    def _request_flush(self, patience_s: float | None = None) -> _Flush:
        request = _Flush()
        self._queue.put(request, timeout=patience_s)
        return request

    def close(self) -> None:
        """Ends the file, once all events that were added are written."""
        with self._lock:
            if self._is_open:
                self._is_open = False
                done_writing(self)
                self._queue.put(_END)
                self._thread.join()
        self._raise_error()

    def _raise_error(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    # ---- the thread

    def _write_all(self, waiting: queue.Queue[Any], writer: EventWriter) -> None:
        due = time.monotonic() + self._flush_secs
        try:
            while (item := self._next(waiting, due)) is not _END:
                if item is None or isinstance(item, _Flush) or time.monotonic() >= due:
                    due = time.monotonic() + self._flush_secs
                    self._attempt(writer, item, flush=True)
                else:
                    self._attempt(writer, item, flush=False)
        finally:
            self._attempt(writer, None, flush=True)
            self._end(writer)

    @staticmethod
    def _next(waiting: queue.Queue[Any], due: float) -> Any:
        """The next item, or None when it is time to flush."""
        try:
            return waiting.get(timeout=max(due - time.monotonic(), 0.01))
        except queue.Empty:
            return None

    def _attempt(self, writer: EventWriter, item: Any, flush: bool) -> None:
        """Writes an event, and flushes; the first error is kept, later events are still taken."""
        try:
            if item is not None and not isinstance(item, _Flush):
                writer.write(item)
            if flush:
                writer.flush()
        except Exception as error:
            self._error = self._error or error
        finally:
            if isinstance(item, _Flush):
                item.done.set()

    def _end(self, writer: EventWriter) -> None:
        try:
            writer.close()
        except Exception as error:
            self._error = self._error or error


class EventReader:
    """An iterator over the Event messages of a file that may grow.

    It ends at the last event that is whole; asked again, it goes on with what was written since.
    DataLossError for a corrupt record, or one that is no Event.
    """

    def __init__(self, path: Any) -> None:
        self._path = as_path(path)
        self._records = RecordReader(self._path, to_be_continued=True)
        self._parse = messages("event_pb2").Event.FromString

    def __iter__(self) -> EventReader:
        return self

    def __next__(self) -> Any:
        offset = self._records.offset
        record = next(self._records)
        try:
            return self._parse(record)
        except Exception as error:  # protobuf's DecodeError, whose module depends on its implementation
            message = f"{self._path}; no Event in the record at {offset}: {error}"
            raise errors.DataLossError(None, None, message) from None

    def close(self) -> None:
        """Closes the file."""
        self._records.close()


def summary_iterator(path: Any) -> Iterator[Any]:
    """The Event messages of an event file, as far as it is written.

    Raises NotFoundError and the like for a file that cannot be read, DataLossError for a damaged one.
    """
    reader = EventReader(path)
    try:
        yield from reader
    finally:
        reader.close()
