"""Patches of volumes, against NumPy: the oracle infers a wrong rank for them."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.images.volume_patches import extract_volume_patches

GEOMETRIES = [((2, 2, 2), (1, 1, 1)), ((1, 3, 2), (2, 1, 3)), ((3, 1, 1), (2, 2, 2))]
TYPES = (
    *("float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
)


def reference(x: np.ndarray, sizes: tuple[int, ...], strides: tuple[int, ...], padding: str) -> np.ndarray:
    """The windows of a volume padded with zeros."""
    amounts = [(0, 0)]
    for length, size, stride in zip(x.shape[1:4], sizes, strides, strict=True):
        missing = max((-(-length // stride) - 1) * stride + size - length, 0) if padding == "SAME" else 0
        amounts.append((missing // 2, missing - missing // 2))
    padded = np.pad(x, [*amounts, (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, sizes, (1, 2, 3))
    windows = windows[:, :: strides[0], :: strides[1], :: strides[2]].transpose(0, 1, 2, 3, 5, 6, 7, 4)
    return windows.reshape(*windows.shape[:4], -1)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("sizes", "strides"), GEOMETRIES)
def test_windows_are_laid_along_the_channels(
    sizes: tuple[int, ...], strides: tuple[int, ...], padding: str
) -> None:
    value = np.random.default_rng(1).standard_normal((2, 4, 5, 3, 2)).astype(np.float32)
    x = tf.placeholder(tf.float32, value.shape)
    y = extract_volume_patches(x, [1, *sizes, 1], [1, *strides, 1], padding)
    expected = reference(value, sizes, strides, padding)
    weights = np.random.default_rng(2).standard_normal(expected.shape).astype(np.float32)
    (dx,) = tf.gradients(y, x, weights)
    with tf.Session() as session:
        found, slope = session.run([y, dx], {x: value})
    np.testing.assert_array_equal(found, expected)
    assert y.shape.as_list() == list(expected.shape)
    # Patches are linear: the gradient's product with any volume is the weights' with its patches.
    other = np.random.default_rng(3).standard_normal(value.shape)
    total = (weights * reference(other, sizes, strides, padding)).sum()
    np.testing.assert_allclose((slope * other).sum(), total, rtol=1e-4)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type(dtype: str) -> None:
    value = tf.as_dtype(dtype).as_numpy_dtype(np.arange(24).reshape(1, 2, 3, 4, 1))
    y = extract_volume_patches(value, [1, 2, 2, 1, 1], [1, 1, 1, 2, 1], "VALID")
    with tf.Session() as session:
        found = session.run(y)
    expected = reference(np.arange(24).reshape(value.shape), (2, 2, 1), (1, 1, 2), "VALID")
    assert found.dtype == value.dtype
    np.testing.assert_array_equal(found.astype(np.int64), expected)


def test_nothing_and_too_little_give_nothing() -> None:
    windows = {"ksizes": [1, 2, 2, 2, 1], "strides": [1] * 5, "padding": "VALID"}
    for shape, expected in (((0, 3, 3, 3, 1), (0, 2, 2, 2, 8)), ((1, 1, 3, 3, 1), (1, 0, 2, 2, 8))):
        y = extract_volume_patches(np.zeros(shape, np.float32), **windows)
        with tf.Session() as session:
            assert session.run(y).shape == expected == tuple(y.shape.as_list())


def test_images_are_no_volumes() -> None:
    with pytest.raises(ValueError, match="rank 5"):
        extract_volume_patches(np.zeros((1, 3, 3, 1), np.float32), [1] * 5, [1] * 5, "SAME")
    with pytest.raises(ValueError, match="ksizes"):
        extract_volume_patches(np.zeros((1, 3, 3, 3, 1), np.float32), [1] * 6, [1] * 5, "SAME")
