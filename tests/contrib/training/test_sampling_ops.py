"""Random choices of examples: how often each class comes; errors are TensorFlow 1.15.5's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.contrib import training
from flowstone.contrib.training.sampling_ops import _calculate_acceptance_probabilities
from flowstone.contrib.training.tuner import Tuner


def batches(fetch: Any, count: int) -> list[Any]:
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            values = [session.run(fetch) for _ in range(count)]
        except tf.errors.OutOfRangeError:  # a thread failed, whose error the coordinator has
            values = []
        coordinator.request_stop()
        coordinator.join(threads)
    return values


@pytest.mark.parametrize("many", [False, True])
def test_examples_are_accepted_by_their_probability(many: bool) -> None:
    tf.set_random_seed(1)
    shape = [6] if many else []
    value = tf.cast(tf.random_uniform(shape, 0, 2, tf.int32), tf.float32)
    (batch,) = training.rejection_sample(
        [value], lambda example: 0.2 + 0.6 * example[0], 50, enqueue_many=many, runtime_checks=True
    )
    assert batch.shape.as_list() == [50]
    assert np.mean(batches(batch, 20)) == pytest.approx(0.8, abs=0.06)


def test_a_probability_out_of_range() -> None:
    (batch,) = training.rejection_sample([tf.zeros([2])], lambda _: tf.placeholder_with_default(1.5, []), 2,
                                         runtime_checks=True)  # fmt: skip
    with pytest.raises(tf.errors.InvalidArgumentError):
        batches(batch, 1)


@pytest.mark.parametrize("init_probs", [None, [0.8, 0.2]])
@pytest.mark.parametrize("many", [False, True])
def test_classes_come_at_their_rates(init_probs: Any, many: bool) -> None:
    tf.set_random_seed(1)
    label = tf.cast(tf.random_uniform([8] if many else []) < 0.2, tf.int32)
    (data,), labels = training.stratified_sample(
        [label * 10], label, [0.5, 0.5], 50, init_probs=init_probs, enqueue_many=many
    )
    assert data.op.name.startswith("stratified_sample/batch_1")
    found = batches([data, labels], 30)
    assert all((data == labels * 10).all() for data, labels in found)
    assert np.mean([labels for _, labels in found[5:]]) == pytest.approx(0.5, abs=0.06)
    assert len(tf.global_variables()) == (1 if init_probs is None else 0)


def test_probabilities_of_acceptance() -> None:
    """The values that TensorFlow 1.15.5 gives."""
    with tf.Session() as session:
        some = session.run(_calculate_acceptance_probabilities(tf.constant([0.5, 0.3, 0.2]), [0.1, 0.3, 0.6]))
        none = session.run(_calculate_acceptance_probabilities(tf.constant([0.5, 0.5, 0.0]), [0.5, 0.5, 0.0]))
        lacking = _calculate_acceptance_probabilities(tf.constant([0.5, 0.5, 0.0]), [0.4, 0.4, 0.2])
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(lacking)
    np.testing.assert_allclose(some, [0.06666667, 0.33333334, 1.0], rtol=1e-6)
    np.testing.assert_allclose(none, [1, 1, 0])


@pytest.mark.parametrize(
    ("labels", "target", "init"),
    [([1], [0.5, 0.5], None), (1, [0.5, 0.5], [0.2, 0.3, 0.5]), (1, [[0.5, 0.5]], None)],
)
def test_shapes_that_do_not_fit(labels: Any, target: Any, init: Any) -> None:
    with pytest.raises(ValueError, match=r"rank|length|Rank"):
        training.stratified_sample([tf.zeros([2])], tf.constant(labels), target, 4, init_probs=init)
    with pytest.raises(ValueError, match="Cannot infer Tensor's rank"):
        training.rejection_sample([tf.placeholder(tf.float32)], lambda _: 0.5, 4)


def test_negative_probabilities() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        _, labels = training.stratified_sample([tf.zeros([2])], tf.constant(1), [-0.5, 1.5], 4, [0.5, 0.5])
        batches(labels, 1)


def test_a_tuner_is_an_interface() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Tuner()  # type: ignore[abstract]
