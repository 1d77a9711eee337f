"""The hook that runs a `TPUEstimatorSpec`'s host call with each step."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.summary.summary_writers import flush_writers, summary_writer_initializer_op

__all__ = ["HostCallHook"]


class HostCallHook(tf.train.SessionRunHook):  # type: ignore[misc]
    """Runs operations with each step; opens the graph's summary writers before, and flushes them at the end.

    Args:
        operations: what the host's function gave.
    """

    def __init__(self, operations: list[Any]) -> None:
        self._operations = operations
        self._opened = list(summary_writer_initializer_op())
        self._flushed = flush_writers()

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self._opened)

    def before_run(self, run_context: Any) -> Any:
        return tf.train.SessionRunArgs(self._operations)

    def end(self, session: Any) -> None:
        session.run(self._flushed)
