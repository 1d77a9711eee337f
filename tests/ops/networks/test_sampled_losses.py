"""Sampled losses: TensorFlow's values and gradients, node names, and how they relate to the full softmax."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.golden.make_sampling_goldens import CASES, PATH, evaluate

import flowstone as tf

GOLDEN = json.loads(PATH.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES)
def test_losses_and_gradients_are_tensorflows(case: str) -> None:
    found, expected = evaluate(tf, case), GOLDEN[case]
    assert found["sparse"] == expected["sparse"]
    np.testing.assert_allclose(found["loss"], expected["loss"], rtol=1e-5)
    for mine, theirs in zip(found["gradients"], expected["gradients"], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_all_candidates_make_the_full_softmax() -> None:
    """Where every class is a candidate once and hits are removed, the sampled loss is the exact one."""
    random = np.random.RandomState(1)
    weights, biases, inputs = random.randn(6, 3), random.randn(6), random.randn(4, 3)
    labels = np.int64([[0], [5], [2], [2]])
    with tf.Graph().as_default(), tf.Session() as session:
        w, b, x = (tf.constant(value, tf.float32) for value in (weights, biases, inputs))
        every = tf.nn.all_candidate_sampler(labels, 1, 6, True)
        sampled = tf.nn.sampled_softmax_loss(w, b, labels, x, 6, 6, sampled_values=every)
        full = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels[:, 0], logits=tf.matmul(x, w, transpose_b=True) + b
        )
        found, expected = session.run([sampled, full])
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("loss", ["nce_loss", "sampled_softmax_loss"])
def test_labels_of_int32_and_batches_of_any_size(loss: str) -> None:
    """Shapes that only the step knows; the default sampler; the loss has a row an example."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        labels, inputs = tf.placeholder(tf.int32, [None, 1]), tf.placeholder(tf.float32, [None, 3])
        w, b = tf.Variable(tf.random_normal([50, 3])), tf.Variable(tf.zeros([50]))
        losses = getattr(tf.nn, loss)(w, b, labels, inputs, 8, 50, remove_accidental_hits=True)
        session.run(tf.global_variables_initializer())
        for size in (1, 5):
            found = session.run(losses, {labels: np.full([size, 1], 3), inputs: np.ones([size, 3])})
            assert found.shape == (size,)
            assert np.isfinite(found).all() and (found > 0).all()


def test_training_by_noise_contrast_finds_the_classes() -> None:
    """Each of twenty inputs has its class; after training the highest logit is the right one."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(3)
        x, labels = tf.constant(np.eye(20, dtype=np.float32)), np.arange(20).reshape(20, 1)
        w, b = tf.Variable(tf.zeros([20, 20])), tf.Variable(tf.zeros([20]))
        loss = tf.reduce_mean(tf.nn.nce_loss(w, b, labels, x, num_sampled=5, num_classes=20))
        train = tf.train.AdagradOptimizer(1.0).minimize(loss)
        right = tf.argmax(tf.matmul(x, w, transpose_b=True) + b, 1)
        session.run(tf.global_variables_initializer())
        for _ in range(100):
            session.run(train)
        assert session.run(right).tolist() == list(range(20))


def test_partitioned_variables_are_looked_up_by_parts() -> None:
    """The loss of a partitioned variable is that of the whole table, and its parts get sparse gradients."""
    table = np.random.RandomState(2).randn(10, 3).astype(np.float32)
    sampled = (np.int64([9, 4]), np.float32([[0.5], [0.3]]), np.float32([0.5, 0.2]))
    with tf.Graph().as_default(), tf.Session() as session:
        parts = tf.get_variable("w", initializer=tf.constant(table), partitioner=tf.fixed_size_partitioner(3))
        losses = [
            tf.nn.nce_loss(
                w, tf.zeros([10]), [[1], [8]], tf.ones([2, 3]), 2, 10, 1, sampled, partition_strategy="div"
            )
            for w in (parts, tf.constant(table))
        ]
        gradients = tf.gradients(losses[0], list(parts))
        session.run(tf.global_variables_initializer())
        by_parts, whole = session.run(losses)
    np.testing.assert_allclose(by_parts, whole, rtol=1e-6)
    assert [type(gradient) for gradient in gradients] == [tf.IndexedSlices] * 3


def test_gradients_touch_only_looked_up_rows() -> None:
    """A step of training leaves the rows of classes that were not looked at as they were."""
    with tf.Graph().as_default(), tf.Session() as session:
        w, b = tf.Variable(tf.ones([100, 2])), tf.Variable(tf.zeros([100]))
        sampled = (np.int64([4, 9]), np.float32([[0.5]]), np.float32([0.5, 0.5]))
        loss = tf.nn.nce_loss(w, b, [[7]], tf.ones([1, 2]), 2, 100, sampled_values=sampled)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        session.run(train)
        changed = np.flatnonzero((session.run(w) != 1).any(1))
    assert changed.tolist() == [4, 7, 9]
