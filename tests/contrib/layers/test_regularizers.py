"""Losses of weights, their names and what is refused. The answers are 1.15.5's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import flowstone as tf

layers = tf.contrib.layers


@pytest.fixture(autouse=True)
def weights() -> Iterator[Any]:
    with tf.Graph().as_default():
        yield tf.constant([1.0, -2.0, 3.0], name="w")


@pytest.mark.parametrize(
    ("regularizer", "name", "loss"),
    [
        (layers.l1_regularizer(0.1), "l1_regularizer:0", 0.6),
        (layers.l2_regularizer(0.1), "l2_regularizer:0", 0.7),
        (layers.l2_regularizer(0.1, scope="abc"), "abc:0", 0.7),
        (layers.l1_l2_regularizer(0.1, 0.2), "l1_l2_regularizer:0", 2.0),
        (layers.l1_l2_regularizer(0.1, 0.0), "l1_l2_regularizer:0", 0.6),
        (
            layers.sum_regularizer([layers.l1_regularizer(0.1), None, layers.l2_regularizer(0.2)]),
            "sum_regularizer:0",
            2.0,
        ),
    ],
)
def test_losses(weights: Any, regularizer: Any, name: str, loss: float) -> None:
    found = regularizer(weights)
    assert found.name == name
    with tf.Session() as session:
        assert session.run(found) == pytest.approx(loss)


def test_no_loss(weights: Any) -> None:
    assert layers.l1_regularizer(0.0)(weights) is None
    assert layers.l2_regularizer(0.0)(weights) is None
    assert layers.sum_regularizer([None]) is None


@pytest.mark.parametrize("make", [layers.l1_regularizer, layers.l2_regularizer, layers.l1_l2_regularizer])
def test_scales_refused(make: Any) -> None:
    with pytest.raises(ValueError, match="cannot be an integer: 1"):
        make(1)
    with pytest.raises(ValueError, match="less than 0 on a regularizer: -2"):
        make(-2.0)


def test_applied_to_several(weights: Any) -> None:
    total = layers.apply_regularization(layers.l1_regularizer(0.1), [weights, weights])
    assert total.name == "get_regularization_penalty:0"
    assert tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES) == [total]
    with tf.Session() as session:
        assert session.run(total) == pytest.approx(1.2)
    with pytest.raises(ValueError, match="No weights"):
        layers.apply_regularization(layers.l1_regularizer(0.1))
    with pytest.raises(ValueError, match="rank 1"):
        layers.apply_regularization(lambda w: w, [weights])
