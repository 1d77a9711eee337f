"""Queues filled from functions of the program."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.contrib import training


def test_functions_feed_until_one_ends() -> None:
    queue, value = tf.FIFOQueue(1, [tf.float32], [[]]), tf.placeholder(tf.float32, [])
    values = iter([1.0, 2.0, 3.0])
    runner = training.FeedingQueueRunner(
        queue, [queue.enqueue(value)], feed_fns=[lambda: {value: next(values)}]
    )
    item = queue.dequeue()
    with tf.Session() as session:
        coordinator = tf.train.Coordinator()
        threads = runner.create_threads(session, coordinator, daemon=True, start=True)
        assert runner.create_threads(session, coordinator) == []
        assert [session.run(item) for _ in range(3)] == [1.0, 2.0, 3.0]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(item)
        coordinator.request_stop()
        coordinator.join(threads)


def test_an_error_of_a_function_reaches_the_coordinator() -> None:
    queue, value = tf.FIFOQueue(10, [tf.float32], [[]]), tf.placeholder(tf.float32, [])

    def fail() -> None:
        raise ArithmeticError("no more")

    runner = training.FeedingQueueRunner(queue, [queue.enqueue(value)], feed_fns=[fail])
    with tf.Session() as session:
        coordinator = tf.train.Coordinator()
        threads = runner.create_threads(session, coordinator, daemon=True, start=True)
        with pytest.raises(ArithmeticError, match="no more"):
            coordinator.join(threads)


def test_as_many_functions_as_operations() -> None:
    queue = tf.FIFOQueue(10, [tf.float32], [[]])
    with pytest.raises(ValueError, match="same length"):
        training.FeedingQueueRunner(queue, [queue.enqueue(1.0)], feed_fns=[])


def test_functions_have_no_message() -> None:
    queue = tf.FIFOQueue(10, [tf.float32], [[]])
    with pytest.raises(NotImplementedError, match="QueueRunner"):
        training.FeedingQueueRunner(queue, [queue.enqueue(1.0)]).to_proto()
