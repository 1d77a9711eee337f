"""The public functions of conversions: arguments, names, and numbers that come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

NUMBERS = np.float32([-1, -0.4, 0, 0.01, 0.7, 2])


@pytest.mark.parametrize("mode", ["MIN_COMBINED", "MIN_FIRST", "SCALED"])
@pytest.mark.parametrize("dtype", [tf.qint8, tf.quint8, tf.qint16, tf.quint16, tf.qint32])
def test_numbers_come_back(dtype: Any, mode: str) -> None:
    """Within a step; unsigned integers of the scaled mode have none for negative numbers."""
    with tf.Graph().as_default(), tf.Session() as session:
        integers, low, high = tf.quantize_v2(NUMBERS, -1.0, 2.0, dtype, mode)
        found = session.run(tf.dequantize(integers, low, high, mode))
    steps = 2.0 ** (8 * dtype.size - 1 - (mode == "SCALED"))
    expected = NUMBERS.clip(0) if mode == "SCALED" and dtype.name.startswith("qu") else NUMBERS
    np.testing.assert_allclose(found, expected, atol=2 / steps + 1e-6)


def test_the_other_name_has_its_arguments_in_another_order() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        one = tf.quantize(NUMBERS, -1.0, 2.0, tf.qint8, "SCALED", "HALF_TO_EVEN", "one", True)
        other = tf.quantize_v2(NUMBERS, -1.0, 2.0, tf.qint8, "SCALED", "other", "HALF_TO_EVEN", True)
        assert one.output.op.name == "one" and other.output.op.name == "other"
        assert one.output.dtype is tf.qint8 and one._fields == ("output", "output_min", "output_max")
        values = session.run([list(one), list(other)])
    for mine, theirs in zip(*values, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_quantised_values_are_fetched_as_plain_integers() -> None:
    with tf.Session() as session:
        scalar, vector = session.run(
            [tf.constant(np.uint8(7), tf.quint8), tf.constant(np.int8([-1]), tf.qint8)]
        )
    assert (scalar.dtype, int(scalar)) == (np.uint8, 7)
    assert (vector.dtype, vector.tolist()) == (np.int8, [-1])


def test_slices_come_back_as_bfloat16() -> None:
    integers = tf.constant(np.int8([[127, -127], [64, 0]]), tf.qint8)
    ends = tf.constant([-1.0, -2.0]), tf.constant([1.0, 2.0])
    with tf.Session() as session:
        back = tf.dequantize(integers, *ends, "SCALED", axis=1, narrow_range=True, dtype=tf.bfloat16)
        assert back.dtype is tf.bfloat16
        found = session.run(tf.cast(back, tf.float32))
    np.testing.assert_allclose(found, [[1, -2], [0.503937, 0]], rtol=1e-2)


def test_joined_tensors_share_the_widest_range() -> None:
    with tf.Session() as session:
        parts = [tf.quantize_v2(NUMBERS * scale, -1.0 * scale, 2.0 * scale, tf.quint8) for scale in (1, 3)]
        joined = tf.quantized_concat(0, *[[part[i] for part in parts] for i in range(3)])
        low, high, found = session.run([joined[1], joined[2], tf.dequantize(*joined)])
    assert (low, high) == (-3.0, 6.0)
    np.testing.assert_allclose(found, [*NUMBERS, *(3 * NUMBERS)], atol=9 / 255)


def test_nothing_flows_back() -> None:
    x = tf.constant(NUMBERS)
    with pytest.raises(LookupError):
        tf.gradients(tf.dequantize(*tf.quantize_v2(x, -1.0, 2.0, tf.quint8)), x)


@pytest.mark.parametrize("mode", ["MIN_COMBINED", "MIN_FIRST", "SCALED"])
def test_large_tensors_are_those_of_small_ones(mode: str) -> None:
    every = np.arange(256, dtype=np.uint8)
    many = np.tile(every, 2**13 + 1)  # computed in pieces
    with tf.Graph().as_default(), tf.Session() as session:
        few, lots = (tf.constant(each, tf.quint8) for each in (every, many))
        one, other = session.run([tf.dequantize(x, -1.3, 2.6, mode) for x in (few, lots)])
        np.testing.assert_array_equal(np.tile(one, 2**13 + 1), other)
        given = (-1.3, 2.6, -0.7, 1.9)
        one, other = session.run(
            [tf.raw_ops.Requantize(
                input=x, input_min=given[0], input_max=given[1], requested_output_min=given[2],
                requested_output_max=given[3], out_type=tf.quint8,
            )[0] for x in (few, lots)]
        )  # fmt: skip
        np.testing.assert_array_equal(np.tile(one, 2**13 + 1), other)
