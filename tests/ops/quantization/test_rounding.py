"""Quantised and back in one op: its first form, types that the oracle cannot compute, and its functions."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

NUMBERS = np.array([[-1.5, -1.0, -0.3, 0.0], [0.004, 0.5, 1.2, 2.0]])


def scaled(x: np.ndarray, low: float, high: float, lowest: int, highest: int) -> np.ndarray:
    """The rounding by its definition: both ends among the integers."""
    step = max(low / lowest if lowest else 0.0, high / highest)
    return np.rint(np.clip(x, lowest * step, highest * step) / step) * step


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_every_type_is_rounded(dtype: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.cast(NUMBERS, dtype)
        found = session.run(
            tf.cast(tf.quantization.quantize_and_dequantize(x, -1.0, 1.0, True, 5, True), tf.float64)
        )
    expected = scaled(NUMBERS, -1.0, 1.0, -16, 15)
    np.testing.assert_allclose(found, expected, atol={"float16": 1e-3, "bfloat16": 1e-2}.get(dtype, 1e-6))


def test_slices_have_ranges_of_their_own() -> None:
    low, high = np.array([-1, -2, -0.25, -0.5]), np.array([1, 0.5, 1, 3])
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(
            tf.quantization.quantize_and_dequantize(NUMBERS, low, high, range_given=True, axis=1)
        )
    expected = [scaled(*each, -128, 127) for each in zip(NUMBERS.T, low, high, strict=True)]
    np.testing.assert_allclose(found, np.transpose(expected), rtol=1e-12)


@pytest.mark.parametrize("given", [True, False])
def test_the_first_form_has_its_range_as_attributes(given: bool) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        graph.producer = 21
        x = tf.constant(NUMBERS)
        y = F.QuantizeAndDequantize(x, range_given=given, input_min=-1.0, input_max=0.5, num_bits=6)
        found, gradient = session.run([y, tf.gradients(y, x)[0]])
    ends = (-1.0, 0.5) if given else (-1.5, 2.0)
    np.testing.assert_allclose(found, scaled(NUMBERS, *ends, -32, 31), rtol=1e-12)
    np.testing.assert_array_equal(gradient, np.ones_like(NUMBERS))


def test_gradients_of_the_second_function_pass_inside_the_range() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(NUMBERS)
        ends = tf.constant(-1.0, tf.float64), tf.constant(1.0, tf.float64)
        y = tf.quantization.quantize_and_dequantize_v2(x, *ends, range_given=True)
        found = session.run(tf.gradients(y, x)[0])
    np.testing.assert_array_equal(found, (abs(NUMBERS) <= 1).astype(float))


def test_bits_and_axes_that_do_not_fit_are_refused() -> None:
    bits, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32)
    with tf.Session() as session:
        y = F.QuantizeAndDequantizeV3(x, -1.0, 1.0, bits)
        for count in (0, 70):
            with pytest.raises(tf.errors.InvalidArgumentError, match="num_bits is out of range"):
                session.run(y, {bits: count, x: NUMBERS})
        y = tf.quantization.quantize_and_dequantize(x, [-1.0], [1.0], axis=2)
        with pytest.raises(tf.errors.InvalidArgumentError, match="axis 2"):
            session.run(y, {x: NUMBERS})
