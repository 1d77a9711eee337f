"""Max pooling of large images by slices, against windows cut out one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.networks import sliding_maxima
from flowstone.ops.networks.windows import SAME

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def small_images_count_as_large(set_profile):
    set_profile(sliding_maxima=0)


def expected(x: Any, sizes: tuple[int, int], padding: str, strides: tuple[int, int] = (1, 1)) -> Any:
    """The maxima of windows in SAME or VALID padding."""
    margins = [(0, 0)] * 4
    if padding == "SAME":
        _, *sides = SAME.solve(x.shape[1:3], sizes, strides, (1, 1))
        margins[1:3] = zip(*sides)
    padded = np.pad(x, margins, constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, sizes, axis=(1, 2))
    return windows.max((-2, -1))[:, :: strides[0], :: strides[1]]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("sizes", [(3, 3), (2, 2), (5, 4), (1, 3), (3, 1), (7, 2)])
def test_maxima_are_those_of_each_window(padding, sizes, monkeypatch) -> None:
    calls = []
    inner = sliding_maxima._maxima_along
    monkeypatch.setattr(sliding_maxima, "_maxima_along", lambda *a: calls.append(1) or inner(*a))
    x = RNG.standard_normal((2, 7, 6, 3)).astype("f")
    with tf.Graph().as_default(), tf.Session() as s:
        image = tf.placeholder(tf.float32, x.shape)
        y = tf.nn.max_pool(image, [1, *sizes, 1], [1, 1, 1, 1], padding)
        np.testing.assert_array_equal(s.run(y, {image: x}), expected(x, sizes, padding))
    assert len(calls) == sum(size > 1 for size in sizes)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("sizes", [(3, 3), (2, 2), (2, 3), (1, 3)])
@pytest.mark.parametrize("strides", [(2, 2), (3, 3), (1, 2), (3, 1)])
@pytest.mark.parametrize("side", [7, 8])
def test_windows_that_move_further(padding, sizes, strides, side, monkeypatch) -> None:
    calls = []
    inner = sliding_maxima._maxima_along
    monkeypatch.setattr(sliding_maxima, "_maxima_along", lambda *a: calls.append(1) or inner(*a))
    x = RNG.standard_normal((2, side, 7, 3)).astype("f")
    with tf.Graph().as_default(), tf.Session() as s:
        image = tf.placeholder(tf.float32, x.shape)
        y = tf.nn.max_pool(image, [1, *sizes, 1], [1, *strides, 1], padding)
        np.testing.assert_array_equal(s.run(y, {image: x}), expected(x, sizes, padding, strides))
    windows_with_gaps = sizes[0] < strides[0] and sizes[0] == 1
    assert len(calls) == (0 if windows_with_gaps else sum(size > 1 for size in sizes))


def test_nan_is_passed_over() -> None:
    x = RNG.standard_normal((1, 5, 5, 1)).astype("f")
    x[0, 2, 2], x[0, 0, 0], x[0, 4] = np.nan, np.inf, -np.inf
    with tf.Graph().as_default(), tf.Session() as s:
        image = tf.placeholder(tf.float32, x.shape)
        y = tf.nn.max_pool(image, [1, 3, 3, 1], [1, 1, 1, 1], "SAME")
        found = s.run(y, {image: x})
        np.testing.assert_array_equal(
            found, expected(np.nan_to_num(x, nan=-np.inf, posinf=np.inf, neginf=-np.inf), (3, 3), "SAME")
        )


@pytest.mark.parametrize(
    ("padding", "window", "strides", "layout"),
    [
        ("SAME", [1, 4, 4, 1], [1, 2, 2, 1], "NHWC"),
        ("SAME", [1, 1, 3, 3], [1, 1, 1, 1], "NCHW"),
        ("SAME", [1, 1, 1, 1], [1, 1, 1, 1], "NHWC"),
        ([[0, 0], [2, 2], [2, 2], [0, 0]], [1, 3, 3, 1], [1, 1, 1, 1], "NHWC"),
    ],
)
def test_other_windows_go_the_usual_way(monkeypatch, padding, window, strides, layout) -> None:
    monkeypatch.setattr(sliding_maxima, "_maxima_along", None)
    with tf.Graph().as_default(), tf.Session() as s:
        x = tf.constant(RNG.standard_normal((1, 6, 6, 6)).astype("f"))
        assert s.run(tf.nn.max_pool(tf.identity(x), window, strides, padding, layout)).size
