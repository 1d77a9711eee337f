"""Activations and their gradients in machine code, beside their formulas in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.declarations.operation import registry
from flowstone.native.codegen import host
from flowstone.native.numerics.activations import SELU_ALPHA, SELU_SCALE

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
Array = np.ndarray[Any, Any]
FORMULAS: dict[str, Callable[..., Array]] = {
    "Elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "LeakyRelu": lambda x: np.where(x > 0, x, np.float64(np.float32(0.3)) * x),
    "Relu": lambda x: np.maximum(x, 0),
    "Relu6": lambda x: np.clip(x, 0, 6),
    "Relu6Grad": lambda dy, x: np.where((x > 0) & (x < 6), dy, 0),
    "ReluGrad": lambda dy, x: np.where(x > 0, dy, 0),
    "RsqrtGrad": lambda y, dy: -0.5 * dy * y**3,
    "Selu": lambda x: SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(x)),
    "SigmoidGrad": lambda y, dy: dy * (1 - y) * y,
    "Softplus": lambda x: np.logaddexp(x, 0),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "SoftsignGrad": lambda dy, x: dy / (1 + np.abs(x)) ** 2,
    "TanhGrad": lambda y, dy: dy * (1 - y**2),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    random, inputs = np.random.RandomState(0), 2 if name.endswith("Grad") else 1
    given = [(random.randn(37, 5) * 4).astype(dtype) for _ in range(inputs)]
    attributes = {"alpha": 0.3} if name == "LeakyRelu" else {}
    with tf.Graph().as_default(), tf.Session() as session:
        fed = [tf.placeholder(dtype, [37, 5]) for _ in given]
        y = registry[name](*fed, **attributes)
        fetches = [y, y - 1.0]  # so that it is in a cluster
        feed = dict(zip(fed, given))
        assert "_Cluster" in session.explain(fetches, feed)
        found = session.run(fetches, feed)[0]
    wide = [x.astype(np.float64) for x in given]
    tolerance = 40 * np.finfo(dtype).eps
    np.testing.assert_allclose(found, FORMULAS[name](*wide), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("native", [0, 2])
@pytest.mark.parametrize("name", ["ReluGrad", "Relu6Grad"])
def test_gradients_are_times_one_or_zero(name: str, native: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of NaN features zero, of infinity times zero NaN, at every place of a vector."""
    monkeypatch.setattr(flags, "NATIVE", native)
    features = np.array([np.nan, -1, -1, 0, 3, 7, np.inf, -np.inf], np.float32)
    flow = np.array([2, np.inf, -2, 1, np.nan, np.inf, -1, 3], np.float32)
    passes = (features > 0) & ((features < 6) | (name == "ReluGrad"))
    with np.errstate(invalid="ignore"):
        expected = np.tile(flow * passes.astype(np.float32), 5)
    with tf.Graph().as_default(), tf.Session() as session:
        fed = [tf.placeholder(tf.float32, [40]) for _ in range(2)]
        y = registry[name](*fed)
        feed = dict(zip(fed, (np.tile(flow, 5), np.tile(features, 5))))
        for found in (session.run([y, y - 1.0], feed)[0], session.run(y, feed)):
            np.testing.assert_array_equal(found, expected)
