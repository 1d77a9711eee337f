"""How the influence of signs decays over the steps (Bello et al. 2017, arXiv 1709.07417, section 4.4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flowstone as tf

__all__ = ["get_cosine_decay_fn", "get_linear_decay_fn", "get_restart_decay_fn"]


def get_linear_decay_fn(decay_steps: float) -> Callable[[Any], Any]:
    """From the step to a factor that falls from 1 to 0 in so many steps."""

    def decay_fn(global_step: Any) -> Any:
        step = tf.minimum(global_step, decay_steps)
        return (tf.cast(decay_steps, tf.float32) - tf.cast(step, tf.float32)) / decay_steps

    return decay_fn


def _without_end(factor: Any, step: Any, zero_after: float | None) -> Any:
    if zero_after is None:
        return factor
    return tf.where(tf.greater_equal(step, zero_after), 0.0, factor)


def get_cosine_decay_fn(
    decay_steps: float, num_periods: float = 0.5, zero_after: float | None = None
) -> Callable[[Any], Any]:
    """From the step to a factor (1 + cos)/2 that makes so many periods in `decay_steps`.

    It is 0 once `zero_after` periods are over.
    """

    def decay_fn(global_step: Any) -> Any:
        step = tf.minimum(tf.cast(global_step, tf.float32), tf.cast(decay_steps, tf.float32))
        periods = num_periods * step / decay_steps
        factor = 0.5 * (1.0 + tf.cos(2.0 * math.pi * periods))
        return _without_end(factor, periods, zero_after)

    return decay_fn


def get_restart_decay_fn(
    decay_steps: float, num_periods: float = 1, zero_after: float | None = None
) -> Callable[[Any], Any]:
    """From the step to a factor (1 + cos)/2 of half a period, which begins again `num_periods` times."""

    def decay_fn(global_step: Any) -> Any:
        step = tf.minimum(tf.cast(global_step, tf.float32), tf.cast(decay_steps, tf.float32))
        periods = num_periods * step / decay_steps
        factor = 0.5 * (1.0 + tf.cos(math.pi * (periods % 1)))
        return _without_end(factor, periods, zero_after)

    return decay_fn
