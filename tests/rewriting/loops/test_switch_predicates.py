"""Conditionals whose predicates come from outside a loop, are its variables, or come out of one."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf

A = np.float32([1, 2, 3])


def from_outside(x, p):
    def body(i, y):
        return i + 1, tf.cond(p, lambda: y * x, lambda: y + x)

    return tf.while_loop(lambda i, y: i < 2, body, [0, x])[1]


def loop_variable(x, p):
    def body(i, y, q):
        return i + 1, tf.cond(q, lambda: y * x, lambda: y + x), tf.logical_not(q)

    return tf.while_loop(lambda i, y, q: i < 3, body, [0, x, p])[1]


def from_outside_two_loops(x, p):
    def inner(j, y):
        return j + 1, tf.cond(p, lambda: y + x, lambda: y - x)

    def outer(i, y):
        return i + 1, tf.while_loop(lambda j, y: j < 2, inner, [0, y])[1]

    return tf.while_loop(lambda i, y: i < 2, outer, [0, x])[1]


def from_a_loop(x, p):
    q = tf.while_loop(lambda i, q: i < 3, lambda i, q: (i + 1, tf.logical_not(q)), [0, p])[1]
    return tf.cond(q, lambda: x + 1.0, lambda: x - 1.0)


def over_devices(x, p):
    def body(i, y):
        with tf.device("/cpu:1"):
            z = tf.square(y)
        with tf.device("/cpu:2"):
            return i + 1, tf.cond(p, lambda: z * x, lambda: z + x)

    return tf.while_loop(lambda i, y: i < 2, body, [0, x])[1]


def gradients_in_a_loop(x, p):
    """A value is stacked up only in iterations that take its branch; the loop goes on in the others too."""
    y = over_devices(x, p)
    return tf.concat([y, *tf.gradients(y, x)], 0)


def concat(*parts):
    return np.concatenate(parts)


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (from_outside, (A**3, 3 * A)),
        (loop_variable, ((A * A + A) * A, 2 * A * A + A)),
        (from_outside_two_loops, (5 * A, -3 * A)),
        (from_a_loop, (A - 1, A + 1)),
        (over_devices, (A**7, (A**2 + A) ** 2 + A)),
        (
            gradients_in_a_loop,
            (concat(A**7, 7 * A**6), concat((A**2 + A) ** 2 + A, 2 * (A**2 + A) * (2 * A + 1) + 1)),
        ),
    ],
)
def test_predicates_and_loops(build, expected, devices, taken):
    with tf.Graph().as_default():
        x, p = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.bool, [])
        y = build(x, p)
        config = tf.ConfigProto(
            device_count={"CPU": devices}, allow_soft_placement=True, operation_timeout_in_ms=60_000
        )
        with tf.Session(config=config) as session:
            found = session.run(y, {x: A, p: taken})
    np.testing.assert_array_equal(found, expected[0 if taken else 1])


@pytest.mark.parametrize("optimized", [True, False])
def test_a_reference_that_changes_is_read_once(monkeypatch, optimized) -> None:
    """Both branches, and both Switches of one branch, see the value that the control inputs ask for."""
    from flowstone.runtime.plans import plan

    if not optimized:
        monkeypatch.setattr(plan, "run_passes", lambda subgraph, *_: subgraph)
    n, p = tf.Variable(1.0, name="n"), tf.Variable(True, name="p")
    with tf.control_dependencies([tf.assign(n, 5.0)]):
        start = tf.identity(n)

    def taken():
        with tf.control_dependencies([tf.assign(p, False)]):
            return start * tf.identity(n)

    y = tf.cond(p, taken, lambda: start - n)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(y) == 25
        assert not session.run(p)
        assert session.run(y) == 0
