"""What the oracle does not run on a CPU: half precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

IMAGES = np.random.default_rng(1).uniform(0, 255, (2, 3, 4, 3))


@pytest.mark.parametrize("op", ["AdjustContrastv2", "AdjustHue", "AdjustSaturation"])
def test_half_precision_is_computed_in_single_and_rounded(op: str) -> None:
    images = tf.constant((IMAGES / 255).astype(np.float16))
    wide = tf.cast(images, tf.float32)
    with tf.Session() as session:
        half, single = session.run([getattr(F, op)(images, 0.3), getattr(F, op)(wide, 0.3)])
    assert half.dtype == np.float16
    np.testing.assert_array_equal(half, single.astype(np.float16))


@pytest.mark.parametrize("function", [tf.image.rgb_to_yiq, tf.image.rgb_to_yuv, tf.image.yuv_to_rgb])
def test_bytes_are_not_mixed(function: Any) -> None:
    with pytest.raises(TypeError, match="uint8"):
        function(np.zeros([2, 2, 3], np.uint8))


def test_standardization_is_of_floats_their_type() -> None:
    """Computed in float32, as in TensorFlow 1.15, also of integers, which are scaled on either way."""
    image = np.arange(24.0).reshape(2, 4, 3) / 24
    with tf.Graph().as_default(), tf.Session() as session:
        found = [
            session.run(tf.image.per_image_standardization(image.astype(kind)))
            for kind in (np.float64, np.float32, np.float16)
        ]
        bytes_, words = (
            session.run(tf.image.per_image_standardization(np.arange(12).reshape(2, 2, 3).astype(kind)))
            for kind in (np.uint8, np.int32)
        )
        images = tf.placeholder(tf.float32)
        batch = np.arange(24, dtype=np.float32).reshape(2, 2, 2, 3)
        of_any_rank = session.run(tf.image.per_image_standardization(images), {images: batch})
        expected = session.run(tf.image.per_image_standardization(batch))
    np.testing.assert_allclose(of_any_rank, expected, rtol=1e-6)
    assert bytes_.dtype == np.uint8 and bytes_.ravel().tolist() == [0] * 6 + [1, 5, 8, 12, 15, 19]
    assert words.dtype == np.int32
    assert words.ravel().tolist() == [-19, -15, -12, -8, -5, -1, 1, 5, 8, 12, 15, 19]
    assert [each.dtype for each in found] == [np.float64, np.float32, np.float16]
    assert np.array_equal(found[0], found[1].astype(np.float64))
