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


def test_colours_turn_in_yiq() -> None:
    """TensorFlow 1.15.5 gave these values."""
    image = tf.contrib.image.python.ops.distort_image_ops
    colours = np.array([[[0.5488, 0.7152, 0.6028], [0.5449, 0.4237, 0.6459]]], np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(image.adjust_hsv_in_yiq(colours, 0.3, 1.2, 0.8))
        np.testing.assert_allclose(found, [[[0.4348, 0.5856, 0.4240], [0.4173, 0.3389, 0.5656]]], atol=2e-4)
        assert session.run(
            image.adjust_hsv_in_yiq(tf.fill([1, 1, 3], tf.constant(50, tf.uint8)), 1.0, 1.0, 0.8)
        ).tolist() == [[[40, 40, 40]]]
        np.testing.assert_allclose(session.run(image.random_hsv_in_yiq(colours)), colours, atol=1e-6)
        turned = image.random_hsv_in_yiq(colours, 0.5, 0.5, 1.5, 0.5, 1.5, seed=3)
        first, second = session.run(turned), session.run(turned)
        assert first.shape == colours.shape and np.abs(first - second).max() > 1e-3


def test_wrong_bounds_of_colours() -> None:
    image = tf.contrib.image.python.ops.distort_image_ops
    with tf.Graph().as_default():
        colours = tf.zeros([2, 2, 3])
        for arguments in ([-1], [0, 2, 1], [0, -2, 1], [0, 1, 1, 3, 2], [0, 1, 1, -1, 1]):
            with pytest.raises(ValueError):
                image.random_hsv_in_yiq(colours, *arguments)
        with pytest.raises(ValueError):
            image.adjust_hsv_in_yiq(tf.zeros([3]), 0.0, 1.0, 1.0)


def test_components_of_images_only() -> None:
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match="rank 2"):
            tf.contrib.image.connected_components(tf.zeros([3]))
        with pytest.raises(ValueError):
            tf.contrib.image.bipartite_match(tf.zeros([3]), 1.0)
        with pytest.raises(ValueError):
            unknown = tf.placeholder(tf.float32, [1, None, None, 1])
            tf.contrib.image.sparse_image_warp(unknown, tf.zeros([1, 3, 2]), tf.zeros([1, 3, 2]))


def test_a_long_component_is_one() -> None:
    spiral = np.zeros([41, 41], np.int32)
    spiral[::4] = 1
    spiral[1:40:8, -1] = spiral[2:40:8, -1] = spiral[3:40:8, -1] = 1
    spiral[5:40:8, 0] = spiral[6:40:8, 0] = spiral[7:40:8, 0] = 1
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(tf.contrib.image.connected_components(spiral))
    assert (found == spiral).all()
