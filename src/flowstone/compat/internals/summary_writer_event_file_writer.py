"""`tensorflow.python.summary.writer.event_file_writer`: events in files, written by a thread of their own."""

from __future__ import annotations

from typing import Any

from flowstone.io.events import EventLog

__all__ = ["EventFileWriter"]


class EventFileWriter(EventLog):
    """Writes Event messages to a file in `logdir`.

    Args:
        logdir: the folder. max_queue: events that may wait. flush_secs: the longest that one waits.
        filename_suffix: the end of the file's name.
    """

    def __init__(
        self, logdir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str | None = None
    ) -> None:
        super().__init__(logdir, max_queue, flush_secs, filename_suffix or "")
        self._logdir = logdir

    def get_logdir(self) -> Any:
        """The folder."""
        return self._logdir
