"""Convolutions of many tiny images as products, beside ATen's: values, gradients, infinities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.networks import tiny_images

ALL = {"tiny_images": 1 << 20, "tiny_gradients": 1 << 20}
CONV2D, CONV3D, DEPTHWISE = tf.raw_ops.Conv2D, tf.raw_ops.Conv3D, tf.raw_ops.DepthwiseConv2dNative
FORMS: list[tuple[Any, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    (CONV2D, (64, 4, 5, 2), (3, 3, 2, 3), {"strides": [1, 1, 1, 1], "padding": "SAME"}),
    (CONV2D, (64, 5, 4, 2), (2, 3, 2, 3), {"strides": [1, 2, 1, 1], "padding": "VALID"}),
    (CONV2D, (64, 6, 6, 1), (3, 2, 1, 2), {"strides": [1, 2, 2, 1], "padding": "SAME"}),
    (CONV2D, (65, 6, 5, 2), (2, 2, 2, 2), {"strides": [1] * 4, "padding": "SAME", "dilations": [1, 2, 3, 1]}),
    (CONV2D, (64, 4, 5, 4), (3, 2, 2, 6), {"strides": [1, 1, 1, 1], "padding": "SAME"}),  # two groups
    (CONV3D, (64, 2, 3, 3, 2), (2, 2, 2, 2, 2), {"strides": [1] * 5, "padding": "SAME"}),
    (CONV3D, (64, 3, 4, 3, 1), (2, 3, 2, 1, 2), {"strides": [1, 1, 2, 1, 1], "padding": "VALID"}),
    (DEPTHWISE, (64, 4, 5, 2), (3, 3, 2, 1), {"strides": [1, 1, 1, 1], "padding": "SAME"}),
    (DEPTHWISE, (64, 5, 5, 3), (3, 3, 3, 2), {"strides": [1, 2, 2, 1], "padding": "SAME"}),
]


def results(form: Any, images: np.ndarray, kernel: np.ndarray) -> list[np.ndarray]:
    """The convolution and the gradients of the sum of its squares."""
    op, _, _, attributes = form
    with tf.Graph().as_default(), tf.Session() as session:
        x, w = tf.placeholder(images.dtype, images.shape), tf.placeholder(images.dtype, kernel.shape)
        y = op(input=x, filter=w, **attributes)
        return session.run([y, *tf.gradients(y * y, [x, w])], {x: images, w: kernel})


def drawn(form: Any, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.RandomState(0)
    return chance.randn(*form[1]).astype(dtype), chance.randn(*form[2]).astype(dtype)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form[1]}{form[2]}")
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-5), (np.float64, 1e-12)])
def test_values_and_gradients(
    form: Any, dtype: Any, tolerance: float, set_profile: Callable[..., None], monkeypatch: Any
) -> None:
    images, kernel = drawn(form, dtype)
    expected = results(form, images, kernel)
    taken: list[str] = []
    for name in ("forward", "by_input", "by_filter"):
        made = getattr(tiny_images, name)
        monkeypatch.setattr(
            tiny_images, name, lambda *given, name=name, made=made: taken.append(name) or made(*given)
        )
    set_profile(**ALL)
    found = results(form, images, kernel)
    assert sorted(set(taken)) == ["by_filter", "by_input", "forward"]
    for one, other in zip(found, expected):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max())


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("in_filter", [False, True])
def test_what_is_not_finite_stays_where_it_is(
    value: float, in_filter: bool, set_profile: Callable[..., None]
) -> None:
    form = FORMS[0]
    images, kernel = drawn(form, np.float32)
    (kernel if in_filter else images)[1, 1, 0, 0] = value
    expected = results(form, images, kernel)
    set_profile(**ALL)
    for one, other in zip(results(form, images, kernel), expected):
        assert np.isfinite(one).any() or in_filter or one.shape == kernel.shape
        np.testing.assert_array_equal(np.isfinite(one), np.isfinite(other))
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-3)


def test_channels_first(set_profile: Callable[..., None]) -> None:
    """The same by images that are turned."""
    images, kernel = drawn(FORMS[0], np.float32)
    set_profile(**ALL)
    form = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    with tf.Graph().as_default(), tf.Session() as session:
        x, w = tf.constant(images), tf.constant(kernel)
        turned = tf.nn.conv2d(tf.transpose(x, [0, 3, 1, 2]), w, data_format="NCHW", **form)
        y = tf.nn.conv2d(x, w, **form)
        grads = [tf.gradients(z**3, [x, w]) for z in (y, turned)]
        (one, first), (other, second) = session.run([[y, grads[0]], [turned, grads[1]]])
    np.testing.assert_allclose(one.transpose(0, 3, 1, 2), other, rtol=1e-5, atol=1e-5)
    for a, b in zip(first, second):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("shape", [(63, 4, 4, 2), (64, 40, 40, 2)])
def test_few_or_larger_images_are_convolved(
    shape: Any, set_profile: Callable[..., None], monkeypatch: Any
) -> None:
    set_profile(tiny_images=800, tiny_gradients=256)
    monkeypatch.setattr(tiny_images, "forward", None)
    results((CONV2D, shape, (3, 3, 2, 2), FORMS[0][3]), np.ones(shape, "f"), np.ones((3, 3, 2, 2), "f"))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("resizes", [False, True])
def test_padded_and_resized_images(padding: str, resizes: bool, set_profile: Callable[..., None]) -> None:
    images, kernel = drawn(FORMS[0], np.float32)
    form = {"paddings": [[0, 0], [1, 0], [2, 1], [0, 0]], "mode": "REFLECT", "strides": [1, 2, 1, 1]}
    op = tf.raw_ops.FusedResizeAndPadConv2D if resizes else tf.raw_ops.FusedPadConv2D

    def run() -> np.ndarray:
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, images.shape)
            more = {"size": [6, 4]} if resizes else {}
            return session.run(op(input=x, filter=kernel, padding=padding, **form, **more), {x: images})

    expected = run()
    set_profile(**ALL)
    np.testing.assert_allclose(run(), expected, rtol=2e-5, atol=2e-5)
