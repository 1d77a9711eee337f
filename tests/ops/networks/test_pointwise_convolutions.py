"""1 x 1 convolutions of few or skipped positions, as rows: against products of the positions themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.networks import pointwise_convolutions

RNG = np.random.default_rng(23)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (1, 3), (2, 1)])
@pytest.mark.parametrize("activated", [False, True])
def test_results_and_gradients_are_those_of_products(padding, strides, activated, monkeypatch) -> None:
    rows = []
    inner = pointwise_convolutions.suits
    monkeypatch.setattr(pointwise_convolutions, "suits", lambda *a: rows.append(inner(*a)) or rows[-1])
    x, w, b = values(3, 7, 6, 32), values(1, 1, 32, 64), values(64)
    skipped = x[:, :: strides[0], :: strides[1]]
    expected = skipped @ w[0, 0] + b
    direction = values(*expected.shape)
    if activated:
        direction *= expected > 0
        expected = np.maximum(expected, 0)
    with tf.Graph().as_default(), tf.Session() as s:
        image, kernel = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, w.shape)
        y = tf.nn.bias_add(tf.nn.conv2d(image, kernel, [1, *strides, 1], padding), tf.constant(b))
        y = tf.nn.relu(y) if activated else y
        found, dx, dw = s.run([y, *tf.gradients(y, [image, kernel], direction)], {image: x, kernel: w})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    wanted = np.zeros_like(x)
    wanted[:, :: strides[0], :: strides[1]] = direction @ w[0, 0].T
    np.testing.assert_allclose(dx, wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(dw[0, 0], np.einsum("nhwi,nhwo->io", skipped, direction), rtol=1e-3, atol=1e-3)
    assert len(rows) == 2 and all(rows)


@pytest.mark.needs_onednn
def test_gradients_by_filters_are_products_where_positions_are_few(monkeypatch) -> None:
    found = []
    inner = pointwise_convolutions.suits_product
    monkeypatch.setattr(
        pointwise_convolutions, "suits_product", lambda *a, **k: found.append(inner(*a, **k)) or found[-1]
    )
    with tf.Graph().as_default(), tf.Session() as s:
        for side in (16, 17):
            x, w = values(2, side, side, 32), values(1, 1, 32, 64)
            image, kernel = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, w.shape)
            y = tf.nn.conv2d(image, kernel, [1, 1, 1, 1], "SAME")
            direction = values(2, side, side, 64)
            dw = s.run(tf.gradients(y, kernel, direction)[0], {image: x, kernel: w})
            expected = np.einsum("nhwi,nhwo->io", x, direction)
            np.testing.assert_allclose(dw[0, 0], expected, rtol=1e-3, atol=1e-3)
    assert found == [True, False]


def test_a_slice_of_channels_is_a_row_too() -> None:
    x, w = values(2, 4, 4, 64), values(1, 1, 32, 16)
    with tf.Graph().as_default(), tf.Session() as s:
        image = tf.placeholder(tf.float32, x.shape)
        y = tf.nn.conv2d(tf.split(image, 2, 3)[1], tf.constant(w), [1, 1, 1, 1], "SAME")
        np.testing.assert_allclose(s.run(y, {image: x}), x[..., 32:] @ w[0, 0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("dims", "filters", "strides", "layout", "dtype"),
    [
        ((1, 9, 9, 4), (1, 1, 4, 8), (1, 1), "NHWC", tf.float32),  # many positions
        ((1, 6, 6, 4), (3, 3, 4, 8), (1, 1), "NHWC", tf.float32),
        ((1, 6, 6, 4), (1, 1, 2, 8), (1, 1), "NHWC", tf.float32),  # groups
        ((1, 4, 9, 9), (1, 1, 4, 8), (1, 1), "NCHW", tf.float32),
        ((1, 6, 6, 4), (1, 1, 4, 8), (2, 2), "NHWC", tf.float64),
    ],
)
def test_other_convolutions_go_the_usual_way(dims, filters, strides, layout, dtype, monkeypatch) -> None:
    found = []
    inner = pointwise_convolutions.suits
    monkeypatch.setattr(pointwise_convolutions, "suits", lambda *a: found.append(inner(*a)) or found[-1])
    with tf.Graph().as_default(), tf.Session() as s:
        x = tf.placeholder(dtype, dims)
        steps = [1, *strides, 1] if layout == "NHWC" else [1, 1, *strides]
        y = tf.nn.conv2d(x, tf.cast(values(*filters), dtype), steps, "SAME", data_format=layout)
        assert s.run(y, {x: values(*dims)}).any()
    assert not any(found)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("channels", [1, 3, 6, 9, 17])
def test_gradients_by_strided_filters_stay_in_their_buffers(channels: int, known: bool) -> None:
    """oneDNN's kernel for 1x1 filters with strides writes past the end for these numbers of channels."""
    images = np.random.default_rng(channels).normal(size=(4, 12, 12, channels)).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, images.shape if known else [None] * 4)
        filters = tf.Variable(np.ones((1, 1, channels, 16), np.float32))
        y = tf.nn.conv2d(x, filters, [1, 2, 2, 1], "SAME")
        gradient = tf.gradients(tf.reduce_sum(y), filters)[0]
        session.run(filters.initializer)
        for _ in range(50):  # what it wrote to is found out when buffers are let go
            found = session.run(gradient, {x: images})
    expected = np.repeat(images[:, ::2, ::2].sum((0, 1, 2))[:, None], 16, 1)
    np.testing.assert_allclose(found[0, 0], expected, rtol=1e-4, atol=1e-3)


_FEW = {"pointwise_rows": 84, "pointwise_positions_in_all": 84, "pointwise_products": 0}
_NONE = {"pointwise_rows": 0, "pointwise_positions_in_all": 0, "pointwise_products": 0}


@pytest.mark.parametrize(
    ("profile", "are_products"),
    [({**_NONE, "pointwise_products": 2 * 42 * 24 * 16}, True), (_FEW, True), (_NONE, False)],
    ids=["small", "few positions", "neither"],
)
@pytest.mark.parametrize(
    ("dims", "filters"),
    [((2, 7, 6, 24), (1, 1, 24, 16)), ((2, 1, 42, 24), (1, 1, 24, 16)), ((2, 42, 1, 24), (1, 1, 24, 16))],
)
@pytest.mark.parametrize("stride", [1, 2])
def test_products_of_matrices(dims, filters, stride, profile, are_products, set_profile, monkeypatch) -> None:
    set_profile(**profile)
    found = []
    inner = pointwise_convolutions.suits_product
    monkeypatch.setattr(
        pointwise_convolutions, "suits_product", lambda *a, **k: found.append(inner(*a, **k)) or found[-1]
    )
    x, w = values(*dims), values(*filters)
    counting = x[:, ::stride, ::stride]
    direction = values(*counting.shape[:3], filters[3])
    with tf.Graph().as_default(), tf.Session() as s:
        image, kernel = tf.placeholder(tf.float32, dims), tf.placeholder(tf.float32, filters)
        y = tf.nn.conv2d(image, kernel, [1, stride, stride, 1], "VALID")
        y, dx, dw = s.run([y, *tf.gradients(y, [image, kernel], direction)], {image: x, kernel: w})
    np.testing.assert_allclose(y, counting @ w[0, 0], rtol=1e-4, atol=1e-4)
    wanted = np.zeros_like(x)
    wanted[:, ::stride, ::stride] = direction @ w[0, 0].T
    np.testing.assert_allclose(dx, wanted, rtol=1e-4, atol=1e-4)
    wanted = np.einsum("nhwi,nhwo->io", counting, direction)
    np.testing.assert_allclose(dw[0, 0], wanted, rtol=1e-3, atol=1e-3)
    assert found == [are_products] * 3


@pytest.mark.parametrize(
    "profile", [_FEW, _NONE, {**_NONE, "pointwise_positions": 84, "pointwise_strides": True}]
)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("pads", [(0, 1, 0, 1), (1, 0, 0, 1), (1, 1, 1, 1), (2, 0, 1, 3)])
def test_paddings_of_one_by_one_filters(pads, stride, profile, set_profile) -> None:
    set_profile(**profile)
    top, bottom, left, right = pads
    x, w = values(2, 5, 4, 8), values(1, 1, 8, 6)
    padding = [[0, 0], [top, bottom], [left, right], [0, 0]]
    padded = np.pad(x, padding)
    counting = padded[:, ::stride, ::stride]
    direction = values(*counting.shape[:3], 6)
    with tf.Graph().as_default(), tf.Session() as s:
        image, kernel = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, w.shape)
        y = tf.nn.conv2d(image, kernel, [1, stride, stride, 1], padding)
        y, dx, dw = s.run([y, *tf.gradients(y, [image, kernel], direction)], {image: x, kernel: w})
    np.testing.assert_allclose(y, counting @ w[0, 0], rtol=1e-4, atol=1e-4)
    wanted = np.zeros_like(padded)
    wanted[:, ::stride, ::stride] = direction @ w[0, 0].T
    np.testing.assert_allclose(dx, wanted[:, top : top + 5, left : left + 4], rtol=1e-4, atol=1e-4)
    wanted = np.einsum("nhwi,nhwo->io", counting, direction)
    np.testing.assert_allclose(dw[0, 0], wanted, rtol=1e-3, atol=1e-3)
