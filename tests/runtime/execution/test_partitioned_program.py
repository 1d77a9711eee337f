"""Steps over several devices: values, state, branches and loops across them; failures, deadlines, closing."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np
import pytest
import torch

import flowstone as tf
from stepping import own_threads

pytestmark = pytest.mark.usefixtures("graph")

CONFIG = tf.ConfigProto(device_count={"CPU": 3})
GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="copies to and from pinned memory need a GPU")


def cpu(index):
    return tf.device(f"/cpu:{index}")


def parts(session, fetches, feeds=()):
    """The devices that take part, by the plan's own text."""
    text = session.explain(fetches, list(feeds))
    return sorted({line.split(":")[-1] for line in text.splitlines() if line.startswith("# /job")})


# ---- values


def test_values_go_back_and_forth():
    x = tf.placeholder(tf.float32, [3])
    y = x
    for i in range(10):
        with cpu(i % 3):
            y = y * 2.0 + 1.0
    with tf.Session(config=CONFIG) as session:
        assert parts(session, y, [x]) == ["0", "1", "2"]
        np.testing.assert_array_equal(session.run(y, {x: [0, 1, 2]}), [1023, 2047, 3071])


def test_strings_integers_and_booleans_cross():
    with cpu(0):
        s, n, b = tf.placeholder(tf.string, [2]), tf.placeholder(tf.int64, []), tf.placeholder(tf.bool, [1])
        words, count, flag = tf.identity(s), n + 1, tf.logical_not(b)
    with cpu(1):
        joined, count, flag = tf.stack([words, s]), count * 2, tf.logical_or(flag, b)
    with tf.Session(config=CONFIG) as session:
        found = session.run([joined, count, flag], {s: ["a", "b"], n: 4, b: [False]})
    assert found[0].tolist() == [[b"a", b"b"]] * 2 and found[1] == 10 and found[2].tolist() == [True]


def test_a_sent_value_is_not_overwritten():
    """The sender may not use the buffer again, nor may the receiver spoil what the sender still reads."""
    x = tf.placeholder(tf.float32, [1000])
    with cpu(0):
        y = tf.exp(x)
        here = y * 2.0 + 1.0
    with cpu(1):
        there = tf.square(y) + 3.0
    with tf.Session(config=CONFIG) as session:
        for _ in range(20):
            value = np.random.randn(1000).astype(np.float32)
            a, b = session.run([here, there], {x: value})
            e = torch.exp(torch.from_numpy(value))
            np.testing.assert_allclose(a, e * 2 + 1, rtol=1e-6)
            np.testing.assert_allclose(b, e * e + 3, rtol=1e-6)


def test_a_sent_variable_is_the_value_at_the_time_of_sending():
    with cpu(0):
        v = tf.get_variable("v", [100], initializer=tf.zeros_initializer(), use_resource=True)
        before = v.read_value()
        with tf.control_dependencies([before]):
            update = v.assign_add(tf.ones([100]))
    with cpu(1), tf.control_dependencies([update]):
        there = tf.identity(before) + 0.5
    with tf.Session(config=CONFIG) as session:
        session.run(v.initializer)
        for i in range(3):
            np.testing.assert_array_equal(session.run(there), np.full(100, i + 0.5))


def test_a_fetch_and_a_feed_on_every_device():
    x = tf.placeholder(tf.float32, [2])
    results = []
    for i in range(3):
        with cpu(i):
            results.append(x + float(i))
    with tf.Session(config=CONFIG) as session:
        values = session.run([x, *results], {x: [1, 2]})
    assert [v.tolist() for v in values] == [[1, 2], [1, 2], [2, 3], [3, 4]]


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.by_aten
def test_nodes_are_fused_on_one_device_only(apart):
    x = tf.placeholder(tf.float32, [20, 30])
    with cpu(1):
        product = tf.matmul(x, tf.Variable(tf.ones([30, 40]), name="w"))
    with cpu(2 if apart else 1):
        y = tf.nn.relu(product + tf.Variable(tf.ones([40]), name="b"))
    with cpu(0):
        z = tf.reduce_sum(y)
    with tf.Session(config=CONFIG) as session:
        session.run(tf.global_variables_initializer())
        assert ("_FusedMatMul" in session.explain(z, [x])) is not apart
        assert session.run(z, {x: np.ones((20, 30))}) == 20 * 40 * 31


def test_sums_of_products_are_stacked_on_one_device_only():
    x = tf.placeholder(tf.float32, [50, 60])
    w = tf.placeholder(tf.float32, [60, 70])
    products = []
    for i in range(3):
        with cpu(i):
            products.append(tf.matmul(tf.square(x) if i else x, w, name=f"product{i}"))
    with cpu(0):
        total = tf.add_n(products)
    with tf.Session(config=CONFIG) as session:
        text = session.explain(total, [x, w])
        value = session.run(total, {x: np.ones((50, 60)), w: np.ones((60, 70))})
    for i in range(3):
        assert f"# product{i}\n" in text, "each product is where it was asked for"
    np.testing.assert_array_equal(value, np.full((50, 70), 180))


def test_dead_values_cross():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])

    def taken():
        with cpu(1):
            y = tf.square(x)
        with cpu(2):
            return y + 1.0

    y = tf.cond(p, taken, lambda: x - 1.0)
    with tf.Session(config=CONFIG) as session:
        assert [session.run(y, {p: value, x: 3}) for value in (True, False, True)] == [10, 2, 10]


def test_nested_loops_over_devices():
    def outer(i, total):
        def inner(j, t):
            with cpu(2):
                u = t + tf.cast(i, tf.float32)
            return j + 1, u * 1.5

        _, total = tf.while_loop(lambda j, t: j < i, inner, [0, total])
        with cpu(1):
            return i + 1, total + 1.0

    _, total = tf.while_loop(lambda i, t: i < 4, outer, [0, 1.0], parallel_iterations=4)
    expected = np.float32(1)
    for i in range(4):
        for _ in range(i):
            expected = (expected + i) * np.float32(1.5)
        expected += 1
    with tf.Session(config=CONFIG) as session:
        assert session.run(total, options=tf.RunOptions(timeout_in_ms=60_000)) == expected


def test_steps_from_many_threads_at_once():
    x = tf.placeholder(tf.float32, [50])
    with cpu(0):
        y = tf.square(x)
    with cpu(1):
        z = y + 1.0
    with cpu(2):
        total = tf.reduce_sum(z * y)
    wrong = []
    with tf.Session(config=CONFIG) as session:
        session.run(total, {x: np.zeros(50)})

        def client(seed):
            for i in range(30):
                value = np.full(50, (seed + i) % 5, np.float32)
                if session.run(total, {x: value}) != 50 * (value[0] ** 2 + 1) * value[0] ** 2:
                    wrong.append((seed, i))

        clients = [threading.Thread(target=client, args=(seed,)) for seed in range(8)]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
    assert not wrong


# ---- failures


def failing(value):
    with cpu(1):
        return tf.py_func(_raise, [value], tf.float32, stateful=True)


def _raise(value):
    raise ValueError(f"no use for {value}")


def test_the_first_failure_ends_all_parts_and_names_the_node():
    x = tf.placeholder(tf.int32, [3])
    with cpu(1):
        bad = tf.gather(tf.constant([1.0, 2.0]), x, name="bad")
    with cpu(2):
        y = bad + 1.0
    with cpu(0):
        z = y * 2.0
    with tf.Session(config=CONFIG) as session:
        for _ in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError, match="node bad"):
                session.run(z, {x: [0, 5, 1]})
            assert session.run(z, {x: [0, 1, 1]}).tolist() == [4, 6, 6], "the session stays usable"


def test_a_failure_under_a_blocked_dequeue_elsewhere():
    with cpu(0):
        queue = tf.FIFOQueue(1, [tf.float32], [[]])
        waiting = queue.dequeue()
    both = tf.group(waiting.op, failing(1.0).op)
    with (
        tf.Session(config=CONFIG) as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="no use for"),
    ):
        session.run(both)


def test_a_deadline_reaches_the_other_device():
    with cpu(1):
        waiting = tf.FIFOQueue(1, [tf.float32], [[]]).dequeue()
    with cpu(0):
        y = waiting + 1.0
    with tf.Session(config=CONFIG) as session, pytest.raises(tf.errors.DeadlineExceededError):
        session.run(y, options=tf.RunOptions(timeout_in_ms=50))


def test_closing_ends_steps_on_all_devices():
    with cpu(1):
        waiting = tf.FIFOQueue(1, [tf.float32], [[]]).dequeue()
    with cpu(0):
        y = waiting + 1.0
    session = tf.Session(config=CONFIG)
    caught = []

    def client():
        try:
            session.run(y)
        except tf.errors.OpError as error:
            caught.append(error)

    clients = [threading.Thread(target=client) for _ in range(5)]
    for thread in clients:
        thread.start()
    while len(session.steps) < 5:
        time.sleep(0.001)
    session.close()
    for thread in clients:
        thread.join(60)
    assert [type(error) for error in caught] == [tf.errors.CancelledError] * 5


def test_failing_steps_leave_nothing_behind():
    x = tf.placeholder(tf.int32, [2])
    with cpu(1):
        bad = tf.gather(tf.constant([1.0, 2.0]), x)
    with cpu(0):
        y = bad + 1.0
    with tf.Session(config=CONFIG) as session:

        def fail(times):
            for _ in range(times):
                with pytest.raises(tf.errors.InvalidArgumentError):
                    session.run(y, {x: [0, 9]})
            gc.collect()

        fail(20)
        threads, tensors = len(own_threads()), _tensors()
        fail(300)
        assert len(own_threads()) <= threads
        assert _tensors() <= tensors + 5


def _tensors():
    return sum(type(thing) is torch.Tensor for thing in gc.get_objects())


# ---- GPUs


@GPU
def test_values_cross_between_host_and_gpu():
    x = tf.placeholder(tf.float32, [512, 512])
    with tf.device("/cpu:0"):
        a = tf.exp(x)
    with tf.device("/gpu:0"):
        b = tf.square(a) + a
    with tf.device("/cpu:0"):
        c = b - a
    value = np.random.RandomState(0).randn(512, 512).astype(np.float32)
    with tf.Session() as session:
        for _ in range(10):
            found = session.run([b, c], {x: value})
    e = np.exp(value)
    np.testing.assert_allclose(found[0], e * e + e, rtol=1e-5)
    np.testing.assert_allclose(found[1], e * e, rtol=1e-4)


@GPU
def test_a_loop_over_host_and_gpu():
    x = tf.placeholder(tf.float32, [3])

    def body(i, y):
        with tf.device("/gpu:0"):
            z = tf.square(y)
        with tf.device("/cpu:0"):
            return i + 1, z * 0.5

    with tf.device("/cpu:0"):
        _, y = tf.while_loop(lambda i, y: i < 3, body, [0, x])
    with tf.Session() as session:
        found = session.run(y, {x: [1, 2, 3]}, options=tf.RunOptions(timeout_in_ms=60_000))
    expected = np.float32([1, 2, 3])
    for _ in range(3):
        expected = expected**2 * np.float32(0.5)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
