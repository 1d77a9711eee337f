"""`tf.contrib.image`: values of TensorFlow 1.15.5 (`golden/contrib/image.json`), and errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.contrib.image.image_programs import answers

import flowstone as tf


def test_values() -> None:
    expected = json.loads((Path(__file__).parents[2] / "golden" / "contrib" / "image.json").read_text())
    found = answers(tf)
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=2e-4, err_msg=name)


def test_shapes_and_errors() -> None:
    image = tf.contrib.image
    with tf.Graph().as_default():
        assert image.transform(tf.zeros([2, 4, 6, 1]), [0.0] * 8).shape.as_list() == [2, 4, 6, 1]
        assert image.rotate(tf.zeros([4, 6], tf.uint8), 1.0).dtype == tf.uint8
        with pytest.raises(TypeError, match="rank between 2 and 4"):
            image.rotate(tf.zeros([3]), 1.0)
        with pytest.raises(TypeError, match="Invalid dtype"):
            image.rotate(tf.zeros([2, 2], tf.complex64), 1.0)
        with pytest.raises(TypeError, match="rank 0 or 1"):
            image.rotate(tf.zeros([2, 2]), [[1.0]])
        with pytest.raises(ValueError, match="cannot be empty"):
            image.compose_transforms()
