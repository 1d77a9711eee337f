"""Steps that are several functions: on two devices, or in parts. Each program was found by
`tests/rewriting/compare_state_programs.py`, and made small."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags

MATRIX = np.arange(16.0).reshape(4, 4) / 10


@pytest.fixture(autouse=True)
def checked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(flags, "CHECK", 1)
    with tf.Graph().as_default():
        yield


def variable(name: str, value: Any, resource: bool = True) -> Any:
    return tf.get_variable(name, initializer=tf.constant(value), use_resource=resource)


def session() -> Any:
    made = tf.Session(config=tf.ConfigProto(device_count={"CPU": 2}, operation_timeout_in_ms=20_000))
    made.run(tf.global_variables_initializer())
    return made


def on_two_devices_and_on_one(build: Callable[[str], Any]) -> tuple[Any, Any]:
    """What the program fetches if its device is the second, and the first."""
    found = []
    for device in ("/cpu:1", "/cpu:0"):
        with tf.Graph().as_default():
            fetches = build(device)
            with session() as running:
                found.append(running.run(fetches))
    return found[0], found[1]


def recurrence(x: Any, w: Any) -> Any:
    """Three products by `w`, as a loop."""
    return tf.while_loop(
        lambda t, h: t < 3, lambda t, h: (t + 1, tf.tanh(tf.matmul(h, w))), [0, x], parallel_iterations=1
    )[1]


def test_what_a_loop_keeps_of_a_variable_is_what_it_read() -> None:
    def build(device: str) -> Any:
        w, x = variable("w", MATRIX), variable("x", MATRIX.T)
        with tf.device(device):
            y = recurrence(x.read_value(), w)
        with tf.device("/cpu:0"), tf.control_dependencies([y]):
            change = w.assign_sub(MATRIX + 5)
        with tf.control_dependencies([change]):
            start = tf.ones([4, 4], tf.float64) * 1
        return tf.gradients(y, w, [start])[0]

    there, here = on_two_devices_and_on_one(build)
    np.testing.assert_allclose(there, here, rtol=1e-12)


def test_a_body_does_not_run_once_more() -> None:
    def build(device: str) -> Any:
        v, w, x = variable("v", 0.0), variable("w", MATRIX), variable("x", MATRIX.T)

        def body(i: Any, t: Any) -> Any:
            with tf.control_dependencies([tf.identity(t)]):
                counted = v.assign_add(1.0)
            with tf.control_dependencies([counted]):
                return i + 1, t * 0.5

        looped = tf.while_loop(lambda i, t: i < 1, body, [0, x.read_value()], parallel_iterations=1)[1]
        with tf.device(device):
            y = recurrence(x.read_value(), w)
        with tf.control_dependencies([w.assign_sub(looped)]):
            gradient = tf.identity(tf.gradients(y, w)[0])
        with tf.control_dependencies([gradient]):
            return v.read_value()

    there, here = on_two_devices_and_on_one(build)
    assert there == here == 1.0


def test_a_value_of_the_other_branch_is_not_waited_for() -> None:
    def build(device: str) -> Any:
        v, u = variable("v", 1.0), variable("u", 2.0)
        with tf.device(device):
            y = tf.cond(v > 0, lambda: v * u, lambda: u - v)
            with tf.control_dependencies([y]):
                change = v.assign_add(u.read_value())
        with tf.control_dependencies([change]):
            return y, v.read_value()

    there, here = on_two_devices_and_on_one(build)
    assert there == here == (2.0, 3.0)


def test_values_of_one_name_are_sent_apart() -> None:
    def build(device: str) -> Any:
        v, p = variable("v", MATRIX), variable("p", 1.0)
        x = tf.placeholder_with_default(tf.constant(MATRIX), [4, 4])

        def taken() -> Any:
            transposed = tf.nn.relu(tf.transpose(x))
            with tf.control_dependencies([v.assign_add(MATRIX)]):
                product = tf.multiply(x, transposed)
            return tf.add(transposed, tf.transpose(product))

        with tf.device(device):
            return tf.cond(p > 0, taken, lambda: tf.square(v.read_value()))

    there, here = on_two_devices_and_on_one(build)
    np.testing.assert_array_equal(there, here)


def test_a_value_does_not_become_a_reference_where_nothing_orders_its_consumers() -> None:
    v = variable("v", MATRIX, resource=False)
    queue = tf.FIFOQueue(10, [tf.float64], [[]])
    enqueue = queue.enqueue(1.0)
    with tf.control_dependencies([enqueue]):
        arrived = queue.dequeue()
    before = v / 1.0
    with tf.control_dependencies([arrived]):
        late = before + 0.0
    with tf.control_dependencies([before]):
        change = tf.assign_add(v, tf.transpose(v))
    with tf.control_dependencies([change]):
        left = tf.assign_sub(v, late)
    with session() as running:
        np.testing.assert_allclose(running.run(left), MATRIX.T)


def test_an_early_product_does_not_wait_for_a_late_one(set_profile: Any) -> None:
    set_profile(joined_products=2)
    w = variable("w", MATRIX)
    x = tf.placeholder(tf.float64, [4, 4])
    early, late = tf.matmul(w, w), tf.matmul(x, w)
    with session() as running:
        handle = running.partial_run_setup([early, late], [x])
        np.testing.assert_allclose(running.partial_run(handle, early), MATRIX @ MATRIX)
        np.testing.assert_allclose(running.partial_run(handle, late, {x: 2 * MATRIX}), 2 * MATRIX @ MATRIX)


def test_an_early_update_does_not_wait_for_a_late_one(set_profile: Any) -> None:
    set_profile(grouped_updates=2)
    u, v = variable("u", np.ones(4)), variable("v", np.ones(4))
    x = tf.placeholder(tf.float64, [4])
    optimizer = tf.train.MomentumOptimizer(0.5, 0.5)
    with tf.control_dependencies([optimizer.apply_gradients([(tf.ones([4], tf.float64), u)])]):
        early = u.read_value()
    with tf.control_dependencies([optimizer.apply_gradients([(x, v)])]):
        late = v.read_value()
    with session() as running:
        handle = running.partial_run_setup([early, late], [x])
        assert running.partial_run(handle, early).tolist() == [0.5] * 4
        assert running.partial_run(handle, late, {x: np.full(4, 2.0)}).tolist() == [0.0] * 4


def test_a_filter_is_read_where_its_convolution_was() -> None:
    """In parts, edges alone hold what is made of the filter behind the assignment."""
    images, filters = np.ones((2, 8, 8, 32), np.float32), np.ones((3, 3, 32, 32), np.float32)
    v, x = variable("v", images), tf.placeholder(tf.float32, filters.shape)
    w = variable("w", 0 * filters, resource=False)
    with tf.control_dependencies([tf.assign(w, x)]):
        y = tf.nn.conv2d(v, w, [1, 1, 1, 1], "VALID")
    for _ in range(5):
        with session() as running:
            handle = running.partial_run_setup([y], [x])
            assert running.partial_run(handle, y, {x: filters})[0, 0, 0, 0] == 288
