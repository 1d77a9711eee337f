"""Whether summaries are recorded: always, never, or at every n-th global step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import flowstone as tf

__all__ = [
    "always_record_summaries",
    "current",
    "never_record_summaries",
    "record_summaries_every_n_global_steps",
    "recorded_if",
    "recording",
    "recording_condition",
    "should_record_summaries",
]

_conditions: list[Any] = [None]


@contextlib.contextmanager
def recording(condition: Any) -> Iterator[None]:
    """A context within which summaries are recorded if `condition` is true."""
    _conditions.append(condition)
    try:
        yield
    finally:
        _conditions.pop()


def recording_condition(by_default: bool = False) -> Any:
    """The condition that holds here: a bool, a bool scalar tensor, or a function that gives one; `by_default`
    outside all contexts."""
    return by_default if _conditions[-1] is None else _conditions[-1]


def current() -> Any:
    """The condition that holds here: a bool, or a bool scalar tensor."""
    condition = recording_condition()
    return condition() if callable(condition) else condition


def recorded_if(condition: Any, record: Callable[[], Any], name: str | None = None) -> Any:
    """What `record` gives, a bool scalar, where a bool, or a bool scalar tensor, is true; elsewhere False."""
    if isinstance(condition, bool):
        return record() if condition else tf.constant(False)
    return tf.cond(condition, record, lambda: tf.constant(False), name=name)


def always_record_summaries() -> Any:
    """A context within which summaries are recorded."""
    return recording(True)


def never_record_summaries() -> Any:
    """A context within which no summaries are recorded; so it is outside all contexts."""
    return recording(False)


def record_summaries_every_n_global_steps(n: int, global_step: Any = None) -> Any:
    """A context within which summaries are recorded in steps whose number is a multiple of `n`.

    `global_step`: an integer scalar; the graph's global step, which is made if need be, if None.
    """
    step = tf.train.get_or_create_global_step() if global_step is None else global_step
    with tf.device("cpu:0"):
        number = tf.cast(tf.convert_to_tensor(step), tf.int64)
        condition = tf.equal(number % tf.constant(n, tf.int64), 0)
    return recording(condition)


def should_record_summaries() -> tf.Tensor:
    """Whether summaries are recorded here, a bool scalar."""
    return tf.convert_to_tensor(current())
