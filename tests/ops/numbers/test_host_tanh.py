"""Tanh of many numbers: as exact as of few, of any layout, infinite or not a number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.machine.machine_profiles import ZEN5

SOME, MANY = ZEN5.tanh_by_exponentials, ZEN5.tanh_by_onednn


@pytest.mark.parametrize("count", [SOME - 8, SOME, MANY - 8, MANY])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dying", [False, True])
def test_relative_errors_are_small(count: int, transposed: bool, dying: bool) -> None:
    random = np.random.default_rng(1)
    values: Any = random.standard_normal(count) * 10.0 ** random.uniform(-6, 1, count)
    values = values.astype("f").reshape(-1, 8)
    values[:3, 0] = np.nan, np.inf, -np.inf
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, values.shape)
        operand = tf.transpose(x) if transposed else x
        y = tf.tanh(tf.maximum(operand, -np.inf) if dying else operand)
        found = session.run(y, {x: values})
    expected = np.tanh(values.astype("d"))
    np.testing.assert_allclose(found, expected.T if transposed else expected, rtol=3e-7)
