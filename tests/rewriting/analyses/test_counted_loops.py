"""Loops that count their iterations: how many there are, and the loop of the gradient that counts down."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf
from flowstone.rewriting.analyses.counted_loops import Loops, countdown_of, is_complete, steps_of
from flowstone.rewriting.passes import SIMPLIFYING, run_passes
from flowstone.rewriting.simplification.partial_execution import prune


def loops_of(fetches: Any, feeds: Any = ()) -> Loops:
    subgraph = prune(fetches, [], list(feeds))
    run_passes(subgraph, SIMPLIFYING)
    return Loops(subgraph)


def loop_of(*arguments: Any) -> Any:
    (loop,) = loops_of(*arguments).by_frame.values()
    return loop


CONDITIONS = {
    "less": (lambda i, y: i < 5, 5),
    "both": (lambda i, y: tf.logical_and(i < 7, i < 4), 4),
    "another comparison": (lambda i, y: tf.not_equal(i, 5), None),
    "not of the counter": (lambda i, y: y < 5.0, None),
    "or": (lambda i, y: tf.logical_or(i < 7, i < 4), None),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_steps_are_the_least_of_the_limits(name: str) -> None:
    condition, steps = CONDITIONS[name]
    _, y = tf.while_loop(condition, lambda i, y: (i + 1, y * 2.0), [0, tf.constant(1.0)])
    assert steps_of(loop_of([y])) == steps


@pytest.mark.parametrize(("first", "step", "counts"), [(0, 1, 1), (1, 1, 0), (0, 2, 0)])
def test_a_counter_goes_up_by_one_from_zero(first: int, step: int, counts: int) -> None:
    _, y = tf.while_loop(lambda i, _: i < 5, lambda i, y: (i + step, y * 2.0), [first, tf.constant(1.0)])
    loop = loop_of([y])
    assert len(loop.counters()) == counts
    assert (steps_of(loop) is not None) == bool(counts)


def test_a_limit_that_is_fed_is_not_known() -> None:
    n = tf.placeholder(tf.int32, [])
    _, y = tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, y * 2.0), [0, tf.constant(1.0)])
    assert steps_of(loop_of([y], [n])) is None


def test_loops_in_loops_and_around_loops_are_not_looked_at() -> None:
    def outer(i, y):
        return i + 1, tf.while_loop(lambda j, _: j < 2, lambda j, z: (j + 1, z * 2.0), [0, y])[1]

    _, y = tf.while_loop(lambda i, _: i < 3, outer, [0, tf.constant(1.0)])
    assert loops_of([y]).by_frame == {}


def test_the_gradients_loop_counts_down_what_the_loop_counted() -> None:
    x = tf.placeholder(tf.float32, [])
    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(y)), [0, x])
    loops = loops_of([y, *tf.gradients(y, x)], [x])
    forward, backward = loops.by_frame.values()
    countdown = countdown_of(forward, backward)
    assert countdown is not None and countdown.next_value.op.type == "Sub"
    assert countdown_of(backward, forward) is None
    assert is_complete(forward, loops) and is_complete(backward, loops)


def test_a_loop_on_a_branch_is_not_complete() -> None:
    x, p = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [])

    def counted():
        return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * 2.0), [0, x])[1]

    for fetch, complete in ((counted(), True), (tf.cond(p, counted, lambda: x), False)):
        loops = loops_of([fetch], [x, p])
        (loop,) = loops.by_frame.values()
        assert is_complete(loop, loops) is complete
