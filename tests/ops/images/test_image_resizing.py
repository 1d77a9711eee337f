"""Bilinear resizing is a product with a matrix along each axis; its gradient one with their transposes."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags


def shares(length: int, count: int) -> np.ndarray:
    """How much of each of `length` pixels is in each of `count`, as TensorFlow 1 places them."""
    result = np.zeros((count, length))
    for i, place in enumerate(np.arange(count, dtype=np.float32) * np.float32(length / count)):
        below = int(place)
        result[i, below] += 1 - (place - below)
        result[i, min(below + 1, length - 1)] += place - below
    return result


@pytest.mark.parametrize("tier", [0, 1])
@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((40, 3, 4, 2), (6, 8)),
        ((2, 5, 3, 3), (17, 2)),
        ((2, 8, 8, 16), (4, 4)),
        ((3, 1, 6, 37), (4, 6)),
        ((1, 7, 9, 64), (21, 30)),
    ],
    ids=str,
)
def test_bilinear_resizing_by_matrices(
    monkeypatch: pytest.MonkeyPatch, tier: int, shape: tuple[int, ...], size: tuple[int, int]
) -> None:
    monkeypatch.setattr(flags, "NATIVE", tier)
    random = np.random.default_rng(3)
    images = random.standard_normal(shape).astype(np.float32)
    dy = random.standard_normal((shape[0], *size, shape[3])).astype(np.float32)
    matrices = shares(shape[1], size[0]), shares(shape[2], size[1])
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as session:
        x = tf.placeholder(tf.float32, shape)
        y = tf.image.resize_bilinear(x, size)
        found, gradient = session.run([y, tf.gradients(y, x, dy)[0]], {x: images})
    np.testing.assert_allclose(found, np.einsum("ah,bw,nhwc->nabc", *matrices, images), atol=3e-6)
    np.testing.assert_allclose(gradient, np.einsum("ah,bw,nabc->nhwc", *matrices, dy), atol=2e-5)
