"""Convolutions of small images and their gradients in a loop: machine code gives what the kernels do."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.lowering.programs.convolution_statements import CONVOLUTIONS
from three_ways import assert_equal_three_ways, repeated

IMAGE, FILTER = (2, 6, 7, 3), (3, 2, 3, 5)
GRADIENT = {"strides": [1, 1, 1, 1], "padding": "SAME"}
VOLUME = {"strides": [1, 1, 2, 1, 1], "padding": "SAME"}


def _like(x: Any, *dims: int) -> Any:
    """A filter of the type of x."""
    return np.random.RandomState(1).randn(*dims).astype(x.dtype.as_numpy_dtype)


def _convolved(x: Any) -> list[Any]:
    w = _like(x, *FILTER)
    return [tf.nn.conv2d(x, w, [1, 1, 1, 1], "VALID"), tf.nn.conv2d(x, w, [1, 2, 3, 1], "SAME")]


def _biased(x: Any) -> list[Any]:
    y = tf.nn.conv2d(x, _like(x, *FILTER), [1, 2, 2, 1], "SAME")
    return [tf.nn.relu(tf.nn.bias_add(y, _like(x, 5)))]


def _by_images(x: Any) -> list[Any]:
    return [F.Conv2DBackpropInput(np.int32((2, 6, 7, 2)), _like(x, 3, 3, 2, 3), x, **GRADIENT)]


def _by_volumes(x: Any) -> list[Any]:
    sizes = np.int32((1, 2, 12, 7, 3))
    return [F.Conv3DBackpropInputV2(sizes, _like(x, 1, 3, 2, 3, 3), x[None], **VOLUME)]


CASES: dict[str, Callable[[Any], list[Any]]] = {
    "Conv2D": _convolved,
    "Conv2DBackpropInput": _by_images,
    "Conv2DBackpropFilter": lambda x: [F.Conv2DBackpropFilter(x, np.int32((2, 3, 3, 3)), x, **GRADIENT)],
    "Conv3D": lambda x: [F.Conv3D(x[None], _like(x, 1, *FILTER), **VOLUME)],
    "Conv3DBackpropInputV2": _by_volumes,
    "Conv3DBackpropFilterV2": lambda x: [
        F.Conv3DBackpropFilterV2(x[None], np.int32((1, 3, 2, 3, 3)), x[None, :, :3], **VOLUME)
    ],
    "_BiasedConv2D": _biased,
}


def test_every_operation_has_a_case() -> None:
    assert set(CASES) == set(CONVOLUTIONS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda x: x.__name__)
@pytest.mark.parametrize("name", CASES)
def test_convolutions(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(dtype, IMAGE)
    results = repeated(CASES[name], x)
    assert_equal_three_ways(monkeypatch, results, {x: np.random.RandomState(0).randn(*IMAGE)}, tolerance=1e-4)


@pytest.mark.parametrize("seed", range(12))
def test_random_geometries(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The convolution and both gradients, of float32, against float64."""
    draw = random.Random(seed)
    image = (draw.randint(1, 3), draw.randint(3, 9), draw.randint(3, 9), draw.choice([1, 3, 8, 9]))
    kernel = (draw.randint(1, 3), draw.randint(1, 3), image[-1], draw.choice([1, 2, 8, 17]))
    strides = [1, draw.randint(1, 3), draw.randint(1, 2), 1]
    dilations = [1, draw.randint(1, 2) if strides[1:3] == [1, 1] else 1, 1, 1]
    if (kernel[0] - 1) * dilations[1] >= image[1]:
        dilations = [1, 1, 1, 1]
    padding = draw.choice(["SAME", "VALID"])
    numbers = np.random.RandomState(seed)
    x, w = tf.placeholder(tf.float32, image), tf.constant(numbers.randn(*kernel).astype(np.float32))

    def results(x: Any, w: Any) -> list[Any]:
        y = tf.nn.conv2d(x, w, strides, padding, dilations=dilations)
        return [y, *tf.gradients(tf.reduce_sum(y * y), [x, w])]

    feed = {x: numbers.randn(*image).astype(np.float32)}
    found = repeated(lambda x: results(x, w), x)
    wide = results(tf.cast(x, tf.float64), tf.cast(w, tf.float64))
    assert_equal_three_ways(monkeypatch, found, feed, tolerance=1e-3)
    with tf.Session() as session:
        assert "_Program(" in session.explain(found, feed)
        for a, b in zip(session.run(found, feed), session.run(wide, feed), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * max(1.0, float(np.abs(b).max())))


def test_large_convolutions_and_groups_stay() -> None:
    for image, kernel in (((1, 20, 20, 16), (3, 3, 16, 16)), ((1, 5, 5, 4), (3, 3, 2, 4))):
        x, w = tf.placeholder(tf.float32, image), tf.placeholder(tf.float32, kernel)
        y = repeated(lambda x, w=w: [tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")], x)
        with tf.Session() as session:
            feed = {x: np.ones(image, np.float32), w: np.ones(kernel, np.float32)}
            assert "_Program(" not in session.explain(y, feed)
            session.run(y, feed)
