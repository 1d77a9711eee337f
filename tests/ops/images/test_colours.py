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
    """Computed in float32, as in TensorFlow 1.15; integers become float32."""
    image = np.arange(24.0).reshape(2, 4, 3) / 24
    with tf.Graph().as_default(), tf.Session() as session:
        found = [
            session.run(tf.image.per_image_standardization(image.astype(kind)))
            for kind in (np.float64, np.float32, np.float16, np.int32)
        ]
    assert [each.dtype for each in found] == [np.float64, np.float32, np.float16, np.float32]
    assert np.array_equal(found[0], found[1].astype(np.float64))
