"""The hinge loss of many classes, with the values of TensorFlow 1.15."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

hinge = tf.contrib.kernel_methods.sparse_multiclass_hinge_loss


@pytest.fixture
def given() -> tuple[Any, Any]:
    logits = [[1.0, 0.3, 2.0], [0.0, 1.0, -1.0], [3.0, 0.0, 0.0]]
    return tf.constant([0, 1, 2]), tf.constant(logits)


def test_values(given: tuple[Any, Any]) -> None:
    labels, logits = given
    asked = [
        hinge(labels, logits),
        hinge(labels, logits, weights=tf.constant([1.0, 0.0, 2.0])),
        hinge(tf.expand_dims(labels, 1), logits, reduction="none"),
    ]
    with tf.Session() as session:
        mean, weighted, each = session.run(asked)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(hinge(tf.constant([0, 1, 3]), logits))
    assert (mean, weighted) == (2.0, 5.0)
    np.testing.assert_array_equal(each, [2.0, 0.0, 4.0])


def test_what_is_refused(given: tuple[Any, Any]) -> None:
    labels, logits = given
    with pytest.raises(ValueError, match="Invalid dtype for labels"):
        hinge(tf.constant([0.0, 1.0, 2.0]), logits)
    with pytest.raises(ValueError, match="logits should have rank 2"):
        hinge(labels, logits[0])
    with pytest.raises(ValueError, match="are incompatible"):
        hinge(labels, logits, weights=tf.zeros([2]))
