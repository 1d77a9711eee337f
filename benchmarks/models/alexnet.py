"""AlexNet, one tower: Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014."""

from __future__ import annotations

from typing import Any

from models import classification
from models.classification import Step

IMAGE = (227, 227, 3)
CLASSES = 1000
# kernel size, filters, stride, padding, and whether a 3x3 pooling with stride 2 follows
CONVOLUTIONS = (
    (11, 64, 4, "VALID", True),
    (5, 192, 1, "SAME", True),
    (3, 384, 1, "SAME", False),
    (3, 256, 1, "SAME", False),
    (3, 256, 1, "SAME", True),
)
HIDDEN = (4096, 4096)


def training_step(tf: Any, batch: int) -> Step:
    """The step of `classification.py` on `batch` images; `tf` is the library."""
    return classification.training_step(tf, [batch, *IMAGE], CLASSES, logits)


def logits(tf: Any, images: Any) -> Any:
    """[batch, CLASSES] from [batch, *IMAGE]."""
    x = images
    for size, filters, stride, padding, pooled in CONVOLUTIONS:
        weights = _weights(tf, [size, size, int(x.shape[3]), filters])
        convolved = tf.nn.conv2d(x, weights, [1, stride, stride, 1], padding)
        x = tf.nn.relu(tf.nn.bias_add(convolved, _biases(tf, filters)))
        if pooled:
            x = tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "VALID")
    x = tf.reshape(x, [int(x.shape[0]), -1])
    for units in HIDDEN:
        x = tf.nn.relu(_product(tf, x, units))
    return _product(tf, x, CLASSES)


def _product(tf: Any, x: Any, units: int) -> Any:
    return tf.nn.bias_add(tf.matmul(x, _weights(tf, [int(x.shape[1]), units])), _biases(tf, units))


def _weights(tf: Any, shape: list[int]) -> Any:
    return tf.Variable(tf.truncated_normal(shape, stddev=0.05, seed=1))


def _biases(tf: Any, count: int) -> Any:
    return tf.Variable(tf.zeros([count]))
