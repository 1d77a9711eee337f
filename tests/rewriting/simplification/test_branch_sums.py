"""Sums of merges as one merge: graph text, equal results without the pass, and what stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.lowering.passes import EVERY

RNG = np.random.default_rng(9)
EVERYTHING = [each.name for each in EVERY]
NAME = "sum_directly"


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def by_branch(pred: Any, x: Any, count: int = 1) -> Any:
    """What both branches of `count` conditionals make of x."""
    y = x
    for _ in range(count):
        y = tf.cond(pred, lambda y=y: tf.tanh(y) * 2.0, lambda y=y: tf.exp(y))
    return y


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("taken", [True, False])
def test_the_gradient_by_what_both_branches_take_is_one_merge(monkeypatch, count, taken) -> None:
    x, pred = tf.placeholder(tf.float32, [3, 4], name="x"), tf.placeholder(tf.bool, [], name="pred")
    (dx,) = tf.gradients(by_branch(pred, x, count), [x])
    before = ops(text([dx], [x, pred], "remove_unneeded"))
    after = ops(text([dx], [x, pred], NAME, "remove_unneeded"))
    assert (before.count("AddN"), after.count("AddN")) == (count, 0)
    assert before.count("Merge") - after.count("Merge") == count
    agree(monkeypatch, [dx], {x: values(3, 4), pred: taken}, NAME, fires=count)


@pytest.mark.parametrize("taken", [True, False])
def test_other_terms_of_the_sum_stay(monkeypatch, taken) -> None:
    x, pred = tf.placeholder(tf.float32, [3, 4], name="x"), tf.placeholder(tf.bool, [], name="pred")
    (dx,) = tf.gradients(by_branch(pred, x) + tf.tanh(x), [x])
    agree(monkeypatch, [dx], {x: values(3, 4), pred: taken}, NAME, fires=1)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_merges_of_other_conditions_are_added(monkeypatch, first, second) -> None:
    x = tf.placeholder(tf.float32, [3, 4], name="x")
    p, q = (tf.placeholder(tf.bool, [], name=name) for name in "pq")
    one = tf.cond(p, lambda: tf.identity(x), lambda: tf.zeros([3, 4]))
    other = tf.cond(q, lambda: tf.zeros([3, 4]), lambda: tf.exp(x))
    agree(monkeypatch, [one + other], {x: values(3, 4), p: first, q: second}, NAME, fires=0)


@pytest.mark.parametrize("taken", [True, False])
def test_merges_of_values_or_of_other_shapes_are_added(monkeypatch, taken) -> None:
    x, p = tf.placeholder(tf.float32, [3, 4], name="x"), tf.placeholder(tf.bool, [], name="p")
    one = tf.cond(p, lambda: tf.identity(x), lambda: tf.zeros([3, 4]))
    both = tf.cond(p, lambda: tf.tanh(x), lambda: tf.exp(x))
    row = tf.cond(p, lambda: tf.zeros([4]), lambda: tf.exp(x[0]))
    agree(monkeypatch, [one + both, one + row], {x: values(3, 4), p: taken}, NAME, fires=0)


@pytest.mark.parametrize("taken", [True, False])
def test_a_merge_that_others_take_stays_for_them(monkeypatch, taken) -> None:
    x, p = tf.placeholder(tf.float32, [3, 4], name="x"), tf.placeholder(tf.bool, [], name="p")
    one = tf.cond(p, lambda: tf.identity(x), lambda: tf.zeros([3, 4]))
    other = tf.cond(p, lambda: tf.zeros([3, 4]), lambda: tf.exp(x))
    agree(monkeypatch, [one + other, one, other], {x: values(3, 4), p: taken}, NAME, fires=0)


def test_merges_in_loops(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [3], name="x")

    def body(i: Any, y: Any) -> Any:
        return i + 1, by_branch(tf.equal(i % 2, 0), tf.sin(y))

    _, y = tf.while_loop(lambda i, y: i < 4, body, [0, x])
    (dx,) = tf.gradients(y, [x])
    agree(monkeypatch, [y, dx], {x: values(3)}, NAME, fires=1)
