"""Convolutions of known shapes as ATen is told of them: against sums over windows, and what it is told."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.networks import convolution, convolution_arrangement, filter_gradients
from flowstone.ops.networks.convolution_arrangement import Arrangement, arrange

RNG = np.random.default_rng(29)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims)


@pytest.fixture
def arranged(monkeypatch: Any) -> list[Arrangement]:
    """The arrangements that kernels were made of."""
    found: list[Any] = []
    for module, name in (
        (convolution, "arrange"),
        (convolution, "arrange_gradient"),
        (filter_gradients, "arrange_gradient"),
    ):
        inner = getattr(convolution_arrangement, name)
        monkeypatch.setattr(module, name, lambda *a, f=inner: found.append(f(*a)) or found[-1])
    return found


def expected(x: Any, w: Any, strides: tuple[int, ...], padding: str, direction: Any) -> tuple[Any, Any, Any]:
    """Result, gradient with respect to x and gradient by w, channels last, from the definition."""
    n = len(strides)
    lengths, sizes = x.shape[1:-1], w.shape[:n]
    if padding == "SAME":
        counts = [-(-length // s) for length, s in zip(lengths, strides)]
        totals = [
            max((c - 1) * s + k - length, 0) for c, s, k, length in zip(counts, strides, sizes, lengths)
        ]
    else:
        counts = [(length - k) // s + 1 for length, s, k in zip(lengths, strides, sizes)]
        totals = [0] * n
    before = [t // 2 for t in totals]
    wide = np.zeros((x.shape[0], *[n + t for n, t in zip(lengths, totals)], x.shape[-1]))
    inner = (slice(None), *[slice(b, b + n) for b, n in zip(before, lengths)])
    wide[inner] = x
    y, dx, dw = np.zeros((x.shape[0], *counts, w.shape[-1])), np.zeros_like(wide), np.zeros_like(w)
    for place in itertools.product(*map(range, sizes)):
        part = (slice(None), *[slice(p, p + (c - 1) * s + 1, s) for p, c, s in zip(place, counts, strides)])
        y += wide[part] @ w[place]
        dx[part] += direction @ w[place].T
        dw[place] += np.tensordot(wide[part], direction, (range(n + 1), range(n + 1)))
    return y, dx[inner], dw


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize(
    ("lengths", "sizes", "strides", "padding", "uneven"),
    [
        ((8, 8), (3, 3), (2, 2), "SAME", True),
        ((8, 9), (5, 4), (2, 1), "SAME", True),
        ((7, 8), (3, 3), (2, 2), "SAME", True),
        ((7, 7), (3, 3), (2, 2), "SAME", False),
        ((9, 9), (2, 2), (3, 3), "SAME", False),
        ((9, 8), (3, 2), (2, 2), "VALID", False),
    ],
)
def test_paddings_that_differ_at_both_ends(layout, dtype, lengths, sizes, strides, padding, uneven, arranged):
    x, w = values(2, *lengths, 3), values(*sizes, 3, 4)
    counts = [
        -(-n // s) if padding == "SAME" else (n - k) // s + 1 for n, k, s in zip(lengths, sizes, strides)
    ]
    direction = values(2, *counts, 4)
    wanted = expected(x, w, strides, padding, direction)
    last = layout == "NHWC"
    steps = [1, *strides, 1] if last else [1, 1, *strides]

    def seen(a: Any) -> Any:
        return a if last else a.transpose(0, 3, 1, 2)

    with tf.Graph().as_default(), tf.Session() as s:
        image, kernel = tf.placeholder(dtype, seen(x).shape), tf.placeholder(dtype, w.shape)
        y = tf.nn.conv2d(image, kernel, steps, padding, data_format=layout)
        found = s.run(
            [y, *tf.gradients(y, [image, kernel], seen(direction).astype(dtype.as_numpy_dtype))],
            {image: seen(x), kernel: w},
        )
    for a, b in zip(found, (seen(wanted[0]), seen(wanted[1]), wanted[2])):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    assert len(arranged) == 3 and all((a.extra is not None) == uneven for a in arranged)


@pytest.mark.parametrize("side", [7, 8])
@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("strides", [1, 2])
def test_a_filter_for_each_channel(side, multiplier, strides, arranged) -> None:
    x, w = values(2, side, side, 3), values(3, 3, 3, multiplier)
    count = -(-side // strides)
    direction = values(2, count, count, 3 * multiplier)
    wide = np.zeros((3, 3, 3, 3 * multiplier))
    for c in range(3):
        wide[:, :, c, c * multiplier : (c + 1) * multiplier] = w[:, :, c]
    y, dx, dwide = expected(x, wide, (strides, strides), "SAME", direction)
    dw = np.stack([dwide[:, :, c, c * multiplier : (c + 1) * multiplier] for c in range(3)], 2)
    with tf.Graph().as_default(), tf.Session() as s:
        image, kernel = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, w.shape)
        z = tf.nn.depthwise_conv2d(image, kernel, [1, strides, strides, 1], "SAME")
        found = s.run([z, *tf.gradients(z, [image, kernel], direction.astype("f"))], {image: x, kernel: w})
    for a, b in zip(found, (y, dx, dw)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    assert [a.groups for a in arranged] == [3] * 3


@pytest.mark.parametrize(("height", "rows"), [(6, 3), (6, 1), (3, 3)])
@pytest.mark.parametrize("channels", [1, 2])
def test_a_filter_as_wide_as_the_image_is_a_column(height, rows, channels, arranged) -> None:
    x, w = values(2, height, 5, channels), values(rows, 5, channels, 4)
    direction = values(2, height - rows + 1, 1, 4)
    wanted = expected(x, w, (1, 1), "VALID", direction)
    with tf.Graph().as_default(), tf.Session() as s:
        image, kernel = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, w.shape)
        y = tf.nn.conv2d(image, kernel, [1, 1, 1, 1], "VALID")
        found = s.run([y, *tf.gradients(y, [image, kernel], direction.astype("f"))], {image: x, kernel: w})
    for a, b in zip(found, wanted):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    merged = 5 * channels * (height if rows == height else 1)
    assert [a.kernel for a in arranged] == [(1, 1 if rows == height else rows, merged, 4)] * 3


@pytest.mark.parametrize(("stride", "padding"), [(1, "SAME"), (2, "SAME"), (2, "VALID")])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_column_is_a_row(stride, padding, rows, arranged) -> None:
    x, w = values(2, 8, 1, 3), values(rows, 1, 3, 4)
    count = -(-8 // stride) if padding == "SAME" else (8 - rows) // stride + 1
    direction = values(2, count, 1, 4)
    wanted = expected(x, w, (stride, 1), padding, direction)
    with tf.Graph().as_default(), tf.Session() as s:
        image, kernel = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, w.shape)
        y = tf.nn.conv2d(image, kernel, [1, stride, 1, 1], padding)
        found = s.run([y, *tf.gradients(y, [image, kernel], direction.astype("f"))], {image: x, kernel: w})
    for a, b in zip(found, wanted):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    assert [a.image for a in arranged] == [(2, 1, 8, 3)] * 3


@pytest.mark.parametrize("lengths", [(4, 6, 5), (5, 5, 4)])
def test_volumes(lengths, arranged) -> None:
    x, w, strides = values(2, *lengths, 3), values(3, 2, 3, 3, 4), (2, 1, 2)
    direction = values(2, *[-(-n // s) for n, s in zip(lengths, strides)], 4)
    wanted = expected(x, w, strides, "SAME", direction)
    with tf.Graph().as_default(), tf.Session() as s:
        volume, kernel = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, w.shape)
        y = tf.nn.conv3d(volume, kernel, [1, *strides, 1], "SAME")
        found = s.run([y, *tf.gradients(y, [volume, kernel], direction.astype("f"))], {volume: x, kernel: w})
    for a, b in zip(found, wanted):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    assert len(arranged) == 3 and all(a.extra is not None for a in arranged)


def test_gradients_by_images_lie_in_one_piece() -> None:
    with tf.Graph().as_default():
        image, dy = tf.placeholder(tf.float32, [2, 8, 8, 3]), tf.placeholder(tf.float32, [2, 4, 4, 6])
        filters = tf.placeholder(tf.float32, [3, 3, 3, 6])
        dx = tf.nn.conv2d_backprop_input([2, 8, 8, 3], filters, dy, [1, 2, 2, 1], "SAME")
        deep = tf.nn.depthwise_conv2d_native_backprop_input(
            [2, 8, 8, 3], tf.ones([3, 3, 3, 2]), dy, [1, 2, 2, 1], "SAME"
        )
        assert image.shape == dx.shape
        with tf.Session() as s:
            for y in (dx, deep):
                found = s.run(y, {filters: values(3, 3, 3, 6), dy: values(2, 4, 4, 6)})
                assert found.flags.c_contiguous


def test_what_is_not_known_is_not_arranged() -> None:
    with tf.Graph().as_default():
        y = tf.nn.conv2d(tf.placeholder(tf.float32, [1, 6, 6, 4]), tf.ones([3, 3, 4, 8]), 1, "SAME")
        geometry = convolution.Geometry(y.op)
    assert arrange(geometry, (None, 6, 6, 4), (3, 3, 4, 8), False) is None
    assert arrange(geometry, None, (3, 3, 4, 8), False) is None
    assert arrange(geometry, (0, 6, 6, 4), (3, 3, 4, 8), False) is None
    assert arrange(geometry, (1, 6, 6, 5), (3, 3, 4, 8), False) is None
    assert arrange(geometry, (1, 6, 6, 4), (3, 3, 4, 8), False) is not None
