"""Which value a read sees that nothing orders with a change: the one before, whatever was created first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.rewriting.simplification.partial_execution import prune

KINDS = pytest.mark.parametrize("is_resource", [False, True], ids=["reference", "resource"])


def step(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


def test_the_graph_has_reads_first() -> None:
    w = tf.Variable(1.0, use_resource=True)
    with tf.control_dependencies([w.assign_add(2.0).op]):
        after = w * 3.0
    before = w.read_value()
    assert str(prune([after, before], [], [])).splitlines() == [
        "%0 = VarHandleOp() shape=() shared_name='Variable' : resource[]  # Variable",
        "%1 = Const() value=2. : float32[]  # Const",
        "%2 = ReadVariableOp(%0) : float32[]  # Read/ReadVariableOp",
        "%3 = AssignAddVariableOp(%0, %1)  # AssignAddVariableOp",
        "%4 = ReadVariableOp(%0, ^%3) : float32[]  # ReadVariableOp_1",
        "%5 = Const(^%3) value=3. : float32[]  # mul/y",
        "%6 = Mul(%4, %5) : float32[]  # mul",
        "%7 = Identity(%2) : float32[]  # Identity",
        "return %6, %7",
    ]


@KINDS
def test_a_loss_behind_minimize_is_of_the_weights_before(is_resource: bool) -> None:
    x = tf.constant([[1.0, 2.0]])
    layers = [tf.Variable(tf.fill(size, 0.5), use_resource=is_resource) for size in ([2, 3], [3, 1])]

    def loss() -> tf.Tensor:
        y = x
        for each in layers:
            y = tf.tanh(tf.matmul(y, each))
        return tf.reduce_mean(tf.square(y - 3.0))

    first = loss()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(first)
    second = loss()
    _, one, other = step([train, first, second])
    assert one == other


@KINDS
def test_a_rate_by_a_step_that_is_counted_before_it(is_resource: bool) -> None:
    count = tf.Variable(0, use_resource=is_resource)
    counted = count.assign_add(1)
    rate = tf.train.exponential_decay(1.0, count, 1, 0.5)
    assert step([rate, counted.op])[0] == 1.0


def test_a_reader_that_is_ready_later_stays_behind() -> None:
    """Moving averages of two towers, of which the second one is deeper."""
    x = tf.constant(8.0)
    mean = tf.Variable(0.0)
    first = mean.assign_sub((mean - x) * 0.5)
    second = mean.assign_sub((mean - tf.tanh(tf.tanh(x)) * 0.0 - tf.negative(x) * -1.0) * 0.5)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([first.op, second.op])
        assert session.run(mean) == 6.0


def test_first_values_may_be_of_other_variables() -> None:
    first = tf.Variable(3.0)
    second = tf.Variable(first * 2.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(second) == 6.0


@KINDS
def test_what_an_edge_orders_stays(is_resource: bool) -> None:
    w = tf.Variable(1.0, use_resource=is_resource)
    with tf.control_dependencies([w.assign_add(2.0)]):
        by_control = w * 10.0 if not is_resource else w.read_value() * 10.0
    assert step(by_control) == 30.0
    v = tf.Variable(1.0, use_resource=is_resource)
    changed = v.assign_add(2.0) * 1.0  # its result
    assert step([changed, v * 1.0]) == [3.0, 1.0]


@KINDS
def test_changes_keep_their_order(is_resource: bool) -> None:
    w = tf.Variable(1.0, use_resource=is_resource)
    first, second = w.assign_add(1.0), w.assign(10.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([w + 0.0, first.op, second.op])[0] == 1.0
        assert session.run(w) == 10.0


def test_readers_inside_of_loops_and_behind_them() -> None:
    w = tf.Variable(1.0, use_resource=True)
    changed = w.assign_add(1.0)
    n = tf.while_loop(lambda i: i < 4.0, lambda i: i + 1.0, [0.0])
    behind = n * w
    assert step([behind, changed.op])[0] == 4.0
    inside = tf.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, s + w), [0, 0.0])[1]
    assert step([inside, changed.op])[0] in (3.0, 6.0)  # of one value


@KINDS
def test_a_reader_that_waits_for_what_the_change_lets_go(is_resource: bool) -> None:
    queue = tf.FIFOQueue(1, tf.float32)
    w = tf.Variable(1.0, use_resource=is_resource)
    with tf.control_dependencies([w.assign_add(1.0)]):
        put = queue.enqueue(5.0)
    found = step([queue.dequeue() * w, put])[0]
    assert found == (5.0 if is_resource else 10.0)  # a resource is read by a node that waits for nothing


def test_a_reader_that_waits_for_what_the_change_waits_for() -> None:
    queue = tf.FIFOQueue(1, tf.float32)
    w = tf.Variable(1.0, use_resource=True)
    taken = queue.dequeue()
    changed, product = w.assign_add(taken), taken * w
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), queue.enqueue(5.0)])
        assert session.run([product, changed.op])[0] == 5.0


def test_what_nothing_reads_later_keeps_the_order() -> None:
    x = tf.placeholder(tf.float32, [2])
    w = tf.Variable(np.ones(2, np.float32))
    changed = w.assign(w * x)
    nodes = prune([changed], [], [x]).nodes[1:]
    assert [node.origin.order for node in nodes] == sorted(node.origin.order for node in nodes)
