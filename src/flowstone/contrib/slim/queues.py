"""The threads of queue runners, for as long as a context lasts."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import flowstone as tf

__all__ = ["NestedQueueRunnerError", "QueueRunners"]

# The graphs whose queue runners run in a context now.
_running: set[int] = set()
_lock = threading.Lock()


class NestedQueueRunnerError(Exception):
    """A context of `QueueRunners` lies within another one of the same session."""


@contextlib.contextmanager
def QueueRunners(session: Any) -> Iterator[None]:
    """Starts the threads of the graph's queue runners in `session`; they are stopped when the context ends.

    Raises NestedQueueRunnerError within such a context.
    """
    key = id(session)
    with _lock:
        if key in _running:
            raise NestedQueueRunnerError("QueueRunners cannot be nested")
        _running.add(key)
    coordinator = tf.train.Coordinator()
    threads: list[threading.Thread] = []
    try:
        for runner in tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS):
            threads.extend(runner.create_threads(session, coord=coordinator, daemon=True, start=True))
        yield
    finally:
        with _lock:
            _running.discard(key)
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=120)
