"""`tensorflow.python.ops.summary_ops_v2`: the scope of a summary, beside `contrib.summary`'s functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import flowstone as tf

__all__ = ["_INVALID_SCOPE_CHARACTERS", "summary_scope"]

_INVALID_SCOPE_CHARACTERS = re.compile(r"[^-_/.A-Za-z0-9]")


@contextmanager
def summary_scope(name: str, default_name: str = "summary", values: Any = None) -> Iterator[tuple[str, str]]:
    """A name scope, and the tag of a summary in it: the scopes that are open, and `name`.

    Yields (tag, scope). Characters that no scope may have are left out of the scope's name.
    """
    scopes = tf.get_default_graph().get_name_scope()
    tag = f"{scopes}/{name}" if scopes else name
    legal = _INVALID_SCOPE_CHARACTERS.sub("", name) or None
    with tf.name_scope(legal, default_name, values) as scope:
        yield tag, scope
