"""Fake quantisation of a tensor, its range in the variables `min` and `max` of a scope of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import flowstone as tf
from flowstone.training.optimizers.moving_averages import assign_moving_average

__all__ = ["LastValueQuantize", "MovingAvgQuantize", "Range"]


@dataclass(frozen=True)
class Range:
    """How values are quantised.

    Attributes:
        num_bits: the number of bits.
        narrow_range: whether the lowest of the 2 ** num_bits values is left out.
        symmetric: whether the range is symmetric about 0.
        is_training: whether ranges are learnt from the values; otherwise they are the variables'.
    """

    num_bits: int
    narrow_range: bool
    symmetric: bool
    is_training: bool


def _bound(name: str, value: float) -> Any:
    return tf.get_variable(
        name,
        shape=[],
        initializer=tf.constant_initializer(value),
        trainable=False,
        collections=[tf.GraphKeys.GLOBAL_VARIABLES],
    )


def _batch_range(inputs: Any, kind: Range) -> tuple[Any, Any]:
    """The range of the values with 0 in it, symmetric if asked for."""
    low, high = tf.reduce_min(inputs, name="BatchMin"), tf.reduce_max(inputs, name="BatchMax")
    if not kind.symmetric:
        return tf.minimum(low, 0.0, name="Minimum"), tf.maximum(high, 0.0, name="Maximum")
    levels = 1 << kind.num_bits
    ratio = -1.0 if kind.narrow_range else -(levels - 2.0) / levels
    least = tf.minimum(low, high / ratio, name="Minimum")
    return least, tf.maximum(high, low * ratio, name="Maximum")


def _quantize(inputs: Any, low: Any, high: Any, kind: Range) -> Any:
    return tf.fake_quant_with_min_max_vars(
        inputs, low, high, num_bits=kind.num_bits, narrow_range=kind.narrow_range
    )


def LastValueQuantize(
    inputs: Any,
    kind: Range,
    init_min: float = -6.0,
    init_max: float = 6.0,
    name_prefix: str = "LastValueQuant",
) -> Any:
    """The values quantised to the range that they have in this step.

    Args:
        inputs: a float32 tensor.
        kind: how.
        init_min, init_max: the range before the first step.
        name_prefix: of the scope, made unique.
    """
    with tf.variable_scope(None, default_name=name_prefix, values=[inputs], reuse=None):
        low, high = _bound("min", init_min), _bound("max", init_max)
        if not kind.is_training:
            return _quantize(inputs, low, high, kind)
        range_min, range_max = _batch_range(inputs, kind)
        assigned_min = tf.assign(low, range_min, name="AssignMinLast")
        assigned_max = tf.assign(high, range_max, name="AssignMaxLast")
        return _quantize(inputs, assigned_min, assigned_max, kind)


def MovingAvgQuantize(
    inputs: Any,
    kind: Range,
    init_min: float = 0.0,
    init_max: float = 6.0,
    ema_decay: float = 0.999,
    name_prefix: str = "MovingAvgQuantize",
) -> Any:
    """The values quantised to a moving average of their range; the arguments are `LastValueQuantize`'s.

    `ema_decay` is the decay of the averages, which are corrected for their start at 0.
    """
    with tf.variable_scope(None, default_name=name_prefix, values=[inputs], reuse=None):
        low, high = _bound("min", init_min), _bound("max", init_max)
        if not kind.is_training:
            return _quantize(inputs, low, high, kind)
        range_min, range_max = _batch_range(inputs, kind)
        assigned_min = assign_moving_average(low, range_min, ema_decay, name="AssignMinEma")
        assigned_max = assign_moving_average(high, range_max, ema_decay, name="AssignMaxEma")
        return _quantize(inputs, assigned_min, assigned_max, kind)
