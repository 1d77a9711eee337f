"""The n-th smallest elements of rows against sorted rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import flowstone as tf


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint16", "int32", "uint64"])
@pytest.mark.parametrize("reverse", [False, True])
def test_elements_of_sorted_rows(dtype: str, reverse: bool, set_profile: Callable[..., None]) -> None:
    set_profile(core_cache=4000)  # so that a few rows are parted at a time
    x = (np.random.RandomState(0).randn(3, 7, 150) * 50).astype(dtype)
    if dtype.startswith("float"):
        x[0, 2, :5] = np.nan, np.inf, -np.inf, 0, -0.0
        x[1, 0] = np.nan
    ordered = np.sort(x, -1)[..., ::-1] if reverse else np.sort(x, -1)
    with tf.Graph().as_default(), tf.Session() as session:
        fed, n = tf.placeholder(dtype, x.shape), tf.placeholder(tf.int32, [])
        y = tf.raw_ops.NthElement(input=fed, n=n, reverse=reverse)
        for place in (0, 1, 73, 148, 149):
            np.testing.assert_array_equal(session.run(y, {fed: x, n: place}), ordered[..., place])
