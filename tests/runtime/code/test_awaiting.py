"""One asynchronous kernel in a segment: it comes last, waits on the step's thread, and ends with the step."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.client.repetition import repeat

pytestmark = pytest.mark.usefixtures("graph")


def until(condition: Any) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def in_thread(function: Any) -> tuple[threading.Thread, list[Any]]:
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(function())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


def test_a_step_with_one_waiting_kernel_is_one_function() -> None:
    q = tf.FIFOQueue(3, [tf.float32, tf.int32], [[2], []])
    x, n = q.dequeue()
    total = tf.reduce_sum(x) + tf.cast(n, tf.float32)
    with tf.Session() as s:
        s.run(q.enqueue([[1.0, 2.0], 3]))
        assert s.run(total) == 6
        text = s.explain(total)
        assert "awaited(" in text and text.count("def segment") == 1
        two = s.explain([total, q.enqueue([[0.0, 0.0], 0])])
        assert "awaited(" not in two  # either may wait for the other


def test_what_does_not_depend_on_it_runs_before_it_waits() -> None:
    q = tf.FIFOQueue(3, [tf.float32], [[]])
    count = tf.Variable(0, name="count")
    add = tf.assign_add(count, 1)
    item = q.dequeue()
    after = item * tf.cast(add, tf.float32)
    with tf.Session() as s:
        s.run(count.initializer)
        thread, results = in_thread(lambda: s.run([after, item, add.op]))
        until(lambda: s.run(count) == 1)
        assert not results
        s.run(q.enqueue(5.0))
        thread.join(20)
        assert results == [[5.0, 5.0, None]]


def test_time_limits_closing_and_failures_of_the_kernel() -> None:
    q = tf.FIFOQueue(3, [tf.float32], [[]])
    item = q.dequeue(name="item") + 1.0
    s = tf.Session()
    with pytest.raises(tf.errors.DeadlineExceededError):
        s.run(item, options=tf.RunOptions(timeout_in_ms=30))
    thread, results = in_thread(lambda: s.run(item))
    until(lambda: any(step._callbacks for step in s.steps))
    s.close()
    thread.join(20)
    assert isinstance(results[0], tf.errors.CancelledError)
    with tf.Session() as s:
        s.run(q.close())
        with pytest.raises(tf.errors.OutOfRangeError, match="item"):
            s.run(item)


@pytest.mark.parametrize("make", [tf.FIFOQueue, lambda *a: tf.RandomShuffleQueue(a[0], 0, *a[1:])])
def test_what_was_fed_or_is_state_is_copied(make: Any) -> None:
    q = make(9, [tf.float32], [[2]])
    x = tf.placeholder(tf.float32, [2])
    v = tf.Variable([1.0, 1.0])
    with tf.Session() as s:
        s.run(v.initializer)
        fed = np.array([3, 4], "f")
        s.run(q.enqueue(x), {x: fed})
        fed[:] = 0
        s.run(q.enqueue(v))
        s.run(v.assign([7.0, 7.0]))
        batch = s.run(q.dequeue_many(2))
        assert sorted(batch.tolist()) == [[1, 1], [3, 4]]


def test_nobody_overwrites_what_a_queue_hands_out() -> None:
    q = tf.FIFOQueue(9, [tf.float32], [[2]])
    kept = tf.constant([[-1.0, 2.0], [3.0, -4.0]])
    first = tf.nn.relu(q.dequeue_many(2))
    with tf.Session() as s:
        for _ in range(2):
            s.run(q.enqueue_many([kept]))
            assert s.run(first).tolist() == [[0, 2], [3, 0]]
        assert s.run(kept).tolist() == [[-1, 2], [3, -4]]


# ---- repetition


def test_repeated_steps_end_when_told_and_with_the_session() -> None:
    count = tf.Variable(0)
    add = tf.assign_add(count, 1).op
    s = tf.Session()
    s.run(count.initializer)
    repeat(s, add, lambda: s.run(count) >= 50)
    assert s.run(count) == 50
    thread, results = in_thread(lambda: repeat(s, add, lambda: False))
    until(lambda: s.run(count) > 60)
    s.close()
    thread.join(20)
    assert isinstance(results[0], tf.errors.CancelledError)


def test_threads_that_wait_let_others_have_their_turn() -> None:
    """Each of three threads needs what the one before it makes; all take turns."""
    queues = [tf.FIFOQueue(2, [tf.int32], [[]]) for _ in range(3)]
    moves = [b.enqueue(a.dequeue() + 1) for a, b in itertools.pairwise(queues)]
    number = tf.Variable(0)
    source = queues[0].enqueue(tf.assign_add(number, 10))
    last = queues[-1].dequeue()
    with tf.Session() as s:
        s.run(number.initializer)
        stop = threading.Event()
        threads = [in_thread(lambda op=op: repeat(s, op, stop.is_set)) for op in [source, *moves]]
        assert [s.run(last) for _ in range(300)] == [10 * (i + 1) + 2 for i in range(300)]
        stop.set()
        for queue in queues:
            s.run(queue.close(cancel_pending_enqueues=True))
        for thread, _ in threads:
            thread.join(20)
            assert not thread.is_alive()


def test_an_error_of_a_repeated_step_names_the_node() -> None:
    x = tf.Variable([1.0, 2.0])
    bad = tf.check_numerics(tf.log(x - 1.0), "bad", name="checked").op
    with tf.Session() as s:
        s.run(x.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match="checked"):
            repeat(s, bad, lambda: False)
        assert not s.steps.turns.locked()
