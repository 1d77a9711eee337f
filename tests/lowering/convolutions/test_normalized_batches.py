"""Kernels of batch normalisation in machine code: strided operands, and what they say that they cost."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason())


def test_images_that_are_not_in_one_piece_are_copied(monkeypatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    values = np.random.default_rng(3).standard_normal((8, 12, 9, 6)).astype("f")
    x = tf.placeholder(tf.float32, values.shape)
    scale, offset = tf.constant(np.arange(24, dtype="f"))[::2][:8], tf.zeros([8])
    y = tf.nn.relu(tf.nn.fused_batch_norm(tf.transpose(x, [3, 2, 1, 0]), scale, offset, epsilon=0.1)[0])
    with tf.Session() as session:
        assert "_NormalizedBatch" in session.explain(y, {x: values})
        found = session.run(y, {x: values})
    images = values.transpose(3, 2, 1, 0).astype("f8")
    mean, variance = images.mean((0, 1, 2)), images.var((0, 1, 2))
    expected = np.maximum((images - mean) / np.sqrt(variance + 0.1) * np.arange(0, 16, 2), 0)
    np.testing.assert_allclose(found, expected, atol=1e-5)
