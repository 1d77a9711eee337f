"""`RecordInput`: batches of records of TFRecord files, shuffled, again and again.

An epoch has the files in an order of its own, of the seed. `parallelism` threads read ahead, a file each,
while steps compute. Records come out of a buffer by chance once it is full, or the epoch's last are in it. No
record comes twice before all have come once. With one thread the order is the same in every process.

>>> from flowstone.framework.graphs.graph import Graph
>>> with Graph().as_default():
...     print(RecordInput("*.records", batch_size=4).get_yield_op())
Tensor("RecordInput:0", dtype=string)
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, AsyncCall, Environment
from flowstone.framework.declarations.operation import F, op
from flowstone.framework.tensors import scope
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.values import as_bytes_array
from flowstone.io.file_system import get_matching_files
from flowstone.io.records import RecordReader, TFRecordOptions
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.arrays.joining import split
from flowstone.ops.arrays.shapes import reshape
from flowstone.ops.datasets.workers import Workers

__all__ = ["RecordInput"]

_AT_ONCE = 64  # records that a thread takes from its file before others may add theirs


class RecordStream:
    """The records of files without end.

    `pattern`: of the files. `buffer_size`: records among which chance chooses; as many are read ahead.
    `parallelism`: files read at a time. `shift_ratio`: the part of the files by which their order is turned.
    """

    def __init__(
        self,
        pattern: str,
        seed: int,
        shift_ratio: float,
        buffer_size: int,
        parallelism: int,
        compression: str,
        new_step: Callable[[], Any],
    ) -> None:
        self._pattern, self._seed, self._shift = pattern, seed, shift_ratio
        self._size, self._parallelism, self._compression = buffer_size, parallelism, compression
        self._workers = Workers(parallelism, new_step)
        self._changed = threading.Condition()
        self._takes = threading.Lock()  # held by who takes a batch
        self._random = random.Random(seed)
        self._epoch = 0
        self._all_files: list[str] = []
        self._files: deque[str] = deque()  # of the epoch that is read
        self._open: deque[Iterator[list[bytes]]] = deque()
        self._reading = 0  # threads that read
        self._ahead: deque[bytes | None] = deque()  # not in the buffer yet; None where an epoch ends
        self._buffer: list[bytes] = []
        self._error: Exception | None = None
        self._is_released = False

    # ---- taking

    def take(self, count: int) -> list[bytes]:
        """The next records. Raises what reading a file raised, from then on always; OutOfRangeError where
        no file has records."""
        with self._takes, self._changed:
            return [self._one() for _ in range(count)]

    def take_at_once(self, count: int) -> list[bytes] | None:
        """The next records, if they are there already."""
        if not self._takes.acquire(blocking=False):
            return None
        try:
            with self._changed:
                # Each that is taken makes room for one of those ahead.
                if self._error is None and len(self._ahead) >= count and None not in self._ahead:
                    return [self._one() for _ in range(count)]
            return None
        finally:
            self._takes.release()

    def _one(self) -> bytes:
        """A record by chance."""
        was_empty = False
        while True:
            self._fill()
            is_last = bool(self._ahead) and self._ahead[0] is None
            if self._buffer and (is_last or len(self._buffer) >= self._size):
                return self._drawn()
            if is_last:
                self._ahead.popleft()
                if was_empty:
                    raise errors.OutOfRangeError(None, None, f"No records in the files {self._pattern}")
                was_empty = True
                continue
            self._read_ahead()
            if self._is_released:
                message = "The session was closed while a step waited for records."
                raise errors.CancelledError(None, None, message)
            if not self._reading and self._error is not None:
                raise self._error
            self._changed.wait()

    def _fill(self) -> None:
        while self._ahead and len(self._buffer) < self._size and (record := self._ahead[0]) is not None:
            self._buffer.append(record)
            self._ahead.popleft()
        if len(self._ahead) < self._size:
            self._read_ahead()

    def _drawn(self) -> bytes:
        place = self._random.randrange(len(self._buffer))
        self._buffer[place], self._buffer[-1] = self._buffer[-1], self._buffer[place]
        return self._buffer.pop()

    # ---- reading, with the lock

    def _read_ahead(self) -> None:
        """Has as many threads read as there are files for, unless enough is there."""
        while self._reading < self._parallelism and not (self._is_released or self._error):
            if len(self._ahead) >= self._size:
                return
            if not (self._files or self._open):
                if self._reading or not self._begin_epoch():
                    return
            self._reading += 1
            self._workers.run(self._read_some)

    def _begin_epoch(self) -> bool:
        """Orders the files, which are looked for once; False where that failed."""
        try:
            if not self._all_files:
                self._all_files = sorted(get_matching_files(self._pattern))
            if not self._all_files:
                raise errors.NotFoundError(None, None, f"Found no files at {self._pattern}")
        except errors.OpError as error:
            self._error = error
            return False
        files = list(self._all_files)
        random.Random(f"{self._seed} {self._epoch}").shuffle(files)
        by = int(self._shift * len(files))
        self._files.extend(files[-by:] + files[:-by] if by else files)
        self._epoch += 1
        return True

    def _read_some(self, step: Any) -> None:
        """What a thread does: reads some of a file, again and again, until enough is there."""
        while (batches := self._next_open()) is not None:
            try:
                records = next(batches, None)
            except Exception as error:
                with self._changed:
                    self._error = self._error or error
                    self._end_read()
                return
            with self._changed:
                if records is not None:
                    self._ahead.extend(records)
                    self._open.appendleft(batches)
                is_enough = step.cancelled or len(self._ahead) >= self._size
                if is_enough or not (self._files or self._open):
                    self._end_read()
                    return
                self._changed.notify_all()

    def _next_open(self) -> Iterator[list[bytes]] | None:
        """A file that is open, or the next one; None, and the thread's work ends, where there is none."""
        with self._changed:
            if self._open:
                return self._open.popleft()
            if self._files:
                return self._batches(self._files.popleft())
            self._end_read()
            return None

    def _end_read(self) -> None:
        self._reading -= 1
        if not (self._reading or self._files or self._open or self._error):
            self._ahead.append(None)
        self._changed.notify_all()

    def _batches(self, path: str) -> Iterator[list[bytes]]:
        with RecordReader(path, self._compression) as reader:
            while records := reader.read_many(_AT_ONCE):
                yield records

    def release(self) -> None:
        """Ends the threads, and what waits for them."""
        with self._changed:
            self._is_released = True
            self._open.clear()
            self._files.clear()
            self._changed.notify_all()
        self._workers.stop()


# ---- the op

record_input_op = op(
    "RecordInput",
    "-> records: string",
    "file_pattern: string ; file_random_seed: int = 301 ; file_shuffle_shift_ratio: float = 0 ; "
    "file_buffer_size: int = 10000 ; file_parallelism: int = 16 ; batch_size: int = 32 ; "
    "compression_type: string = ''",
    stateful=True,
    asynchronous=True,
)
record_input_op.no_gradient()
record_input_op.infer(lambda node: None)


@record_input_op.kernel(CPU)
def _(node: Node, env: Environment) -> AsyncCall:
    attributes = node.attributes
    batch_size: int = attributes["batch_size"]
    ratio: float = attributes["file_shuffle_shift_ratio"]
    for name, least in (("batch_size", 0), ("file_buffer_size", 1), ("file_parallelism", 1)):
        if attributes[name] < least:
            raise invalid(f"{name} must be >= {least}, got {attributes[name]}")
    if not 0 <= ratio <= 1:
        raise invalid(f"file_shuffle_shift_ratio must be in [0, 1], got {ratio}")
    stream = env.state(
        node,
        lambda: RecordStream(
            attributes["file_pattern"],
            attributes["file_random_seed"],
            ratio,
            attributes["file_buffer_size"],
            attributes["file_parallelism"],
            attributes["compression_type"],
            env.new_step,
        ),
    )

    def batch(records: list[bytes]) -> tuple[Any, ...]:
        return (as_bytes_array(np.array(records, object)),)

    def at_once() -> tuple[Any, ...] | None:
        records = stream.take_at_once(batch_size)
        return None if records is None else batch(records)

    return AsyncCall(env.blocking(lambda: batch(stream.take(batch_size))).function, at_once)


class RecordInput:
    """Reads the records of TFRecord files in random order, epoch after epoch, without end.

    `file_pattern`: of the files' paths. `batch_size`: records a batch; `batches`: how many batches
    `get_yield_op` gives at once. `buffer_size`: how many records chance chooses from. `parallelism`: files
    read at a time. `shift_ratio`: the part of the files, 0 to 1, by which each epoch's order is turned, so
    that programs with one seed begin at different files. `seed`: of the order. `compression_type`: a
    TFRecordOptions or one of TFRecordCompressionType.

    Steps fail with NotFoundError where no file fits, DataLossError for a damaged one, OutOfRangeError where
    the files have no records. ValueError for an unknown compression, and fewer batches than one.
    """

    def __init__(
        self,
        file_pattern: str,
        batch_size: int = 1,
        buffer_size: int = 1,
        parallelism: int = 1,
        shift_ratio: float = 0,
        seed: int = 0,
        name: str | None = None,
        batches: int | None = None,
        compression_type: Any = None,
    ) -> None:
        if batches is not None and batches < 1:
            raise ValueError(f"batches must be at least 1, got {batches}")
        self._batch_size, self._batches, self._name = batch_size, batches, name
        self._attributes = {
            "file_pattern": file_pattern,
            "file_buffer_size": buffer_size,
            "file_parallelism": parallelism,
            "file_shuffle_shift_ratio": shift_ratio,
            "file_random_seed": seed,
            "compression_type": TFRecordOptions.get_compression_type_string(compression_type),
        }

    def get_yield_op(self) -> Any:
        """A string vector of records; with `batches`, a list of lists of string scalars instead."""
        count = self._batch_size * (self._batches or 1)
        records: Tensor = F.RecordInput(**self._attributes, batch_size=count, name=self._name)
        if self._batches is None:
            return records
        with scope.get_default_graph().name_scope(self._name):
            scalars = [reshape(each, []) for each in split(records, count, 0)]
        return [scalars[i :: self._batches] for i in range(self._batches)]
