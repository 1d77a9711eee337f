"""One writer of events a folder, under the names that `tf.contrib.learn` gave it."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["SummaryWriterCache", "clear_summary_writers", "get_summary_writer"]

SummaryWriterCache = tf.summary.FileWriterCache


def get_summary_writer(logdir: str) -> Any:
    """The writer of events in the folder `logdir`: the same one at each call."""
    return SummaryWriterCache.get(logdir)


def clear_summary_writers() -> None:
    """Closes the writers of all folders and forgets them."""
    SummaryWriterCache.clear()
