"""Gradients that a `tf.function` takes by variables from outside."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def test_gradients_of_branches_with_variables_from_outside() -> None:
    v, w = (tf.Variable([x, 2.0], use_resource=True) for x in (1.0, 3.0))

    @tf.function
    def slopes(x: Any) -> Any:
        with tf.GradientTape() as tape:
            y = tf.cond(x > 0.0, lambda: tf.reduce_sum(v * x), lambda: tf.reduce_sum(w))
        return tape.gradient(y, [v, w])

    @tf.function
    def unconnected(x: Any) -> Any:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(v * x)
        return tape.gradient(y, [v, w], unconnected_gradients="zero")

    found = [slopes(tf.constant(2.0)), slopes(tf.constant(-2.0)), unconnected(3.0)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = [[each.tolist() for each in pair] for pair in session.run(found)]
    nothing = [0.0, 0.0]
    assert values == [[[2.0, 2.0], nothing], [nothing, [1.0, 1.0]], [[3.0, 3.0], nothing]]


def test_a_branch_trains_a_variable_from_outside() -> None:
    v, count = tf.Variable([1.0, 2.0], use_resource=True), tf.Variable(0, use_resource=True)
    optimizer = tf.train.GradientDescentOptimizer(0.5)

    def trained() -> Any:
        loss = tf.reduce_sum(tf.square(v))
        optimizer.apply_gradients(zip(tf.gradients(loss, [v]), [v]), global_step=count)
        return loss

    step = tf.function(lambda: tf.cond(count < 1, trained, lambda: tf.constant(-1.0)))()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert [session.run(step) for _ in range(2)] == [5.0, -1.0]
        assert session.run([v, count])[0].tolist() == [0.0, 0.0]
