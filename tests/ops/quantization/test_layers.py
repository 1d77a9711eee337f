"""Layers over quantised integers: the public functions, types the oracle has not, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

RANDOM = np.random.RandomState(2)
IMAGES = RANDOM.randint(0, 256, (2, 5, 6, 3)).astype(np.uint8)


def numbers(integers: Any, low: float, high: float, lowest: int = 0) -> np.ndarray:
    """What integers of 8 bits stand for."""
    return (np.asarray(integers, np.float64) - lowest) * (high - low) / 255 + low


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_a_convolution_is_that_of_the_numbers(padding: str, signed: bool) -> None:
    dtype, lowest = ("qint8", -128) if signed else ("quint8", 0)
    kernel = RANDOM.randint(0, 256, (2, 3, 3, 4)) + lowest
    ends = (-51.0, 204.0, -102.0, 153.0)  # whole numbers: zero is an integer
    with tf.Graph().as_default(), tf.Session() as session:
        filters = tf.constant(kernel.astype(np.int8 if signed else np.uint8), dtype)
        images = tf.constant(IMAGES, tf.quint8)
        found = tf.nn.quantized_conv2d(images, filters, *ends, [1, 2, 1, 1], padding)
        expected = tf.nn.conv2d(
            numbers(IMAGES, *ends[:2]), numbers(kernel, *ends[2:], lowest), [1, 2, 1, 1], padding
        )
        (integers, low, high), whole = session.run([list(found), expected])
    assert high - low == pytest.approx(2.0**32, rel=1e-6)
    np.testing.assert_array_equal(integers, np.rint(whole))


def test_activations_are_limited() -> None:
    with tf.Session() as session:
        found = session.run(tf.nn.quantized_relu_x(tf.constant(IMAGES, tf.quint8), 1.5, -1.0, 2.0))
    expected = np.clip(numbers(IMAGES, -1.0, 2.0), 0, 1.5)
    np.testing.assert_allclose(numbers(found.activations, -1.0, 2.0), expected, atol=0.5 * 3 / 255)
    assert (found.min_activations, found.max_activations) == (-1.0, 2.0)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_pools_are_those_of_integers(padding: str) -> None:
    window = ([1, 2, 3, 1], [1, 2, 2, 1], padding)
    with tf.Graph().as_default(), tf.Session() as session:
        images = tf.constant(IMAGES.view(np.int8), tf.qint8)
        plain = tf.constant(IMAGES.view(np.int8).astype(np.float32))
        largest, *ends = session.run(list(tf.nn.quantized_max_pool(images, -1.0, 2.0, *window)))
        mean = session.run(tf.nn.quantized_avg_pool(images, -1.0, 2.0, *window).output)
        expected = session.run([tf.nn.max_pool(plain, *window), tf.nn.avg_pool(plain, *window)])
    assert ends == [-1.0, 2.0]
    np.testing.assert_array_equal(largest, expected[0])
    np.testing.assert_array_equal(mean, np.trunc(expected[1] + 1e-4 * np.sign(expected[1])))


@pytest.mark.parametrize(("ksize", "strides"), [([2, 1, 1, 1], [1, 1, 1, 1]), ([1, 1, 1, 3], [1, 1, 1, 3])])
def test_windows_over_batch_or_depth_are_refused(ksize: list[int], strides: list[int]) -> None:
    with tf.Session() as session, pytest.raises(tf.errors.UnimplementedError):
        session.run(
            tf.nn.quantized_max_pool(tf.constant(IMAGES, tf.quint8), 0.0, 1.0, ksize, strides, "SAME")
        )


def test_ranges_must_be_scalars() -> None:
    low = tf.placeholder(tf.float32)
    found = tf.nn.quantized_max_pool(
        tf.constant(IMAGES, tf.quint8), low, 1.0, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"
    )
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="must be a scalar"):
        session.run(found.output, {low: [0.0, 1.0]})


@pytest.mark.parametrize(("size", "stride"), [(3, 1), (3, 2), (2, 3), (5, 5)])
@pytest.mark.parametrize("signed", [False, True])
def test_pools_of_large_windows_are_truncated_means(size: int, stride: int, signed: bool) -> None:
    images = IMAGES.view(np.int8) if signed else IMAGES
    rows, columns = ((length - size) // stride + 1 for length in images.shape[1:3])
    windows = np.lib.stride_tricks.sliding_window_view(images, (size, size), (1, 2))
    windows = windows[:, ::stride, ::stride].reshape(2, rows, columns, 3, -1)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(images, tf.qint8 if signed else tf.quint8)
        window = {"ksize": [1, size, size, 1], "strides": [1, stride, stride, 1], "padding": "VALID"}
        pools = tf.nn.quantized_avg_pool, tf.nn.quantized_max_pool
        means, maxima = session.run([pool(x, -1.0, 1.0, **window)[0] for pool in pools])
    np.testing.assert_array_equal(maxima, windows.max(-1))
    np.testing.assert_array_equal(means, np.trunc(windows.astype(np.int64).sum(-1) / size**2))


def test_sums_and_products_of_broadcast_and_shifted_integers() -> None:
    x, y = IMAGES, IMAGES[0, 0, 0]
    with tf.Graph().as_default(), tf.Session() as session:
        a, b = tf.constant(x, tf.quint8), tf.constant(y, tf.quint8)
        for low, high in ((-51.0, 204.0), (1000.0, 1255.0)):  # zero is 51, and 1000 below the integers
            product, least, most = session.run(
                tf.raw_ops.QuantizedMul(
                    x=a, y=b, min_x=low, max_x=high, min_y=low, max_y=high, Toutput=tf.qint32
                )
            )
            zero = int(-low)
            expected = (x.astype(np.int64) - zero) * (y.astype(np.int64) - zero)
            np.testing.assert_array_equal(product, expected)
            assert most - least == pytest.approx(2.0**32, rel=1e-6)
