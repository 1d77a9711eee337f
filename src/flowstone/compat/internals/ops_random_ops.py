"""`tensorflow.python.ops.random_ops`: normal values between bounds."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["parameterized_truncated_normal"]


def parameterized_truncated_normal(
    shape: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    dtype: Any = tf.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Random values of normal distributions, each within its bounds.

    Args:
        shape: of the result. means, stddevs, minvals, maxvals: scalars, or one for each row of the result.
        dtype: the result's type. seed: of the operation. name: of the operation.
    """
    with tf.name_scope(name, "parameterized_truncated_normal", [shape, means, stddevs, minvals, maxvals]):
        parts = [tf.convert_to_tensor(each, dtype) for each in (means, stddevs, minvals, maxvals)]
        seeds = tf.get_seed(seed)
        return tf.raw_ops.ParameterizedTruncatedNormal(
            shape=tf.convert_to_tensor(shape, tf.int32),
            means=parts[0],
            stdevs=parts[1],
            minvals=parts[2],
            maxvals=parts[3],
            seed=seeds[0] or 0,
            seed2=seeds[1] or 0,
        )
