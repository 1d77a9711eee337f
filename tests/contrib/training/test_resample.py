"""Random repetition of examples: orders and means."""

from __future__ import annotations

import numpy as np

import flowstone as tf
from flowstone.contrib import training
from flowstone.contrib.training.resample import _repeat_range


def test_indices_are_repeated_by_their_counts() -> None:
    with tf.Session() as session:
        assert session.run(_repeat_range([2, 0, 1])).tolist() == [0, 0, 2]
        assert session.run(_repeat_range(np.zeros(3, np.int32))).tolist() == []


def test_examples_come_at_their_rates() -> None:
    rates = np.array([0.0, 1.0, 3.0], np.float32)
    numbers = np.tile(np.arange(3), 1000)
    chosen, same = training.resample_at_rate([numbers, numbers * 2], np.tile(rates, 1000), seed=3)
    with tf.Session() as session:
        first, second = session.run([chosen, same])
    np.testing.assert_array_equal(second, first * 2)
    counts = np.bincount(first, minlength=3) / 1000
    assert counts[0] == 0
    np.testing.assert_allclose(counts[1:], rates[1:], rtol=0.1)


def test_examples_come_in_proportion_to_their_weights() -> None:
    numbers, weights = np.tile(np.arange(2), 1000), np.tile(np.array([1, 3], np.float32), 1000)
    (chosen,), rates = training.weighted_resample([numbers], weights, 0.5, seed=3)
    names = [variable.op.name for variable in tf.local_variables()]
    assert names == ["estimate_mean/estimated_mean"]
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        examples, drawn_at = session.run([chosen, rates])
    counts = np.bincount(examples, minlength=2) / 1000
    np.testing.assert_allclose(counts, [0.25, 0.75], rtol=0.2)
    np.testing.assert_allclose(drawn_at, np.where(examples, 0.75, 0.25), rtol=1e-4)
