"""What `tf.summary` has of the summaries of later TensorFlows, of which a graph has none."""

from __future__ import annotations

from typing import Any

__all__ = ["all_v2_summary_ops", "initialize"]


def all_v2_summary_ops() -> list[Any]:
    """The operations of later TensorFlows' summaries in the graph: an empty list."""
    return []


def initialize(graph: Any = None, session: Any = None) -> None:
    """RuntimeError: there is no default writer of such summaries. A `tf.summary.FileWriter` needs none."""
    raise RuntimeError(
        "No default summary writer found: make a tf.summary.FileWriter, which needs no initialisation"
    )
