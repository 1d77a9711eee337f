"""Control edges that order nothing: graph text before and after, and what must go on waiting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def edges(lines: list[str]) -> list[str]:
    return [line for line in lines if "^" in line]


def test_gates_of_pure_gradients_go() -> None:
    x = tf.placeholder(tf.float32, [4, 3])
    a, b = tf.exp(x), tf.sin(x)
    gated = tf.tuple([a, b])
    y = tf.square(gated[0]) * gated[1]
    names = ("apply_identities", "remove_unneeded")
    assert edges(text([y], [x], *names))
    assert not edges(text([y], [x], *names, "drop_waits"))


def test_a_wait_for_another_source_of_effects_stays() -> None:
    x = tf.placeholder(tf.float32, [2])
    noise = tf.random_uniform([2])
    with tf.control_dependencies([noise * 2.0]):
        y = tf.exp(x)
    assert edges(text([y], [x], "remove_unneeded", "drop_waits"))


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_use_of_a_variable_stays_before_its_change(monkeypatch, use_resource) -> None:
    v = tf.get_variable("v", [2], initializer=tf.zeros_initializer(), use_resource=use_resource)
    doubled, change_by = v * 2.0, tf.constant([1.0, 2.0])
    with tf.control_dependencies([tf.exp(doubled)]):
        change = v.assign_add(change_by) if use_resource else tf.assign_add(v, change_by)
    lines = text([doubled], [], "remove_unneeded", "drop_waits", targets=[change.op])
    changing = next(line for line in lines if "AssignAdd" in line)
    assert "^" in changing
    agree(monkeypatch, [doubled, change.op], {}, "drop_waits", setup=tf.global_variables_initializer())


def test_in_a_branch_the_edge_says_when_a_node_is_alive() -> None:
    x, p = tf.placeholder(tf.float32, [2], name="x"), tf.placeholder(tf.bool, [], name="p")
    taken = tf.cond(p, lambda: tf.exp(x), lambda: x)

    def branch() -> Any:
        with tf.control_dependencies([tf.sin(taken)]):
            return tf.cos(x)

    y = tf.cond(p, branch, lambda: x)
    for wanted in (True, False):
        with tf.Session() as s:
            found = s.run(y, {x: [0.0, 1.0], p: wanted})
        np.testing.assert_allclose(found, np.cos([0.0, 1.0]) if wanted else [0.0, 1.0], rtol=1e-6)


def test_gated_gradients_of_a_loop_are_summed_as_one_product(monkeypatch) -> None:
    w = tf.get_variable("w", [7, 7], initializer=tf.constant_initializer(0.1))
    x = tf.placeholder(tf.float32, [2, 7])
    _, h = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [0, x])
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(h))
    feed = {x: np.ones([2, 7], "f")}
    log = agree(monkeypatch, [train, h], feed, "drop_waits", setup=tf.global_variables_initializer())
    assert "stack_accumulators" in log


def test_gated_gradients_let_poolings_come_first() -> None:
    x = tf.placeholder(tf.float32, [2, 8, 8, 3])
    w = tf.get_variable("w", [3, 3, 3, 4])
    pooled = tf.nn.max_pool(
        tf.nn.relu(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")), [1, 2, 2, 1], [1, 2, 2, 1], "SAME"
    )
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.square(pooled)))
    names = ("fold_constants", "apply_identities", "remove_unneeded", "pool_first")
    with_waits = ops(text([pooled], [x], *names, targets=[train]))
    without = ops(text([pooled], [x], *names, "drop_waits", targets=[train]))
    assert with_waits.index("Relu") < with_waits.index("MaxPool")
    assert without.index("Relu") > without.index("MaxPool")
