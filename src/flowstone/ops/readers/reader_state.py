"""`Reader`: takes work from a queue, one file's name after the other, and gives its records to reads.

A read waits in line, without a thread: the first asks the queue for work as a dequeue does, and what it
then reads, a thread for files reads. A read whose step is cancelled leaves the line; a record is given to
one read.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from google.protobuf.message import DecodeError

from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.io.proto.reader_base_pb2 import ReaderBaseState
from flowstone.ops.arrays.arrays import boxed, invalid

Records: TypeAlias = "Iterator[tuple[bytes, bytes]]"
Done: TypeAlias = "Callable[[Any, Any], None]"


class _Read:
    """A read that waits: of one record, or of up to `most`."""

    def __init__(self, step: Any, done: Done, queue: Any, most: int | None) -> None:
        self.step, self.done, self.queue, self.most = step, done, queue, most
        self.remove: Callable[[], None] | None = None


class Reader:
    """A reader of this kind and name.

    `open_work(work)`: the records of a work. `ends_at_once`: a work is finished with its only record.
    `run`: starts a function in a thread for files. `supports_serialize`: its state can be saved.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        open_work: Callable[[bytes], Records],
        run: Callable[[Callable[[], None]], None],
        supports_serialize: bool,
    ) -> None:
        self.kind, self.name, self._open, self._run = kind, name, open_work, run
        self._supports_serialize = self._ends_at_once = supports_serialize
        self._lock = threading.Lock()  # over the line
        self._state = threading.RLock()  # over the state; held while a file is read
        self._line: deque[_Read] = deque()
        self._is_busy = False
        self._begin()

    def _begin(self) -> None:
        self._records: Records | None = None
        self._work = b""
        self._started = self._finished = self._produced = 0

    @property
    def tensor(self) -> np.ndarray[Any, Any]:
        """What a fetch of its reference shows: container and name."""
        return np.array([b"localhost", self.name.encode()], dtype=object)

    # ---- the line

    def read(self, step: Any, done: Done, queue: Any, most: int | None = None) -> None:
        """Gives `done` the next key and value or, with `most`, vectors of up to so many, of one work.

        OutOfRangeError (through `done`) where the queue is closed and empty, the errors of the file.
        """
        if queue.dtypes != (dtypes.string,):
            names = ", ".join(dtype.name for dtype in queue.dtypes)
            done(None, invalid(f"A reader's queue must hold strings, not {names}"))
            return
        if most is not None and most <= 0:
            done(None, invalid(f"num_records must be positive, got {most}"))
            return
        read = _Read(step, done, queue, most)
        with self._lock:
            self._line.append(read)
            is_first, self._is_busy = not self._is_busy, True
        if is_first:
            self._serve()
        else:
            self._register(read)

    def _register(self, read: _Read) -> None:
        remove = read.step.on_cancel(lambda: self._cancel(read))
        with self._lock:
            if read in self._line:
                read.remove = remove
                return
        remove()

    def _cancel(self, read: _Read) -> None:
        with self._lock:
            if read not in self._line:
                return
            self._line.remove(read)
        read.done(None, errors.CancelledError(None, None, "Reader operation was cancelled"))

    def _serve(self) -> None:
        """Begins the first read in line; it is this caller's alone until it is done."""
        with self._lock:
            if not self._line:
                self._is_busy = False
                return
            read = self._line.popleft()
        if read.remove is not None:
            read.remove()
        if self._records is None:
            self._ask(read)
        else:
            self._run(lambda: self._advance(read))

    def _ask(self, read: _Read) -> None:
        def take(outputs: Any, error: BaseException | None) -> None:
            if error is not None:
                self._end(read, None, error)
            else:
                self._run(lambda: self._advance(read, outputs[0]))

        read.queue.dequeue(read.step, take)

    def _end(self, read: _Read, outputs: Any, error: BaseException | None) -> None:
        read.done(outputs, error)
        self._serve()

    # ---- in a thread for files

    def _advance(self, read: _Read, work: Any = None) -> None:
        """Reads what the current work has, beginning with `work` if it is given; asks for more if nothing."""
        try:
            with self._state:
                found = self._taken(read.most or 1, read.most is not None, work)
        except Exception as error:
            self._end(read, None, error)
            return
        if not found:
            self._ask(read)
        elif read.most is None:
            self._end(read, (boxed(found[0][0]), boxed(found[0][1])), None)
        else:
            self._end(read, tuple(_vector(column) for column in zip(*found)), None)

    def _taken(self, most: int, up_to: bool, work: Any) -> list[tuple[bytes, bytes]]:
        if work is not None:
            if getattr(work, "ndim", 0):
                raise invalid("A reader's queue must hold scalars")
            self._work = work.item() if isinstance(work, np.ndarray) else work
            self._started += 1
            self._records = self._open(self._work)
        found: list[tuple[bytes, bytes]] = []
        try:
            while self._records is not None and len(found) < most:
                record = next(self._records, None)
                if record is None:
                    self._finish()
                    break
                found.append(record)
                self._produced += 1
                if self._ends_at_once:
                    self._finish()
        except BaseException:
            self._records = None
            raise
        return found

    def _finish(self) -> None:
        self._records, self._work = None, b""
        self._finished += 1

    # ---- the state

    @property
    def records_produced(self) -> int:
        """How many records were read."""
        return self._produced

    @property
    def units_completed(self) -> int:
        """How many works were read to their end."""
        return self._finished

    def reset(self) -> None:
        """Forgets the current work, and all counts."""
        with self._state:
            self._begin()

    def serialized(self) -> bytes:
        """The state as a message. UnimplementedError for readers that have none to save."""
        self._check_serializes("SerializeState")
        with self._state:
            state = ReaderBaseState(
                work_started=self._started,
                work_finished=self._finished,
                num_records_produced=self._produced,
                current_work=self._work,
            )
        text: bytes = state.SerializeToString()
        return text

    def restore(self, text: bytes) -> None:
        """Takes the state that a message says. InvalidArgumentError for other bytes."""
        self._check_serializes("RestoreState")
        try:
            state = ReaderBaseState.FromString(text)
        except DecodeError:
            raise invalid(f"Could not parse state for {self.kind} '{self.name}': {text!r}") from None
        numbers = (state.work_started, state.work_finished, state.num_records_produced)
        if min(numbers) < 0:
            raise invalid(f"Unexpected negative value when restoring in '{self.name}': {numbers}")
        if state.work_started < state.work_finished:
            raise invalid(
                f"Inconsistent work started vs. finished when restoring in '{self.name}': {numbers}"
            )
        with self._state:
            self._begin()
            self._started, self._finished, self._produced = numbers
            if state.work_started > state.work_finished:
                self._work = state.current_work
                self._records = self._open(self._work)

    def _check_serializes(self, what: str) -> None:
        if not self._supports_serialize:
            raise errors.UnimplementedError(None, None, f"Reader {what}: {self.kind} has no state to keep")


def _vector(items: Any) -> np.ndarray[Any, Any]:
    vector = np.empty(len(items), object)
    vector[:] = items
    return vector
