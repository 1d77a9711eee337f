"""Loops as blocks of code: the text of a `while`, nested ones, and loops that no function can hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def source(fetches: Any, feed: Any) -> tuple[str, Any]:
    """The generated code, and what it computes."""
    with tf.Session() as s:
        return s.explain(fetches, feed).split("\n\n")[-1], s.run(fetches, feed)


@pytest.mark.by_aten
def test_a_loop_is_a_while() -> None:
    x = tf.placeholder(tf.float32, [2])
    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(y)), [0, x])
    text, value = source(y, {x: [1.0, 2.0]})
    assert text.count("while ") == 1 and text.count("sin") == 1
    np.testing.assert_allclose(value, np.sin(np.sin(np.sin([1.0, 2.0]))), rtol=1e-5)


@pytest.mark.by_aten
def test_a_loop_that_never_runs_gives_what_came_in() -> None:
    x, n = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int32, [])
    _, y = tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, y * 2.0), [0, x])
    text, value = source(y, {x: [1.0, 2.0], n: 0})
    assert "while " in text and value.tolist() == [1, 2]


@pytest.mark.by_aten
def test_nested_loops_are_nested_blocks() -> None:
    def outer(i, y):
        return i + 1, tf.while_loop(lambda j, _: j < i, lambda j, z: (j + 1, z * 2.0), [0, y])[1]

    x = tf.placeholder(tf.float32, [])
    _, y = tf.while_loop(lambda i, _: i < 4, outer, [0, x])
    text, value = source(y, {x: 1.0})
    depths = [len(line) - len(line.lstrip()) for line in text.splitlines() if "while " in line]
    assert len(depths) == 2 and depths[0] < depths[1] and value == 2.0 ** (0 + 1 + 2 + 3)


def test_variables_that_change_places_do_so_at_once() -> None:
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    _, x, y = tf.while_loop(lambda i, *_: i < 3, lambda i, x, y: (i + 1, y, x), [0, a, b])
    assert source([x, y], {a: 1.0, b: 2.0})[1] == [2, 1]


@pytest.mark.by_aten
def test_a_conditional_in_a_loop_is_an_if() -> None:
    def body(i, y):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: y * 3.0, lambda: y + 1.0)

    x = tf.placeholder(tf.float32, [])
    _, y = tf.while_loop(lambda i, _: i < 4, body, [0, x])
    text, value = source(y, {x: 1.0})
    assert "while " in text and "if " in text and value == 13


def test_a_feed_is_not_overwritten_by_the_loop() -> None:
    x = tf.placeholder(tf.float32, [2])
    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y + 1.0), [0, x])
    fed = np.zeros(2, "f")
    assert source([y, x], {x: fed})[1][0].tolist() == [3, 3] and fed.tolist() == [0, 0]


def test_a_loop_that_waits_is_no_function() -> None:
    queue = tf.FIFOQueue(5, tf.float32, shapes=[[]])
    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y + queue.dequeue()), [0, 0.0])
    with tf.Session() as s:
        s.run(queue.enqueue_many([[1.0, 2.0, 3.0]]))
        assert s.run(y) == 6
