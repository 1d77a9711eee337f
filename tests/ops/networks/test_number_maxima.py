"""Max pooling passes over NaN: values, places and gradients, on which TensorFlow 1.15.5 and 2.21 agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

N, INF = np.nan, np.inf
FIRST, MIDDLE, LAST, NONE = [N, 1, 2, 3], [1, N, 2, 0], [1, 2, 3, N], [N, -INF, N, -INF]
TYPES = ["float32", "float64", "float16"]


def lowest(dtype: str) -> float:
    return float(np.finfo(dtype).min)


def run(fetches: Any) -> Any:
    with tf.Session() as session:
        return [np.asarray(each, np.float64).ravel().tolist() for each in session.run(fetches)]


def pooled(row: list[float], dtype: str, size: int, channels: int = 1) -> list[Any]:
    """(images [1, 1, 4, channels], the maxima of windows along the row, and the arguments)"""
    x = tf.constant(np.tile(np.reshape(np.array(row, dtype), (1, 1, 4, 1)), channels))
    arguments = {"ksize": [1, 1, size, 1], "strides": [1, 1, 1, 1], "padding": "VALID"}
    return [x, tf.nn.max_pool(x, **arguments), arguments]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("row", "size", "maxima", "gradient", "again"),
    [
        (FIRST, 4, [3], [1, 0, 0, 0], [4]),
        (FIRST, 2, [1, 2, 3], [1, 0, 2, 3], [2, 3, 4]),
        (MIDDLE, 4, [2], [0, 0, 1, 0], [3]),
        (MIDDLE, 2, [1, 2, 2], [1, 2, 3, 0], [1, 3, 3]),
        (LAST, 2, [2, 3, 3], [0, 1, 5, 0], [2, 3, 3]),
        (NONE, 4, [None], [1, 0, 0, 0], [0]),
        ([-INF] * 4, 4, [None], [1, 0, 0, 0], [0]),
    ],
)
def test_images(dtype, row, size, maxima, gradient, again) -> None:
    x, y, arguments = pooled(row, dtype, size)
    dy = tf.cast(tf.reshape(tf.range(1.0, 1.0 + len(maxima)), y.shape), dtype)
    (dx,) = tf.gradients(y, x, dy)
    ddx = tf.cast(tf.reshape(tf.range(1.0, 5.0), x.shape), dtype)
    second = tf.raw_ops.MaxPoolGradGrad(orig_input=x, orig_output=y, grad=ddx, **arguments)
    known = [lowest(dtype) if each is None else each for each in maxima]
    assert run([y, dx, second]) == [known, gradient, again]
    assert run([y, dx]) == [known, gradient] and run([y]) == [known]


@pytest.mark.parametrize(
    ("row", "maxima", "places"),
    [
        (FIRST, [N, 2, 3], [0, 2, 3]),
        (MIDDLE, [1, N, 2], [0, 1, 2]),
        (LAST, [2, 3, 3], [1, 2, 2]),
        (NONE, [N, -INF, N], [0, 1, 2]),
    ],
)
def test_places(row, maxima, places) -> None:
    x, _, arguments = pooled(row, "float32", 2)
    values, found = run(list(tf.nn.max_pool_with_argmax(x, **arguments)))
    np.testing.assert_array_equal(values, maxima)
    assert found == places


@pytest.mark.parametrize(
    ("row", "maximum", "gradient"),
    [
        (FIRST, 3, [0, 0, 0, 1]),
        (LAST, 3, [0, 0, 1, 0]),
        (NONE, -INF, [0, 0, 0, 0]),
        ([-INF] * 4, -INF, [0, 0, 0, 0]),
    ],
)
def test_volumes(row, maximum, gradient) -> None:
    x = tf.constant(np.reshape(np.array(row, "f"), (1, 1, 1, 4, 1)))
    y = tf.nn.max_pool3d(x, [1, 1, 1, 4, 1], [1, 1, 1, 1, 1], "VALID")
    raw = tf.raw_ops.MaxPool3DGrad(
        orig_input=x,
        orig_output=y,
        grad=tf.ones_like(y),
        ksize=[1, 1, 1, 4, 1],
        strides=[1] * 5,
        padding="VALID",
    )
    assert run([y, raw]) == [[maximum], gradient]


@pytest.mark.parametrize("size", [4, 200])
def test_images_of_many_elements_and_every_layout(size) -> None:
    """Those that machine code pools, and padding that ATen is not told of."""
    chance = np.random.RandomState(size)
    x = chance.choice([N, -INF, 1.0, 2.0, INF], (2, size, size, 3), p=[0.4, 0.2, 0.2, 0.1, 0.1]).astype("f")
    kept = np.nan_to_num(x, nan=-INF, posinf=INF, neginf=-INF)
    wide = np.pad(kept, [(0, 0), (0, 1), (0, 1), (0, 0)], constant_values=-INF)
    seen = [wide[:, i : i + size : 1, j : j + size : 1] for i in (0, 1) for j in (0, 1)]
    expected = np.maximum(np.max(seen, 0), np.finfo("f").min)
    images = tf.placeholder(tf.float32)
    fetches = {
        "by shape": tf.nn.max_pool(tf.reshape(images, x.shape), [1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
        "any": tf.nn.max_pool(images, [1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
    }
    first = tf.transpose(images, [0, 3, 1, 2])
    pooled = tf.nn.max_pool(first, [1, 1, 2, 2], [1, 1, 1, 1], "SAME", data_format="NCHW")
    fetches["first"] = tf.transpose(pooled, [0, 2, 3, 1])
    fetches["double"] = tf.cast(
        tf.maximum(
            tf.nn.max_pool(tf.cast(images, tf.float64), [1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
            tf.cast(lowest("float32"), tf.float64),
        ),
        tf.float32,
    )
    with tf.Session() as session:
        for name, each in fetches.items():
            for _ in range(2):
                np.testing.assert_array_equal(session.run(each, {images: x}), expected, err_msg=name)


def test_fractional_pooling() -> None:
    row = np.reshape(np.array([N, 1, 2, N], "f"), (1, 4, 1, 1))
    x = tf.constant(np.concatenate([row, np.full_like(row, N)], 3))
    y = tf.nn.fractional_max_pool(x, [1, 2.0, 1, 1], deterministic=True, seed=3)[0]
    (dx,) = tf.gradients(y, x)
    assert run([y, dx]) == [
        [1, lowest("float32"), 2, lowest("float32")],
        [1, 1, 0, 0, 1, 1, 0, 0],
    ]
