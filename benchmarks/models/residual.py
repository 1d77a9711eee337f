"""ResNet-50: He et al., "Deep residual learning for image recognition", 2015, with batch normalisation."""

from __future__ import annotations

from typing import Any

from models import classification
from models.classification import Step

IMAGE = (229, 229, 3)  # carries the first convolution's padding
CLASSES = 1000
GROUPS = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # filters, blocks, stride of the first block


def training_step(tf: Any, batch: int) -> Step:
    """The step of `classification.py` on `batch` images; `tf` is the library."""
    return classification.training_step(tf, [batch, *IMAGE], CLASSES, logits)


def logits(tf: Any, images: Any) -> Any:
    """[batch, CLASSES] from [batch, *IMAGE]."""
    x = tf.nn.relu(_normalised(tf, images, 64, 7, 2, "VALID"))
    x = tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME")
    for filters, blocks, stride in GROUPS:
        for block in range(blocks):
            x = _bottleneck(tf, x, filters, 1 if block else stride)
    weights = _weights(tf, [int(x.shape[3]), CLASSES])
    return tf.matmul(tf.reduce_mean(x, [1, 2]), weights)


def _bottleneck(tf: Any, x: Any, filters: int, stride: int) -> Any:
    y = tf.nn.relu(_normalised(tf, x, filters, 1, stride))
    y = tf.nn.relu(_normalised(tf, y, filters, 3))
    y = _normalised(tf, y, 4 * filters, 1)
    if int(x.shape[3]) != 4 * filters:
        x = _normalised(tf, x, 4 * filters, 1, stride)
    return tf.nn.relu(x + y)


def _normalised(tf: Any, x: Any, filters: int, size: int, stride: int = 1, padding: str = "SAME") -> Any:
    weights = _weights(tf, [size, size, int(x.shape[3]), filters])
    x = tf.nn.conv2d(x, weights, [1, stride, stride, 1], padding)
    scale, offset = tf.Variable(tf.ones([filters])), tf.Variable(tf.zeros([filters]))
    return tf.nn.fused_batch_norm(x, scale, offset)[0]


def _weights(tf: Any, shape: list[int]) -> Any:
    return tf.Variable(tf.truncated_normal(shape, stddev=0.05, seed=1))
