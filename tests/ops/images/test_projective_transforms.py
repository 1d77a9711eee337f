"""Ways of seeing images that there are not, which TensorFlow takes for others."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

IMAGE = np.ones((1, 3, 4, 2), np.float32)
IDENTITY = [[1.0, 0, 0, 0, 1, 0, 0, 0]]


@pytest.mark.parametrize(
    "modes", [{"interpolation": "CUBIC"}, {"interpolation": "BILINEAR", "fill_mode": "ODD"}]
)
def test_unknown_ways_are_refused(modes: dict[str, str]) -> None:
    result = F.ImageProjectiveTransformV2(IMAGE, IDENTITY, [3, 4], **modes)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="Supported"):
        session.run(result)


def test_integers_have_no_gradient() -> None:
    images = tf.placeholder(tf.uint8, IMAGE.shape)
    result = F.ImageProjectiveTransformV2(images, IDENTITY, [3, 4], interpolation="NEAREST")
    assert tf.gradients(tf.cast(result, tf.float32), images) == [None]
