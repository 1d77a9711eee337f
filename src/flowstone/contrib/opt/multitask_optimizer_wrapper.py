"""Optimisers of several tasks that take turns: a gradient of zeros leaves variable and slots as they are."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["MultitaskOptimizerWrapper", "clip_gradients_by_global_norm"]

_METHODS = ("_apply_dense", "_resource_apply_dense", "_apply_sparse", "_resource_apply_sparse")


def _is_all_zeros(grad: Any) -> Any:
    values = grad.values if isinstance(grad, tf.IndexedSlices) else grad
    return tf.equal(tf.count_nonzero(values), 0)


class MultitaskOptimizerWrapper:
    """Wraps an optimiser so that variables whose whole gradient is zero are not updated, nor their slots.

    Args:
        opt: the optimiser, whose other attributes are this one's. TypeError for other things.
    """

    def __init__(self, opt: Any) -> None:
        if not isinstance(opt, tf.train.Optimizer):
            raise TypeError(f"Supplied optimizer must be an instance of tf.train.Optimizer, not {type(opt)}")
        self._opt = opt
        for name in _METHODS:
            setattr(opt, name, self._where_not_zero(getattr(opt, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opt, name)

    @staticmethod
    def _where_not_zero(method: Any) -> Any:
        def update(grad: Any, *args: Any, **kwargs: Any) -> Any:
            def apply() -> Any:
                return tf.group(method(grad, *args, **kwargs))

            return tf.cond(_is_all_zeros(grad), tf.no_op, apply)

        return update


def clip_gradients_by_global_norm(gradients_variables: Any, clip_norm: float = 20.0) -> list[Any]:
    """Pairs (gradient, variable) whose gradients are clipped by their common norm.

    Gradients that are None or all zeros do not count. Raises nothing of its own.
    """
    gradients, variables = zip(*gradients_variables)
    clipped, _ = tf.clip_by_global_norm(list(gradients), clip_norm)
    return list(zip(clipped, variables))
