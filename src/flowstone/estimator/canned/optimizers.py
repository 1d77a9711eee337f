"""The optimisers of canned estimators: by name, as an object, or by a function that makes one."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["get_optimizer_instance"]

_CLASSES = {
    "Adagrad": tf.train.AdagradOptimizer,
    "Adam": tf.train.AdamOptimizer,
    "Ftrl": tf.train.FtrlOptimizer,
    "RMSProp": tf.train.RMSPropOptimizer,
    "SGD": tf.train.GradientDescentOptimizer,
}


def get_optimizer_instance(opt: Any, learning_rate: float | None = None) -> Any:
    """The optimiser that is meant.

    Args:
        opt: a name, an Optimizer, or a function that makes one.
        learning_rate: that of a named one.

    Raises ValueError for an unknown name, a missing rate, and other things.
    """
    if isinstance(opt, str):
        if opt not in _CLASSES:
            raise ValueError(
                f"Unsupported optimizer name: {opt}. Supported names are: {tuple(sorted(_CLASSES))}"
            )
        if not learning_rate:
            raise ValueError(f"learning_rate must be specified when opt is string: {opt}.")
        return _CLASSES[opt](learning_rate)
    if callable(opt) and not isinstance(opt, tf.train.Optimizer):
        opt = opt()
    if not isinstance(opt, tf.train.Optimizer):
        raise ValueError(f"The given object is not an Optimizer instance. Given: {opt}")
    return opt
