"""Accidental hits: graph text, and the same logits and gradients without the pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.lowering.passes import EVERY

RNG = np.random.default_rng(13)
EVERYTHING = [each.name for each in EVERY]
NAME = "mask_accidental_hits"


def masked(x: Any, true: Any, sampled: Any, num_true: int) -> Any:
    """As sampled losses spell it."""
    rows, places, weights = tf.nn.compute_accidental_hits(true, sampled, num_true)
    columns = [tf.reshape(rows, [-1, 1]), tf.reshape(tf.cast(places, tf.int32), [-1, 1])]
    return x + tf.sparse_to_dense(
        tf.concat(columns, 1), [4, 5], weights, default_value=0.0, validate_indices=False
    )


@pytest.mark.parametrize("num_true", [1, 3])
def test_logits_of_hits_are_the_least(monkeypatch, num_true) -> None:
    x = tf.placeholder(tf.float32, [4, 5])
    true, sampled = tf.placeholder(tf.int64, [4, num_true]), tf.placeholder(tf.int64, [5])
    y = masked(x, true, sampled, num_true)
    assert ops(text([y], [x, true, sampled], *EVERYTHING)) == ["_Arg"] * 3 + ["_MaskAccidentalHits"]
    classes = RNG.permutation(8)
    feed = {x: RNG.standard_normal([4, 5]), true: RNG.integers(0, 8, [4, num_true]), sampled: classes[:5]}
    assert f"{NAME}:" in agree(monkeypatch, [y, tf.gradients(y, x)[0]], feed, NAME, fires=1, tolerance=0)
    with tf.Session() as session:
        found = session.run(y, feed)
    expected = (feed[true][:, :, None] == feed[sampled]).any(1)
    assert ((found < -1e38) == expected).all() and expected.any()


def test_a_sampled_softmax_trains_the_same(monkeypatch) -> None:
    tf.set_random_seed(5)
    w, b = (tf.Variable(RNG.standard_normal(dims).astype("f")) for dims in ([30, 4], [30]))
    labels, inputs = tf.placeholder(tf.int64, [6, 2]), tf.placeholder(tf.float32, [6, 4])
    loss = tf.nn.sampled_softmax_loss(w, b, labels, inputs, 12, 30, num_true=2)
    gradients = [tf.convert_to_tensor(g) for g in tf.gradients(loss, [w, b, inputs])]
    feed = {labels: RNG.integers(0, 9, [6, 2]), inputs: RNG.standard_normal([6, 4])}
    setup = tf.global_variables_initializer()
    log = agree(monkeypatch, [loss, *gradients], feed, NAME, fires=1, setup=setup, tolerance=1e-6)
    assert f"{NAME}:" in log


def test_hits_that_others_use_are_listed() -> None:
    x = tf.placeholder(tf.float32, [4, 5])
    true, sampled = tf.placeholder(tf.int64, [4, 1]), tf.placeholder(tf.int64, [5])
    rows, places, weights = tf.nn.compute_accidental_hits(true, sampled, 1)
    swapped = tf.concat([tf.reshape(tf.cast(places, tf.int32), [-1, 1]), tf.reshape(rows, [-1, 1])], 1)
    dense = tf.sparse_to_dense(swapped, [4, 5], weights, default_value=0.0, validate_indices=False)
    assert "SparseToDense" in ops(text([x + dense], [x, true, sampled], *EVERYTHING))
    both = [masked(x, true, sampled, 1), tf.nn.compute_accidental_hits(true, sampled, 1)[2]]
    names = ops(text(both, [x, true, sampled], *EVERYTHING))
    assert "_MaskAccidentalHits" in names and "ComputeAccidentalHits" in names
