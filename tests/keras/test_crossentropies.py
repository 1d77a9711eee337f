"""Cross entropies: from probabilities, from logits, and from probabilities that the graph makes of logits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.keras.crossentropies import (
    binary_crossentropy,
    categorical_crossentropy,
    sparse_categorical_crossentropy,
)

pytestmark = pytest.mark.usefixtures("graph")


def run(tensor: Any) -> Any:
    with tf.Session() as session:
        return session.run(tensor)


LOGITS = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 90.0]], np.float32)


def test_binary() -> None:
    target = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]], np.float32)
    exact = np.logaddexp(0, LOGITS) - target * LOGITS
    np.testing.assert_allclose(run(binary_crossentropy(target, LOGITS, from_logits=True)), exact, rtol=1e-5)
    traced = run(binary_crossentropy(target, tf.sigmoid(LOGITS)))
    np.testing.assert_allclose(traced, exact, rtol=1e-5)
    plain = run(binary_crossentropy(target, tf.constant(1 / (1 + np.exp(-LOGITS)))))
    np.testing.assert_allclose(plain[:, :2], exact[:, :2], rtol=1e-5)
    assert plain[1, 2] < 17  # kept away from 1


def test_categorical() -> None:
    target = np.eye(3, dtype=np.float32)[[2, 1]]
    exact = np.log(np.exp(LOGITS.astype(np.float64)).sum(1)) - (target * LOGITS).sum(1)
    for output, from_logits in ((LOGITS, True), (tf.nn.softmax(LOGITS), False)):
        np.testing.assert_allclose(
            run(categorical_crossentropy(target, output, from_logits)), exact, rtol=1e-5
        )
    counts = np.array([[1.0, 2.0, 5.0]], np.float32)  # divided by their sum
    np.testing.assert_allclose(run(categorical_crossentropy(target[:1], counts)), [-np.log(5 / 8)], rtol=1e-5)
    with pytest.raises(ValueError, match="axis"):
        categorical_crossentropy(target, LOGITS, axis=2)


def test_sparse_categorical() -> None:
    exact = np.log(np.exp(LOGITS.astype(np.float64)).sum(1)) - LOGITS[[0, 1], [2, 1]]
    for output, from_logits in ((LOGITS, True), (tf.nn.softmax(LOGITS), False)):
        value = run(sparse_categorical_crossentropy([2.0, 1.0], output, from_logits))
        np.testing.assert_allclose(value, exact, rtol=1e-5)
    along_first = run(sparse_categorical_crossentropy([2, 1], LOGITS.T, True, axis=0))
    np.testing.assert_allclose(along_first, exact, rtol=1e-5)
    sequences = run(sparse_categorical_crossentropy([[2, 1]], LOGITS[None], True))
    np.testing.assert_allclose(sequences, exact[None], rtol=1e-5)
