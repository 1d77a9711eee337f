"""Conditions that are decided while the graph is built where their predicates are known then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf


def smart_constant_value(pred: Any) -> bool | None:
    """A predicate's value, where it is known without a step, or None.

    `pred` is a bool, 1, 0 or a tensor. TypeError for anything else.
    """
    if isinstance(pred, tf.Tensor):
        value = tf.get_static_value(pred)
        return None if value is None else bool(value)
    if pred in (0, 1):  # True and False are equal to these
        return bool(pred)
    raise TypeError(f"`pred` must be a Tensor, or a Python bool, or 1 or 0. Found instead: {type(pred)}")


def smart_cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """What one of two functions gives: as `tf.cond`, without a condition where `pred` is known.

    TypeError if a function is missing or cannot be called.
    """
    if not callable(true_fn):
        raise TypeError("`true_fn` must be callable.")
    if not callable(false_fn):
        raise TypeError("`false_fn` must be callable.")
    known = smart_constant_value(pred)
    if known is None:
        return tf.cond(pred, true_fn=true_fn, false_fn=false_fn, name=name)
    return true_fn() if known else false_fn()


def smart_case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    name: str = "smart_case",
) -> Any:
    """As `tf.case`, without conditions for predicates that are known: a false one is left out.

    The pairs are taken in order, those of a dict in its own. A predicate that is known to be true ends them.
    """
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    open_pairs = []
    for pred, function in pairs:
        known = smart_constant_value(pred)
        if known:
            default = function
            break
        if known is None:
            open_pairs.append((pred, function))
    if open_pairs:
        return tf.case(open_pairs, default, exclusive=exclusive, name=name)
    if default is None:
        raise ValueError("smart_case needs a default where no predicate is true")
    with tf.name_scope(name):
        return default()
