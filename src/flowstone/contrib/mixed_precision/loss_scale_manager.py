"""What a loss is multiplied by: a constant, or a number that follows which steps had finite gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import flowstone as tf

__all__ = ["ExponentialUpdateLossScaleManager", "FixedLossScaleManager", "LossScaleManager"]


class LossScaleManager(ABC):
    """A loss scale, and how a step changes it (Micikevicius et al., "Mixed Precision Training", 2017)."""

    @abstractmethod
    def get_loss_scale(self) -> Any:
        """The scale: a scalar float32 tensor or variable."""

    @abstractmethod
    def update_loss_scale(self, finite_grads: Any) -> Any:
        """The operation of the change after a step; a bool tensor says whether gradients were finite."""


class FixedLossScaleManager(LossScaleManager):
    """A scale that never changes: `loss_scale`, a number of at least 1. ValueError if it is less."""

    def __init__(self, loss_scale: float) -> None:
        if loss_scale < 1:
            raise ValueError("loss scale must be at least 1.")
        self._loss_scale = tf.constant(loss_scale, tf.float32)

    def get_loss_scale(self) -> Any:
        """The scale."""
        return self._loss_scale

    def update_loss_scale(self, finite_grads: Any) -> Any:
        """An operation that does nothing."""
        return tf.no_op()


class ExponentialUpdateLossScaleManager(LossScaleManager):
    """A scale that grows after steps with finite gradients, and shrinks after others.

    Its variables are `loss_scale`, `good_steps` and `bad_steps`.

    Args:
        init_loss_scale: the first scale.
        incr_every_n_steps: after so many finite steps in a row the scale is multiplied by `incr_ratio`.
        decr_every_n_nan_or_inf: after so many steps that were not finite it is multiplied by `decr_ratio`,
            and is 1 at least.
        incr_ratio, decr_ratio: the two factors.
    """

    def __init__(
        self,
        init_loss_scale: float,
        incr_every_n_steps: int,
        decr_every_n_nan_or_inf: int = 2,
        incr_ratio: float = 2,
        decr_ratio: float = 0.8,
    ) -> None:
        self._incr_every_n_steps = incr_every_n_steps
        self._decr_every_n_nan_or_inf = decr_every_n_nan_or_inf
        self._incr_ratio = incr_ratio
        self._decr_ratio = decr_ratio
        self._loss_scale = _state("loss_scale", init_loss_scale, tf.float32)
        self._num_good_steps = _state("good_steps", 0, tf.int32)
        self._num_bad_steps = _state("bad_steps", 0, tf.int32)

    def get_loss_scale(self) -> Any:
        """The variable of the scale."""
        return self._loss_scale

    def update_loss_scale(self, finite_grads: Any) -> Any:
        """The operation that counts the step and changes the scale when it is time."""
        return tf.cond(finite_grads, self._after_finite, self._after_other)

    def _reset(self) -> Any:
        return tf.group(tf.assign(self._num_good_steps, 0), tf.assign(self._num_bad_steps, 0))

    def _after_finite(self) -> Any:
        def grow() -> Any:
            grown = self._loss_scale * self._incr_ratio
            scale = tf.cond(tf.is_finite(grown), lambda: grown, lambda: tf.identity(self._loss_scale))
            return tf.group(tf.assign(self._loss_scale, scale), self._reset())

        due = self._num_good_steps + 1 >= self._incr_every_n_steps
        return tf.cond(due, grow, lambda: tf.group(tf.assign_add(self._num_good_steps, 1)))

    def _after_other(self) -> Any:
        def shrink() -> Any:
            scale = tf.maximum(1.0, self._loss_scale * self._decr_ratio)
            return tf.group(tf.assign(self._loss_scale, scale), self._reset())

        def count() -> Any:
            return tf.group(tf.assign_add(self._num_bad_steps, 1), tf.assign(self._num_good_steps, 0))

        due = self._num_bad_steps + 1 >= self._decr_every_n_nan_or_inf
        return tf.cond(due, shrink, count)


def _state(name: str, value: float, dtype: Any) -> Any:
    return tf.Variable(initial_value=tf.constant(value, dtype), name=name, trainable=False)
