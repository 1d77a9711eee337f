"""Products in bfloat16: graph text, results near those of float32, and who asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf
from agreement import ops, text

RNG = np.random.default_rng(7)


def config(field: str = "auto_mixed_precision_onednn_bfloat16", value: int = 1) -> tf.ConfigProto:
    result = tf.ConfigProto()
    setattr(result.graph_options.rewrite_options, field, value)
    return result


def test_operands_and_results_are_cast() -> None:
    x = tf.placeholder(tf.float32, [8, 6], name="x")
    w = tf.Variable(tf.zeros([6, 4]), name="w")
    lines = text([tf.matmul(x, w, name="product")], [x], "multiply_in_bfloat16")
    assert ops(lines)[-4:] == ["Cast", "Cast", "MatMul", "Cast"]
    assert [line.rpartition(" : ")[2] for line in lines[-5:-1]] == [
        "bfloat16[8,6]  # product/bfloat16_0",
        "bfloat16[6,4]  # product/bfloat16_1",
        "bfloat16[8,4]  # product",
        "float32[8,4]  # product/float32",
    ]


def test_other_types_and_ops_stay() -> None:
    x = tf.placeholder(tf.float64, [3, 3])
    y = tf.placeholder(tf.float32, [3, 3])
    lines = text([tf.matmul(x, x), tf.exp(y) * y], [x, y], "multiply_in_bfloat16")
    assert "Cast" not in ops(lines)


def losses(config: Any, steps: int = 8) -> list[float]:
    """Of a small network with convolutions, products of both kinds and their gradients, in training."""
    images = RNG.standard_normal([4, 8, 8, 3]).astype("f") if not _IMAGES else _IMAGES[0]
    _IMAGES[:] = [images]
    x = tf.placeholder(tf.float32, images.shape)
    filters = tf.Variable(tf.random_normal([3, 3, 3, 4], stddev=0.3, seed=1))
    h = tf.nn.relu(tf.nn.conv2d(x, filters, [1, 2, 2, 1], "SAME"))
    h = tf.reshape(tf.matmul(tf.reshape(h, [4, 16, 4]), tf.reshape(h, [4, 16, 4]), transpose_b=True), [4, -1])
    weights = tf.Variable(tf.random_normal([256, 3], stddev=0.05, seed=2))
    loss = tf.reduce_mean(tf.square(tf.matmul(h, weights) - 1.0))
    train = tf.train.GradientDescentOptimizer(1e-3).minimize(loss)
    with tf.Session(config=config) as s:
        s.run(tf.global_variables_initializer())
        assert all(value.dtype == np.float32 for value in s.run([filters, weights]))
        explained = s.explain([train, loss], [x])
        assert ("multiply_in_bfloat16: " in explained) == (config is not None)
        return [s.run([train, loss], {x: images})[1] for _ in range(steps)]


_IMAGES: list[Any] = []


def test_training_goes_the_same_way() -> None:
    exact, rounded = losses(None), losses(config())
    np.testing.assert_allclose(rounded, exact, rtol=0.03)
    assert rounded != exact and rounded[-1] < rounded[0]


def test_loops_and_conditionals() -> None:
    x = tf.placeholder(tf.float32, [4, 4])
    looped = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.matmul(a, x)), [0, x])[1]
    chosen = tf.cond(x[0, 0] > 0, lambda: tf.matmul(x, x), lambda: tf.matmul(x, x, transpose_a=True))
    value = (RNG.standard_normal([4, 4]) / 2).astype("f")
    results = []
    for c in (None, config()):
        with tf.Session(config=c) as s:
            results.append([s.run([looped, chosen], {x: sign * value}) for sign in (1, -1)])
    for exact, rounded in zip(*results):
        for a, b in zip(exact, rounded):
            np.testing.assert_allclose(b, a, rtol=0.03, atol=0.03)


def test_who_asks_for_it() -> None:
    x = tf.placeholder(tf.float32, [4, 4])
    y = tf.matmul(x, x)
    for asked, expected in (
        (None, False),
        (config(value=2), False),
        (config("auto_mixed_precision_mkl"), True),
        (config(), True),
    ):
        with tf.Session(config=asked) as s:
            assert ("multiply_in_bfloat16: " in s.explain(y, [x])) == expected
