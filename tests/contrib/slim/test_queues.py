"""Threads of queue runners within a context."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.contrib.slim import queues


def test_threads_run_within_the_context() -> None:
    queue = tf.FIFOQueue(3, [tf.float32], [[]])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)])
    tf.train.add_queue_runner(runner)
    with tf.Session() as session:
        with queues.QueueRunners(session), pytest.raises(queues.NestedQueueRunnerError, match="nested"):
            assert session.run(queue.dequeue()) == 1.0
            with queues.QueueRunners(session):
                pytest.fail("it began")
        assert session.run(queue.is_closed())
