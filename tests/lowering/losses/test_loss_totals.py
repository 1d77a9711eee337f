"""Soft-max cross entropies added up at once: totals, gradients, and labels out of range."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.lowering.losses.loss_totals import sparse_total_op, total_op

LOGITS = np.float32([[1, 2, 3], [0, 0, 1], [2, -1, 0], [5, 5, 5]])
LABELS = np.array([2, 0, 1, 1])


def expected(divisor: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    exponents = np.exp(LOGITS.astype(np.float64))
    probabilities = exponents / exponents.sum(1, keepdims=True)
    total = -np.log(probabilities[range(4), LABELS]).sum() / divisor
    return total, scale * (probabilities - np.eye(3)[LABELS])


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("divisor", "scale"), [(1, 1.0), (4, 0.25), (4, 1.0)])
@pytest.mark.parametrize("sparse", [False, True])
def test_totals_and_gradients(sparse: bool, divisor: int, scale: float, transposed: bool) -> None:
    declaration = sparse_total_op if sparse else total_op
    labels = LABELS if sparse else np.eye(3, dtype="f")[LABELS]
    options = {"divisor": divisor, "scale": scale, "transposed": transposed, "name": "total"}
    results = declaration(tf.constant(LOGITS), tf.constant(labels), **options)
    total, gradient = expected(divisor, scale)
    assert results[0].shape.as_list() == []
    assert results[1].shape.as_list() == ([3, 4] if transposed else [4, 3])
    with tf.Session() as s:
        found = s.run(results)
    np.testing.assert_allclose(found[0], total, rtol=1e-6)
    np.testing.assert_allclose(found[1], gradient.T if transposed else gradient, atol=1e-6)


def test_a_label_out_of_range_is_named() -> None:
    labels = np.array([0, 1, 7, 0])
    total, _ = sparse_total_op(tf.constant(LOGITS), tf.constant(labels), divisor=4, name="total")
    with tf.Session() as s, pytest.raises(tf.errors.InvalidArgumentError, match="7"):
        s.run(total)
