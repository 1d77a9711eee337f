"""Initialisers whose spread comes from the number of a layer's inputs and outputs.

Sources: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks"
(2010); He et al., "Delving Deep into Rectifiers" (2015).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf

__all__ = ["variance_scaling_initializer", "xavier_initializer", "xavier_initializer_conv2d"]

Initializer = Callable[..., Any]


def xavier_initializer(uniform: bool = True, seed: int | None = None, dtype: Any = tf.float32) -> Initializer:
    """An initialiser that keeps the scale of gradients alike in all layers (Glorot and Bengio, 2010).

    Values are uniform in ±sqrt(6 / (in + out)), or truncated normal with the deviation sqrt(2 / (in + out)).
    TypeError if `dtype` is not a floating-point type.
    """
    return variance_scaling_initializer(factor=1.0, mode="FAN_AVG", uniform=uniform, seed=seed, dtype=dtype)


xavier_initializer_conv2d = xavier_initializer


def variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: int | None = None,
    dtype: Any = tf.float32,
) -> Initializer:
    """An initialiser whose variance is `factor` divided by a number of connections.

    Args:
        factor: 2 for layers with rectifiers (He et al., 2015), 1 for others.
        mode: "FAN_IN", "FAN_OUT" or "FAN_AVG": the number of a unit's inputs, outputs, or the mean of both.
        uniform: whether values are uniform; otherwise they are truncated normal.
        seed, dtype: of the random values.

    Raises:
        TypeError: `dtype` is not a floating-point type, or the mode is another.
    """
    if not dtype.is_floating:
        raise TypeError("Cannot create initializer for non-floating point type.")
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise TypeError(f"Unknown mode {mode} [FAN_IN, FAN_OUT, FAN_AVG]")

    def _initializer(shape: Sequence[int], dtype: Any = dtype, partition_info: Any = None) -> Any:
        if not dtype.is_floating:
            raise TypeError("Cannot create initializer for non-floating point type.")
        whole = shape if partition_info is None else partition_info.full_shape
        connections = _connections(whole, mode)
        if uniform:
            limit = math.sqrt(3.0 * factor / connections)
            return tf.random_uniform(shape, -limit, limit, dtype, seed=seed)
        deviation = math.sqrt(1.3 * factor / connections)  # what is cut off makes the deviation smaller
        return tf.truncated_normal(shape, 0.0, deviation, dtype, seed=seed)

    return _initializer


def _connections(shape: Sequence[int], mode: str) -> float:
    fan_in = float(shape[-2] if len(shape) > 1 else shape[-1]) if shape else 1.0
    fan_out = float(shape[-1]) if shape else 1.0
    window = math.prod(float(size) for size in shape[:-2])
    chosen = {"FAN_IN": fan_in, "FAN_OUT": fan_out, "FAN_AVG": (fan_in + fan_out) / 2.0}
    return chosen[mode] * window
