"""Many numbers become texts at once, each as C's printf writes it."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flowstone as tf

RANDOM = np.random.default_rng(3)


def numbers(dtype: Any) -> Any:
    """Of every size, ties of every place, and what is no number."""
    with np.errstate(all="ignore"):
        sizes = RANDOM.standard_normal(2000) * 10.0 ** RANDOM.integers(-9, 16, 2000)
        ties = np.concatenate([RANDOM.integers(-4000, 4000, 500) / 2.0**k for k in range(1, 14)])
        decimal_ties = (RANDOM.integers(-4000, 4000, 2000) * 2 + 1) / 2e6
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 4503599627.370496, 9e15, 1e300, -5e-7, 2.5e-6]
        return np.concatenate([sizes, ties, decimal_ties, special]).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("precision", [-1, 0, 1, 6, 12, 13])
def test_texts_are_those_of_printf(dtype: Any, precision: int) -> None:
    values = numbers(dtype)
    with tf.Graph().as_default(), tf.Session() as session, warnings.catch_warnings():
        warnings.simplefilter("error")
        found = session.run(tf.as_string(tf.placeholder_with_default(values, [None]), precision))
    directive = "%f" if precision < 0 else f"%.{precision}f"
    for value, text in zip(values.astype(np.float64).tolist(), found.tolist(), strict=True):
        expected = (directive % value).encode()
        assert text == expected or (value != value and text in (b"nan", b"-nan"))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("precision", [-1, 0, 3, 13])
def test_texts_of_complex_numbers_are_those_of_their_parts(dtype: Any, precision: int) -> None:
    parts = numbers(np.float32 if dtype is np.complex64 else np.float64)
    values = parts.view(dtype) if len(parts) % 2 == 0 else parts[1:].view(dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        found, one, other = session.run(
            [
                tf.as_string(tf.constant(each), precision)
                for each in (values, values.real.copy(), values.imag.copy())
            ]
        )
    assert len(values) > 1000 and found.shape == values.shape
    assert found.tolist() == [b"(%s,%s)" % pair for pair in zip(one.tolist(), other.tolist(), strict=True)]
