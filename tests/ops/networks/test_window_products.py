"""Convolutions of sizes that only the step knows, as products: what they are with known sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.machine.machine import current
from flowstone.ops.networks.window_products import WindowProducts, WindowSums

CASES = [
    # image, filter, strides, dilations, padding
    ([3, 9, 7, 4], [3, 3, 4, 5], [1, 1], [1, 1], "SAME"),
    ([2, 9, 8, 3], [2, 5, 3, 2], [2, 3], [1, 1], "SAME"),
    ([2, 10, 9, 2], [3, 2, 2, 4], [3, 1], [1, 1], "VALID"),
    ([1, 11, 9, 2], [3, 2, 2, 3], [1, 1], [2, 3], "VALID"),
    ([1, 8, 8, 2], [3, 3, 2, 3], [1, 1], [2, 2], "SAME"),
    ([4, 5, 5, 3], [1, 1, 3, 6], [1, 1], [1, 1], "VALID"),
    ([4, 6, 5, 3], [1, 1, 3, 6], [2, 2], [1, 1], "SAME"),
    ([2, 7, 6, 3], [3, 3, 3, 2], [2, 1], [1, 1], [[0, 0], [2, 0], [1, 3], [0, 0]]),
    ([2, 5, 5, 1], [5, 5, 1, 2], [1, 1], [1, 1], "VALID"),
    ([2, 4, 5, 6, 2], [2, 3, 2, 2, 3], [1, 2, 1], [1, 1, 1], "SAME"),
    ([1, 5, 5, 5, 2], [3, 2, 2, 2, 3], [2, 1, 2], [1, 1, 1], "VALID"),
]


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The products that were taken, by name; all plans leave all sizes open."""
    monkeypatch.setattr("flowstone.runtime.plans.plans_by_shape.AT_ONCE", 0)
    monkeypatch.setattr("flowstone.runtime.plans.plans_by_shape.MOST_WIDENINGS", 0)
    monkeypatch.setattr("flowstone.runtime.plans.plans_by_shape.PlansByShape._is_wanted", lambda *_: False)
    taken: list[str] = []
    for name in ("results", "by_input", "by_filter"):
        for kind in (WindowProducts, WindowSums):
            monkeypatch.setattr(kind, name, _noting(vars(kind)[name], taken))
    return taken


def _noting(function: Any, taken: list[str]) -> Any:
    def noted(*arguments: Any) -> Any:
        taken.append(function.__name__)
        return function(*arguments)

    return noted


def _computed(case: Any, layout: str, dtype: Any, knows_sizes: bool) -> list[np.ndarray]:
    """The results of a convolution and both its gradients."""
    sizes, window, strides, dilations, padding = case
    rank, first = len(sizes), layout.startswith("NC")
    to_first = [0, rank - 1, *range(1, rank - 1)]
    numbers = np.random.RandomState(3)
    image, kernel = numbers.randn(*sizes).astype(dtype), numbers.randn(*window).astype(dtype)
    strides, dilations = [1, *strides, 1], [1, *dilations, 1]
    if first:
        image, strides, dilations = (
            image.transpose(to_first),
            *[[each[i] for i in to_first] for each in (strides, dilations)],
        )
        padding = padding if isinstance(padding, str) else [padding[i] for i in to_first]
    with tf.Graph().as_default(), tf.Session() as s:
        x = tf.placeholder(dtype, image.shape if knows_sizes else [None] * rank)
        w = tf.placeholder(dtype, window if knows_sizes else [None] * rank)
        convolve = tf.nn.conv2d if rank == 4 else tf.nn.conv3d
        y = convolve(x, w, strides=strides, padding=padding, data_format=layout, dilations=dilations)
        gradients = tf.gradients(tf.reduce_sum(y * tf.sin(y)), [x, w])
        return s.run([y, *gradients], {x: image, w: kernel})


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_last", [True, False], ids=["last", "first"])
def test_a_product_is_the_convolution(case, dtype, is_last, products):
    layout = {4: ("NCHW", "NHWC"), 5: ("NCDHW", "NDHWC")}[len(case[0])][is_last]
    found = _computed(case, layout, dtype, knows_sizes=False)
    assert sorted(products) == ["by_filter", "by_input", "results"]
    expected = _computed(case, layout, dtype, knows_sizes=True)
    assert len(products) == 3
    for one, other in zip(found, expected):
        np.testing.assert_allclose(
            one,
            other,
            rtol=1e-4 if dtype == np.float32 else 1e-11,
            atol=1e-4 if dtype == np.float32 else 1e-11,
        )


BY_CHANNEL = [
    ([3, 9, 7, 4], [3, 3, 4, 1], 1, 1, "SAME"),
    ([2, 9, 8, 3], [2, 5, 3, 1], 2, 1, "SAME"),
    ([2, 10, 9, 2], [3, 2, 2, 1], 3, 1, "VALID"),
    ([1, 11, 9, 2], [3, 2, 2, 1], 1, 2, "VALID"),
    ([2, 5, 5, 1], [5, 5, 1, 1], 1, 1, "VALID"),
]


def _by_channel(case: Any, layout: str, dtype: Any, knows_sizes: bool) -> list[np.ndarray]:
    sizes, window, stride, rate, padding = case
    numbers = np.random.RandomState(3)
    image, kernel = numbers.randn(*sizes).astype(dtype), numbers.randn(*window).astype(dtype)
    image = image if layout == "NHWC" else image.transpose(0, 3, 1, 2)
    strides = [1, stride, stride, 1] if layout == "NHWC" else [1, 1, stride, stride]
    dilations = [1, rate, rate, 1] if layout == "NHWC" else [1, 1, rate, rate]
    with tf.Graph().as_default(), tf.Session() as s:
        x = tf.placeholder(dtype, image.shape if knows_sizes else [None] * 4)
        w = tf.placeholder(dtype, window if knows_sizes else [None] * 4)
        y = tf.nn.depthwise_conv2d_native(
            x, w, strides=strides, padding=padding, data_format=layout, dilations=dilations
        )
        gradients = tf.gradients(tf.reduce_sum(y * tf.sin(y)), [x, w])
        return s.run([y, *gradients], {x: image, w: kernel})


@pytest.mark.parametrize("case", BY_CHANNEL, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_a_sum_is_the_convolution_by_channel(case, dtype, layout, products):
    found = _by_channel(case, layout, dtype, knows_sizes=False)
    assert sorted(products) == ["by_filter", "by_input", "results"]
    expected = _by_channel(case, layout, dtype, knows_sizes=True)
    assert len(products) == 3
    within = 1e-4 if dtype == np.float32 else 1e-11
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=within, atol=within)


def test_large_ones_grouped_ones_and_other_types_are_atens(products):
    few = np.ones([1, 6, 6, 4], np.float32)
    with tf.Session() as s:
        x, w = tf.placeholder(tf.float32, [None] * 4), tf.placeholder(tf.float32, [None] * 4)
        y = tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME")
        half = tf.nn.conv2d(
            tf.cast(x, tf.float16), tf.cast(w, tf.float16), strides=[1, 1, 1, 1], padding="SAME"
        )
        assert s.run(y, {x: few, w: np.ones([1, 1, 2, 4])}).shape == (1, 6, 6, 4)  # two groups
        s.run(half, {x: few, w: np.ones([1, 1, 4, 4])})
        many = current().profile.window_products // (9 * 64 * 64) + 1
        s.run(y, {x: np.ones([1, many, 1, 64]), w: np.ones([3, 3, 64, 64])})
        assert products == []
        s.run(y, {x: few, w: np.ones([1, 1, 4, 4])})
    assert products == ["results"]


def test_images_that_do_not_fit_are_refused(products):
    with tf.Session() as s:
        x, w = tf.placeholder(tf.float32, [None] * 4), tf.placeholder(tf.float32, [None] * 4)
        y = tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="VALID")
        with pytest.raises(tf.errors.InvalidArgumentError, match="depth"):
            s.run(y, {x: np.ones([1, 6, 6, 5]), w: np.ones([1, 1, 3, 4])})
        assert s.run(y, {x: np.ones([0, 6, 6, 3]), w: np.ones([2, 2, 3, 4])}).shape == (0, 5, 5, 4)
