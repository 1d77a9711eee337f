"""Soft-max and cross entropies in a loop: machine code gives what the kernels do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.declarations.operation import F
from flowstone.lowering.programs.softmax_statements import SOFTMAXES
from three_ways import assert_equal_three_ways, repeated

LABELS = np.array([3, 0, 4, 4])
CASES: dict[str, Callable[[Any], list[Any]]] = {
    "LogSoftmax": lambda x: [tf.nn.log_softmax(x), tf.nn.log_softmax(x[0])],
    "Softmax": lambda x: [tf.nn.softmax(x), tf.nn.softmax(x[0])],
    "SoftmaxCrossEntropyWithLogits": lambda x: [
        *F.SoftmaxCrossEntropyWithLogits(x, tf.nn.softmax(x * 3.0)),
        *F.SoftmaxCrossEntropyWithLogits(x, tf.nn.softmax(x[:1])),
    ],
    "SparseSoftmaxCrossEntropyWithLogits": lambda x: [
        *F.SparseSoftmaxCrossEntropyWithLogits(x, LABELS),
        *F.SparseSoftmaxCrossEntropyWithLogits(x * 90.0, LABELS.astype(np.int32)),
    ],
}


def test_every_operation_has_a_case() -> None:
    assert set(CASES) == set(SOFTMAXES)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda x: x.__name__)
@pytest.mark.parametrize("name", CASES)
def test_softmaxes(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(dtype, [4, 5])
    results = repeated(CASES[name], x)
    value = np.random.default_rng(0).normal(size=[4, 5]).astype(dtype)
    assert_equal_three_ways(monkeypatch, results, {x: value})


def test_a_label_that_is_no_class_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    x, labels = tf.placeholder(tf.float32, [4, 5]), tf.placeholder(tf.int32, [4])
    results = repeated(lambda x: list(F.SparseSoftmaxCrossEntropyWithLogits(x, labels)), x)
    monkeypatch.setattr(flags, "NATIVE", 2)
    with tf.Session() as session:
        for wrong in (-1, 5):
            feed = {x: np.ones([4, 5]), labels: [0, 1, wrong, 2]}
            assert "_Program(" in session.explain(results, feed)
            with pytest.raises(tf.errors.InvalidArgumentError, match="label"):
                session.run(results, feed)


def test_a_loss_stands_between_loops_and_their_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = tf.placeholder(tf.float32, [6, 3, 4]), tf.constant(np.eye(4, dtype=np.float32) * 0.9)
    h = tf.scan(lambda a, b: tf.tanh(tf.matmul(a, w) + b), x, initializer=tf.zeros([3, 4]))
    loss = tf.reduce_mean(F.SparseSoftmaxCrossEntropyWithLogits(h[-1], [0, 1, 3])[0])
    value = np.random.default_rng(1).normal(size=[6, 3, 4])
    assert_equal_three_ways(monkeypatch, [loss, *tf.gradients(loss, [w, x])], {x: value})
