"""What the oracle does not run: the contrast of old graphs, and half precision."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.operation import F

IMAGES = np.random.default_rng(1).uniform(0, 255, (2, 3, 4, 3))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "float32", "float64"])
def test_contrast_of_old_graphs_is_cut_to_a_range(dtype: str) -> None:
    images = IMAGES.astype(dtype)
    mean = images.mean((1, 2), keepdims=True)
    expected = np.clip((images - mean) * 1.5 + mean, 20, 200)
    assert expected.min() == 20 and expected.max() == 200
    with tf.Session() as session:
        found = session.run(F.AdjustContrast(images, 1.5, 20.0, 200.0))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_contrast_of_old_graphs_takes_numbers_as_bounds() -> None:
    bounds = tf.placeholder(tf.float32)
    result = F.AdjustContrast(IMAGES.astype(np.float32), 1.5, bounds, 200.0)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="min_value must be"):
        session.run(result, {bounds: [1.0, 2.0]})


@pytest.mark.parametrize("op", ["AdjustContrastv2", "AdjustHue", "AdjustSaturation"])
def test_half_precision_is_computed_in_single_and_rounded(op: str) -> None:
    images = tf.constant((IMAGES / 255).astype(np.float16))
    wide = tf.cast(images, tf.float32)
    with tf.Session() as session:
        half, single = session.run([getattr(F, op)(images, 0.3), getattr(F, op)(wide, 0.3)])
    assert half.dtype == np.float16
    np.testing.assert_array_equal(half, single.astype(np.float16))
