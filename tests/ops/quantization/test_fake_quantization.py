"""Fake quantisation: the public functions and their gradients, by names and arguments; ranges are trained."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf

NUMBERS = np.float32([[-7, -0.3, 0.0], [0.02, 2.5, 8]])


def rounded(x: np.ndarray, low: float, high: float, last: int, first: int = 0) -> np.ndarray:
    """The rounding by its definition: the range moved so that 0 is a step."""
    step = (high - low) / (last - first)
    zero = np.floor(np.clip(first - low / step, first, last) + 0.5)
    moved = (first - zero) * step, (last - zero) * step
    return np.floor((np.clip(x, *moved) - moved[0]) / step + 0.5) * step + moved[0]


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("bits", [2, 8, 13])
def test_all_three_round_alike(bits: int, narrow: bool) -> None:
    form = {"num_bits": bits, "narrow_range": narrow}
    with tf.Session() as session:
        found = session.run(
            [
                tf.fake_quant_with_min_max_args(NUMBERS, -0.7, 3.1, **form),
                tf.fake_quant_with_min_max_vars(NUMBERS, -0.7, 3.1, **form),
                tf.fake_quant_with_min_max_vars_per_channel(NUMBERS, [-0.7] * 3, [3.1] * 3, **form),
            ]
        )
    for each in found:
        expected = rounded(NUMBERS.astype(np.float64), -0.7, 3.1, 2**bits - 1, int(narrow))
        np.testing.assert_allclose(each, expected, atol=1e-5)


def test_the_gradients_are_the_gradient_functions() -> None:
    dy = np.float32(np.arange(6).reshape(2, 3) + 1)
    with tf.Graph().as_default(), tf.Session() as session:
        x, low, high = tf.constant(NUMBERS), tf.constant(-1.0), tf.constant(3.0)
        ends = tf.constant([-1.0, -1.0, -1.0]), tf.constant([3.0, 2.0, 3.0])
        args = tf.gradients(tf.fake_quant_with_min_max_args(x, -1, 3), [x], dy)
        one = tf.gradients(tf.fake_quant_with_min_max_vars(x, low, high), [x, low, high], dy)
        each = tf.gradients(tf.fake_quant_with_min_max_vars_per_channel(x, *ends), [x, *ends], dy)
        expected = [
            [tf.fake_quant_with_min_max_args_gradient(dy, x, -1, 3)],
            list(tf.fake_quant_with_min_max_vars_gradient(dy, x, low, high)),
            list(tf.fake_quant_with_min_max_vars_per_channel_gradient(dy, x, *ends)),
        ]
        found, functions = session.run([[args, one, each], expected])
    assert found[1][0].tolist() == [[0, 2, 3], [4, 5, 0]]
    assert [float(end) for end in found[1][1:]] == [1, 6]
    assert [end.tolist() for end in found[2][1:]] == [[1, 0, 0], [0, 5, 6]]
    for mine, theirs in zip(found, functions, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


def test_names_are_tensorflows() -> None:
    with tf.Graph().as_default():
        x = tf.constant(NUMBERS)
        y = tf.quantization.fake_quant_with_min_max_args(x)
        assert y.op.name == "FakeQuantWithMinMaxArgs"
        gradient = tf.gradients(y, x)[0]
        assert gradient.op.name.endswith("FakeQuantWithMinMaxArgs_grad/FakeQuantWithMinMaxArgsGradient")


def test_a_range_is_trained() -> None:
    """The largest number of the range grows towards what it cuts off."""
    with tf.Graph().as_default(), tf.Session() as session:
        high = tf.Variable(1.0)
        y = tf.fake_quant_with_min_max_vars(np.float32([0.5, 4.0]), -1.0, high)
        loss = tf.reduce_sum(tf.square(y - [0.5, 4.0]))
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        before, _ = session.run([loss, [step]]), [session.run(step) for _ in range(20)]
        after, largest = session.run([loss, high])
    assert after < 0.05 < before[0]
    assert largest == pytest.approx(4.0, abs=0.2)


def test_ends_that_do_not_fit_are_refused() -> None:
    low, x = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    with tf.Session() as session:
        one = tf.fake_quant_with_min_max_vars(x, low, 1.0)
        each = tf.fake_quant_with_min_max_vars_per_channel(x, low, [1.0])
        for y in (one, each):
            with pytest.raises(tf.errors.InvalidArgumentError, match="must be"):
                session.run(y, {low: [0.0, 0.0], x: NUMBERS})
        with pytest.raises(tf.errors.InvalidArgumentError, match="num_bits"):
            session.run(tf.fake_quant_with_min_max_args(NUMBERS, num_bits=17))
