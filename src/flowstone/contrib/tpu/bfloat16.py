"""`bfloat16_scope`: weights that are kept as float32 and used as bfloat16."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import flowstone as tf

__all__ = ["bfloat16_scope"]


@contextmanager
def bfloat16_scope(name: str | None = None) -> Iterator[tf.VariableScope]:
    """A variable scope in which a variable of bfloat16 is one of float32, cast when it is read."""
    with tf.variable_scope(name or "", custom_getter=_getter) as scope:
        yield scope


def _getter(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
    wanted = tf.as_dtype(kwargs.get("dtype") or tf.float32)
    if wanted != tf.bfloat16:
        return getter(name, *args, **kwargs)
    return tf.cast(getter(name, *args, **{**kwargs, "dtype": tf.float32}), wanted)
