"""Steps of layers with few outputs: which become machine code, and that they learn the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason())
RANDOM = np.random.RandomState(0)
X, LABELS = RANDOM.rand(20, 100).astype(np.float32), RANDOM.randint(0, 10, 20)


@pytest.fixture(autouse=True)
def narrow(set_profile: Any) -> None:
    set_profile(narrow_columns=32)


def steps(
    monkeypatch: pytest.MonkeyPatch,
    native: int,
    resource: bool = False,
    dtype: str = "float32",
    units: int = 10,
) -> tuple[list[Any], str]:
    """Losses of four steps and the weights after them; what the plan says."""
    monkeypatch.setattr(flags, "NATIVE", native)
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(dtype, [None, 100]), tf.placeholder(tf.int64, [None])
        first = np.random.RandomState(1).randn(100, units).astype(dtype)
        w = tf.Variable(first, use_resource=resource)
        b = tf.Variable(tf.zeros([units], dtype), use_resource=resource)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.matmul(x, w) + b)
        loss = tf.reduce_mean(losses)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        feeds = {x: X.astype(dtype), y: LABELS}
        seen = [session.run([loss, train], feeds)[0] for _ in range(4)]
        return [*seen, *session.run([w, b])], session.explain([loss, train], feeds)


@pytest.mark.parametrize("resource", [False, True])
def test_a_step_learns_the_same(monkeypatch: pytest.MonkeyPatch, resource: bool) -> None:
    expected, plain = steps(monkeypatch, 0, resource)
    actual, text = steps(monkeypatch, 2, resource)
    assert "_NarrowLayer" in text and "narrow_layer(" in text and "narrow_descent(" in text
    assert "narrow_layer" not in plain
    for a, b in zip(actual, expected):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("case", [{"dtype": "float64"}, {"units": 40}])
def test_other_types_and_wide_layers_are_left(monkeypatch: pytest.MonkeyPatch, case: Any) -> None:
    expected, _ = steps(monkeypatch, 0, **case)
    actual, text = steps(monkeypatch, 2, **case)
    assert "_NarrowLayer" not in text and "narrow_descent" not in text
    for a, b in zip(actual, expected):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_weights_that_nothing_changes_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [20, 100])
        y = tf.matmul(x, tf.Variable(tf.ones([100, 10]))) + tf.Variable(tf.ones([10]))
        session.run(tf.global_variables_initializer())
        assert "_NarrowLayer" not in session.explain(y, {x: X})
        np.testing.assert_allclose(session.run(y, {x: X})[:, 0], X.sum(1) + 1, rtol=1e-5)
