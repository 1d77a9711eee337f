"""A `QueueRunner` whose enqueue operations are fed by functions of the program."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.training.input.queue_runner import QueueRunner

__all__ = ["FeedingQueueRunner"]


class FeedingQueueRunner(QueueRunner):
    """Enqueue operations of a queue, each with a function that gives what it is fed.

    `feed_fns`: functions without arguments, one an operation; each gives the `feed_dict` of the next run. A
    function ends the input by raising one of `queue_closed_exception_types` or StopIteration. The other
    arguments are those of `QueueRunner`. Raises ValueError if there are not as many functions as operations.
    """

    def __init__(
        self,
        queue: Any = None,
        enqueue_ops: Sequence[Any] | None = None,
        close_op: Any = None,
        cancel_op: Any = None,
        feed_fns: Sequence[Callable[[], Any] | None] | None = None,
        queue_closed_exception_types: Any = None,
    ) -> None:
        super().__init__(
            queue, enqueue_ops, close_op, cancel_op,
            queue_closed_exception_types=queue_closed_exception_types or (
                tf.errors.OutOfRangeError, tf.errors.CancelledError,
            ),
        )  # fmt: skip
        feeds = [None] * len(self.enqueue_ops) if feed_fns is None else list(feed_fns)
        if len(feeds) != len(self.enqueue_ops):
            raise ValueError("If feed_fns is not None, it must have the same length as enqueue_ops.")
        self._feed_fns = feeds

    def create_threads(
        self, sess: Any, coord: Any = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """Threads that feed and run the enqueue operations; none while such threads run there already."""
        with self._lock:
            if self._running.get(sess, 0) > 0:
                return []
            self._running[sess] = len(self._enqueue_ops)
            self._exceptions_raised = []
        threads = [
            self._thread(op.name, self._run_fed, sess, op, feed, coord)
            for op, feed in zip(self._enqueue_ops, self._feed_fns)
        ]
        if coord is not None:
            threads.append(self._thread("close_on_stop", self._close_on_stop, sess, coord))
        for thread in threads:
            thread.daemon = daemon
            if coord is not None:
                coord.register_thread(thread)
            if start:
                thread.start()
        return threads

    def _run_fed(self, sess: Any, enqueue_op: Any, feed: Callable[[], Any] | None, coord: Any) -> None:
        try:
            while coord is None or not coord.should_stop():
                sess.run(enqueue_op, None if feed is None else feed())
        except Exception as error:
            left = self._ended(sess)
            if not isinstance(error, (StopIteration, *self._queue_closed_exception_types)):
                self._report(error, coord)
            elif left == 0:
                self._close(sess, self._close_op)
        else:
            self._ended(sess)

    def to_proto(self, export_scope: str | None = None) -> Any:
        """Raises NotImplementedError: functions of the program have no message."""
        raise NotImplementedError(
            "Exporting a FeedingQueueRunner is not possible: use a QueueRunner, whose operations need no feed"
        )
