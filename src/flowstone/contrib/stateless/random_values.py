"""Random values of a seed of two numbers, as TensorFlow 1.4 and 1.15 call for them."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["stateless_random_normal", "stateless_random_uniform", "stateless_truncated_normal"]


def stateless_random_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = tf.float32,
    name: str | None = None,
) -> Any:
    """Normal numbers; see `tf.random.stateless_normal`.

    TensorFlow 1.4 has the type in the third place; a type there is taken for it.
    """
    if isinstance(mean, tf.DType):
        mean, dtype = 0.0, mean
    return tf.random.stateless_normal(shape, seed, mean, stddev, dtype, name)


def stateless_random_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = tf.float32,
    name: str | None = None,
) -> Any:
    """Uniform numbers; see `tf.random.stateless_uniform`.

    TensorFlow 1.4 has the type in the third place; a type there is taken for it.
    """
    if isinstance(minval, tf.DType):
        minval, dtype = 0, minval
    return tf.random.stateless_uniform(shape, seed, minval, maxval, dtype, name)


def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = tf.float32,
    name: str | None = None,
) -> Any:
    """Normal numbers up to two deviations from the mean; see `tf.random.stateless_truncated_normal`.

    TensorFlow 1.4 has the type in the third place; a type there is taken for it.
    """
    if isinstance(mean, tf.DType):
        mean, dtype = 0.0, mean
    return tf.random.stateless_truncated_normal(shape, seed, mean, stddev, dtype, name)
