"""Comparisons packed into bytes, against NumPy's packing of bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

pytestmark = pytest.mark.usefixtures("graph")

RNG = np.random.default_rng(4)


def run(tensor: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(tensor, feed)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("dims", [(16,), (3, 8), (2, 0), (0, 8), (2, 3, 24)])
def test_bits_are_packed_from_the_highest_on(kind: str, dims: tuple[int, ...]) -> None:
    value = (RNG.standard_normal(dims) * 4).astype(kind)
    packed = F.CompareAndBitpack(value, np.zeros((), kind))
    assert packed.shape.as_list() == [*dims[:-1], dims[-1] // 8]
    np.testing.assert_array_equal(run(packed), np.packbits(value > 0, axis=-1))


def test_truths_and_numbers_that_are_none() -> None:
    truths = RNG.random((2, 16)) > 0.5
    np.testing.assert_array_equal(run(F.CompareAndBitpack(truths, False)), np.packbits(truths, axis=-1))
    value = np.array([np.nan, np.inf, -np.inf, 0, 1, 2, 3, np.nan], "f")
    assert run(F.CompareAndBitpack(value, np.float32(1))).tolist() == [0b01000110]


def test_sizes_and_thresholds_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="evenly divisible by 8 but is 12"):
        F.CompareAndBitpack(np.zeros((2, 12), "f"), 0.0)
    x = tf.placeholder(tf.float32)
    packed = F.CompareAndBitpack(x, 0.0)
    for value in (np.zeros(12, "f"), np.float32(3)):
        with pytest.raises(tf.errors.InvalidArgumentError):
            run(packed, {x: value})
    with pytest.raises(tf.errors.InvalidArgumentError, match="threshold must be a scalar"):
        run(F.CompareAndBitpack(np.zeros(8, "f"), [0.0]))
