"""`tensorflow.python.ops.logging_ops`: the one summary of a graph."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["get_summary_op"]


def get_summary_op() -> Any:
    """The operation that collects all summaries, or None without any.

    It is the collection SUMMARY_OP's; where that is empty, a new one, which joins it.
    """
    existing = tf.get_collection(tf.GraphKeys.SUMMARY_OP)
    summary = existing[0] if existing else tf.summary.merge_all()
    if summary is not None and not existing:
        tf.add_to_collection(tf.GraphKeys.SUMMARY_OP, summary)
    return summary
