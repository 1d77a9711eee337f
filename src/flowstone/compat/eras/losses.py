"""Losses whose arguments came in another order in TensorFlow 0.x: logits first, inputs before labels.

| then | now |
| --- | --- |
| `softmax_cross_entropy_with_logits(logits, labels)` | only by name |
| `sparse_softmax_cross_entropy_with_logits(logits, labels)` | only by name |
| `sigmoid_cross_entropy_with_logits(logits, targets)` | only by name |
| `nce_loss(weights, biases, inputs, labels, …)` | `nce_loss(weights, biases, labels, inputs, …)` |
| `sampled_softmax_loss(weights, biases, inputs, labels, …)` | the same |
| `weighted_cross_entropy_with_logits(logits, targets, …)` | `(targets, logits, …)` |

Arguments by position to the first three can only be meant the old way. Labels of the sampled losses are
integers. Nothing tells the two readings of the last one apart, so that its arguments need names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import flowstone
from flowstone.compat.eras.names import AMBIGUOUS

__all__ = ["install"]

_nn: Any = flowstone.nn


def _by_name_only(function: Callable[..., Any], third: str) -> Callable[..., Any]:
    """`function`, which is also called as (logits, labels, `third`, name)."""

    def called(*args: Any, **kwargs: Any) -> Any:
        if args and args[0] is not None:
            names = ["logits", "labels", *([third] if third else []), "name"]
            if len(args) > 2 and isinstance(args[2], str):
                names = ["logits", "labels", "name"]
            given = dict(zip(names, args))
            if "targets" in kwargs:
                kwargs["labels"] = kwargs.pop("targets")
            return function(**given, **kwargs)
        if "targets" in kwargs:
            kwargs["labels"] = kwargs.pop("targets")
        return function(*args, **kwargs)

    called.__name__, called.__doc__ = function.__name__, function.__doc__
    return called


def _is_integers(value: Any) -> bool | None:
    """Whether these are integers; None where it cannot be told."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        try:
            dtype = np.asarray(value).dtype
        except Exception:
            return None
    try:
        return bool(flowstone.as_dtype(dtype).base_dtype.is_integer)
    except TypeError:
        return None


def _labels_by_type(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function(weights, biases, labels, inputs, …)`, also called with the inputs before the labels."""

    def called(*args: Any, **kwargs: Any) -> Any:
        if len(args) >= 4:
            third, fourth = _is_integers(args[2]), _is_integers(args[3])
            if third == fourth:
                raise ValueError(
                    f"{function.__name__}(): TensorFlow 0.x takes (weights, biases, inputs, labels), later "
                    "ones (weights, biases, labels, inputs); the types do not tell which is meant: name them."
                )
            if fourth:
                args = (*args[:2], args[3], args[2], *args[4:])
        return function(*args, **kwargs)

    called.__name__, called.__doc__ = function.__name__, function.__doc__
    return called


def _named_only(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        if len(args) > 1:
            reason = AMBIGUOUS["tf.nn.weighted_cross_entropy_with_logits"]
            raise ValueError(f"weighted_cross_entropy_with_logits(): {reason}.")
        return function(*args, **kwargs)

    called.__name__, called.__doc__ = function.__name__, function.__doc__
    return called


def install() -> None:
    """Has the losses of `tf.nn` understand both forms."""
    for name, third in (
        ("softmax_cross_entropy_with_logits", "dim"),
        ("sparse_softmax_cross_entropy_with_logits", ""),
        ("sigmoid_cross_entropy_with_logits", ""),
    ):
        setattr(_nn, name, _by_name_only(getattr(_nn, name), third))
    for name in ("nce_loss", "sampled_softmax_loss"):
        setattr(_nn, name, _labels_by_type(getattr(_nn, name)))
    name = "weighted_cross_entropy_with_logits"
    setattr(_nn, name, _named_only(getattr(_nn, name)))
