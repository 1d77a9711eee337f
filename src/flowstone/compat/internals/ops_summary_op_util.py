"""`tensorflow.python.ops.summary_op_util`: names of summaries and the collections they join."""

from __future__ import annotations

import contextlib
from typing import Any

import flowstone as tf
from flowstone.contrib.distribute.distribute_lib import get_replica_context
from flowstone.ops.summaries.summaries import clean_tag
from flowstone.ops.summaries.summaries import summary_scope as _summary_scope

__all__ = ["clean_tag", "collect", "skip_summary", "summary_scope"]


def collect(val: Any, collections: Any, default_collections: Any) -> None:
    """Adds a value to the collections named; to the default ones for None."""
    for key in default_collections if collections is None else collections:
        tf.add_to_collection(key, val)


def skip_summary() -> bool:
    """Whether this is a replica other than a strategy's first, which writes the summaries."""
    replica = get_replica_context()
    if replica is None:
        return False
    number = replica.replica_id_in_sync_group
    known = tf.contrib.util.constant_value(number) if isinstance(number, tf.Tensor) else number
    return bool(known is not None and known > 0)


def summary_scope(
    name: str, family: str | None = None, default_name: str | None = None, values: Any = None
) -> contextlib.AbstractContextManager[Any]:
    """A context in which nodes are named for a summary; it gives (the tag, the node's name)."""
    return _summary_scope(name, family, default_name)
