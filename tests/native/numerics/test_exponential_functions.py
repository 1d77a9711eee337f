"""Exponential functions of both floating types, by polynomials and by SLEEF, to the ends of their ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags

FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "asinh": (tf.asinh, np.arcsinh),
    "acosh": (tf.acosh, np.arccosh),
    "exp": (tf.exp, np.exp),
    "expm1": (tf.math.expm1, np.expm1),
    "log": (tf.math.log, np.log),
    "sigmoid": (tf.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
}


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_numbers_of_every_size(name: str, dtype: str, exact: bool, monkeypatch: Any) -> None:
    monkeypatch.setattr(flags, "NATIVE_EXACT", exact)
    limits = np.finfo(dtype)
    sizes = 2.0 ** np.linspace(-20, limits.maxexp - 1, 90)
    x = np.concatenate([sizes, -sizes, [0.0, 1.0, np.inf, -np.inf, np.nan]]).astype(dtype)
    function, reference = FUNCTIONS[name]
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(dtype, x.shape)
        result = -function(fed)  # a single function may be left to ATen
        found = -session.run(result, {fed: x})
        assert "_Cluster" in session.explain(result, {fed: x})
    with np.errstate(all="ignore"):
        wanted = reference(x.astype(np.float64)).astype(dtype)
    np.testing.assert_allclose(found, wanted, rtol=5 * limits.eps, atol=limits.tiny)
