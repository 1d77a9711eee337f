"""A training step of a network that says which class an image is of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Step = tuple[list[Any], dict[Any, np.ndarray[Any, Any]]]
"""[update, loss], and values for the feeds."""


def training_step(tf: Any, dims: Sequence[int], classes: int, logits: Callable[[Any, Any], Any]) -> Step:
    """Gradient descent on images of shape `dims` = [batch, height, width, channels]; `tf` is the library."""
    images = tf.placeholder(tf.float32, dims)
    labels = tf.placeholder(tf.int64, dims[:1])
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits(tf, images))
    )
    train = tf.train.GradientDescentOptimizer(0.001).minimize(loss)
    random = np.random.RandomState(0)
    values = {
        images: random.rand(*dims).astype(np.float32),
        labels: random.randint(0, classes, dims[0]),
    }
    return [train, loss], values
