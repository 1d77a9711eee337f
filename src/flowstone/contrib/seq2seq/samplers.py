"""Draws of decoders: from a Bernoulli or a categorical distribution, by TensorFlow's nodes.

Its helpers draw without objects of distributions, so a loop's random operations have other seeds than these
would give them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf

__all__ = ["bernoulli_sample", "categorical_sample"]


def _called(draw: Callable[[Any], Any], sample_shape: Any) -> Any:
    """What `draw` gives for a number of samples, in a shape of samples: a number or a vector of numbers."""
    with tf.name_scope("call_sampler"):
        shape = tf.convert_to_tensor(sample_shape, tf.int32, name="sample_shape")
        is_number = tf.cast(tf.equal(tf.rank(shape), 0), tf.int32)
        shape = tf.reshape(shape, tf.pad(tf.shape(shape), [[is_number, 0]], constant_values=1))
        samples = draw(tf.reduce_prod(shape))
        return tf.reshape(samples, tf.concat([shape, tf.shape(samples)[1:]], 0))


def bernoulli_sample(probs: Any, dtype: Any, sample_shape: Any, seed: int | None = None) -> Any:
    """1, or True, with the given probabilities: [*sample_shape, *probs.shape]."""
    batch = tf.shape(probs)

    def draw(n: Any) -> Any:
        uniform = tf.random_uniform(tf.concat([[n], batch], 0), seed=seed, dtype=probs.dtype)
        return tf.cast(tf.less(uniform, probs), dtype)

    return _called(draw, sample_shape)


def categorical_sample(logits: Any, seed: int | None = None) -> Any:
    """Classes [...] by the probabilities softmax(logits [..., classes]), int32."""
    classes = tf.shape(logits)[-1]
    batch = tf.shape(logits)[:-1]

    def draw(n: Any) -> Any:
        flat = logits if logits.shape.ndims == 2 else tf.reshape(logits, [-1, classes])
        drawn = tf.transpose(tf.multinomial(flat, n, seed=seed, output_dtype=tf.int32))
        return tf.reshape(drawn, tf.concat([[n], batch], 0))

    return _called(draw, [])
