"""Dilations by filters of nothing, as TensorFlow 1.15 computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

WINDOWS: dict[str, Any] = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "VALID"}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8])
def test_nothing_exceeds_the_least_number(dtype: Any) -> None:
    image, nothing = tf.constant(np.ones([1, 2, 2, 1], dtype)), tf.placeholder(dtype)
    dilated = F.Dilation2D(image, nothing, **WINDOWS)
    least = np.finfo(dtype).min if np.dtype(dtype).kind == "f" else np.iinfo(dtype).min
    with tf.Session() as session:
        found = session.run(dilated, {nothing: np.zeros([0, 0, 1], dtype)})
    assert found.shape == (1, 3, 3, 1)
    assert (found == least).all()


def test_what_does_not_depend_on_an_image_has_no_gradient_there() -> None:
    image, nothing = tf.ones([1, 4, 4, 1]), tf.placeholder(tf.float32)
    gradients = tf.gradients(F.Dilation2D(image, nothing, **WINDOWS), [image, nothing])
    with tf.Session() as session:
        found = session.run(gradients, {nothing: np.zeros([0, 2, 1])})
    assert [each.shape for each in found] == [(1, 4, 4, 1), (0, 2, 1)]
    assert not found[0].any()


def test_sums_of_small_integers_wrap_before_they_are_compared() -> None:
    def dilated(image: list[int], kernel: list[int], dtype: str) -> list[int]:
        x = tf.constant(np.reshape(image, (1, 4, 1, 1)), dtype)
        y = tf.nn.dilation2d(x, tf.constant(np.reshape(kernel, (2, 1, 1)), dtype), **WINDOWS)
        return tf.Session().run(y).ravel().tolist()

    # what TensorFlow 1.15 and 2.21 give
    assert dilated([88, 94, 234, 128], [134, 134], "uint8") == [228, 228, 112]
    assert dilated([103, 9, 83, 21], [114, 36], "int8") == [45, 123, 57]
