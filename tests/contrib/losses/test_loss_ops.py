"""Losses of `tf.contrib.losses` have 1.15.5's names and values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contrib.losses.loss_programs import answers

import flowstone as tf

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/contrib/losses.json").read_text(encoding="utf-8"))
losses = tf.contrib.losses


def test_names_and_values() -> None:
    found = answers(tf)
    assert list(found) == list(GOLDEN)
    for key, (name, value) in ((key, pair) for key, pair in GOLDEN.items() if key != "losses"):
        assert found[key][0] == name
        np.testing.assert_allclose(found[key][1], value, rtol=1e-4, atol=1e-6, err_msg=key)
    assert found["losses"] == GOLDEN["losses"]


def test_losses_of_weights_count_in_the_total() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, tf.constant(2.0))
        losses.add_loss(tf.constant(1.0))
        losses.add_loss(tf.constant(5.0), loss_collection=None)
        assert len(losses.get_regularization_losses()) == 1
        assert session.run([losses.get_total_loss(), losses.get_total_loss(False)]) == [3.0, 1.0]


def test_gradients_of_a_batch_without_weight_are_zero() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([1.0, 2.0])
        loss = losses.mean_squared_error(x, tf.zeros([2]), 0.0)
        assert session.run(tf.gradients(loss, x)[0]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("weights", "message"),
    [(None, "None"), ([1.0, 2.0, 3.0], "(?i)incompatible|equal"), ("unknown", "ndims cannot be None")],
)
def test_weights_refused(weights: Any, message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        given = tf.placeholder(tf.float32) if weights == "unknown" else weights
        losses.compute_weighted_loss(tf.ones([2, 3]), given)


def test_refused() -> None:
    with tf.Graph().as_default():
        p = tf.ones([2, 3])
        with pytest.raises(ValueError, match="ndims cannot be None"):
            losses.compute_weighted_loss(tf.placeholder(tf.float32))
        with pytest.raises(ValueError, match="labels must be given"):
            losses.mean_squared_error(p)
        with pytest.raises(ValueError, match=r"(?i)incompatible"):
            losses.absolute_difference(p, tf.ones([2]))
        with pytest.raises(ValueError, match="axis"):
            losses.cosine_distance(p, p)
        with pytest.raises(ValueError, match="rank 1"):
            losses.mean_pairwise_squared_error(p, p, tf.ones([2, 3]))
        with pytest.raises(ValueError, match="at least one"):
            losses.get_total_loss()
