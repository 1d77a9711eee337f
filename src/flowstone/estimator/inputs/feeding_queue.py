"""A queue that threads fill with rows of arrays in memory, epoch after epoch."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

import flowstone as tf
from flowstone.training.input.queue_runner import QueueRunner

__all__ = ["FeedingQueueRunner", "check_shuffle", "dequeue_rows", "enqueue_rows", "fill_from"]


class FeedingQueueRunner(QueueRunner):
    """A QueueRunner whose operations are fed.

    `feeds`: a function for each operation, which returns the values of the placeholders; it raises
    OutOfRangeError at the end.
    """

    def __init__(self, queue: Any, enqueue_ops: Any, feeds: Any, placeholders: Any) -> None:
        super().__init__(queue, enqueue_ops)
        self._feeds = dict(zip(enqueue_ops, feeds, strict=True))
        self._placeholders = placeholders

    def _run(self, sess: Any, enqueue_op: Any, coord: Any) -> None:
        try:
            feed, places = self._feeds[enqueue_op], self._placeholders[enqueue_op]
            run = sess.make_callable(enqueue_op, feed_list=places)
            while coord is None or not coord.should_stop():
                run(*feed())
        except self._queue_closed_exception_types:
            if self._ended(sess) == 0:
                self._close(sess, self._close_op)
            return
        except Exception as error:
            self._ended(sess)
            self._report(error, coord)
            return
        self._ended(sess)

    def to_proto(self, export_scope: str | None = None) -> NoReturn:
        """NotImplementedError: the arrays are this process's."""
        del export_scope
        raise NotImplementedError(
            "a queue that is fed from memory has no message: its arrays are not the graph's"
        )


class _Rows:
    """The next rows of columns, one epoch after another."""

    def __init__(
        self,
        columns: Sequence[Any],
        size: int,
        rng: random.Random,
        begin_anywhere: bool,
        num_epochs: int | None,
    ) -> None:
        self._columns, self._size, self._num_epochs = columns, size, num_epochs
        self._count = len(columns[0])
        self._next = rng.randrange(self._count) if begin_anywhere else 0
        self._first = self._next
        self._epoch = 0

    def __call__(self) -> list[Any]:
        if self._num_epochs is not None and self._epoch >= self._num_epochs:
            raise tf.errors.OutOfRangeError(None, None, f"Already emitted {self._epoch} epochs.")
        taken = np.arange(self._next, self._next + self._size)
        ended, self._next = divmod(self._next + self._size - self._first, self._count)
        self._next += self._first
        self._epoch += ended
        if self._num_epochs is not None and self._epoch >= self._num_epochs:
            surplus = (self._epoch - self._num_epochs) * self._count + self._next - self._first
            taken = taken[: self._size - surplus]
        taken %= self._count
        return [taken, *(column[taken] for column in self._columns)]


def enqueue_rows(
    columns: Sequence[Any],
    capacity: int,
    shuffle: bool = False,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_size: int = 1,
    num_epochs: int | None = None,
    name: str = "enqueue_input",
    min_after_dequeue: int | None = None,
) -> Any:
    """A queue of (row number, row of each column), with a QueueRunner that fills it.

    Args:
        columns: arrays of the same length.
        capacity: of the queue; `shuffle`: whether rows come in random order.
        min_after_dequeue: the rows that stay behind when they are shuffled, by default a quarter of those.
        num_threads: the threads; each goes through all rows. `seed`: of the order.
        enqueue_size: the rows that are enqueued at once.
        num_epochs: how often each row comes; None: without end.
    """
    if num_threads > 1 and num_epochs is not None:
        tf.logging.warning("each of several threads goes through all epochs: use one to limit them")
    with tf.name_scope(name):
        dtypes = [tf.int64, *map(_dtype, columns)]
        shapes = [(), *(column.shape[1:] for column in columns)]
        given = capacity // 4 if min_after_dequeue is None else min_after_dequeue
        behind = given if shuffle else 0
        queue: Any = (
            tf.RandomShuffleQueue(capacity, behind, dtypes=dtypes, shapes=shapes, seed=seed)
            if shuffle
            else tf.FIFOQueue(capacity, dtypes=dtypes, shapes=shapes)
        )
        begin_anywhere = shuffle or num_threads > 1
        feeds = [
            _Rows(columns, enqueue_size, random.Random(_thread_seed(seed, each)), begin_anywhere, num_epochs)
            for each in range(num_threads)
        ]
        fill_from(queue, dtypes, feeds, capacity, behind)
        return queue


def fill_from(
    queue: Any, dtypes: list[Any], feeds: Sequence[Callable[[], list[Any]]], capacity: int, behind: int
) -> None:
    """Has threads fill a queue with what functions return: arrays of rows, one array for each component.

    Args:
        queue: a queue of `capacity` rows, of which `behind` stay behind; dtypes: those of its components.
        feeds: the functions, one a thread; OutOfRangeError ends a thread.
    """
    places = dict(_operation(queue, dtypes) for _ in feeds)
    tf.train.add_queue_runner(FeedingQueueRunner(queue, list(places), feeds, places))
    full = tf.cast(tf.maximum(0, queue.size() - behind), tf.float32) * (1.0 / (capacity - behind))
    tf.summary.scalar(f"queue/{queue.name}fraction_over_{behind}_of_{capacity - behind}_full", full)


def _operation(queue: Any, dtypes: list[Any]) -> tuple[Any, list[Any]]:
    """An operation that enqueues, and its placeholders."""
    placeholders = [tf.placeholder(dtype) for dtype in dtypes]
    return queue.enqueue_many(placeholders), placeholders


def _dtype(column: Any) -> Any:
    return tf.string if column.dtype == object else tf.as_dtype(column.dtype)


def _thread_seed(seed: int | None, thread: int) -> int | None:
    return None if seed is None else seed + thread


def check_shuffle(shuffle: Any) -> None:
    """ValueError unless it is True or False."""
    if not isinstance(shuffle, bool):
        raise ValueError(
            "shuffle must be provided and explicitly set as boolean (it is recommended to set it as True for "
            f"training); got {shuffle}"
        )


def dequeue_rows(
    columns: Sequence[Any],
    capacity: int,
    shuffle: Any,
    num_threads: int,
    batch_size: int,
    num_epochs: int | None,
) -> list[Any]:
    """Batches of rows, a tensor for each column, from a queue that `enqueue_rows` makes."""
    queue = enqueue_rows(
        columns, capacity, shuffle, num_threads, enqueue_size=batch_size, num_epochs=num_epochs
    )
    dequeue = queue.dequeue_many if num_epochs is None else queue.dequeue_up_to
    batch: list[Any] = dequeue(batch_size)[1:]
    return batch
