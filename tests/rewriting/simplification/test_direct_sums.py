"""Products with ones as sums and repetitions, sums of sums, sums of merges: graph text, equal results without
the pass."""

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


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x: tf.matmul(x, tf.ones([5, 1])), "Sum(%0, %1) keep_dims=True : float32[4,1]"),
        (
            lambda x: tf.matmul(x, tf.ones([1, 5]), transpose_b=True),
            "Sum(%0, %1) keep_dims=True : float32[4,1]",
        ),
        (lambda x: tf.matmul(tf.ones([1, 4]), x), "Sum(%0, %1) keep_dims=True : float32[1,5]"),
        (lambda x: tf.matmul(x[:, :1], tf.ones([1, 6])), "BroadcastTo(%4, %5) : float32[4,6]"),
        (lambda x: tf.matmul(tf.ones([3, 1]), x[:1]), "BroadcastTo(%4, %5) : float32[3,5]"),
    ],
)
def test_products_with_ones(monkeypatch, make, expected) -> None:
    x = tf.placeholder(tf.float32, [4, 5], name="x")
    y = make(x)
    line = text([y], [x], "fold_constants", NAME, "remove_unneeded")[-2]
    assert line.partition(" = ")[2].partition("  #")[0] == expected
    assert NAME in agree(
        monkeypatch, [y, tf.gradients(y, x)[0]], {x: values(4, 5)}, NAME, fires=1, tolerance=1e-6
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda x: tf.matmul(x, tf.ones([4, 1]), transpose_a=True),
        lambda x: tf.matmul(x, tf.ones([5, 2])),
        lambda x: tf.matmul(x, tf.constant([[1.0], [1], [1], [1], [2]])),
        lambda x: tf.matmul(tf.cast(x, tf.int32), tf.ones([5, 1], tf.int32)),
        lambda x: tf.matmul(x, tf.ones([tf.shape(x)[1], 1])),
    ],
)
def test_other_products_stay(make) -> None:
    x = tf.placeholder(tf.float32, [4, 5])
    assert "MatMul" in ops(text([make(x)], [x], NAME))


@pytest.mark.parametrize("total", [tf.reduce_sum, tf.reduce_mean])
@pytest.mark.parametrize("keep", [True, False])
def test_the_total_of_a_sum_is_one_sum(monkeypatch, total, keep) -> None:
    x = tf.placeholder(tf.float32, [4, 5, 2])
    y = total(tf.reshape(tf.reduce_sum(x, 1, keep), [8]))
    lines = ops(text([y], [x], *EVERYTHING))
    assert lines.count("Sum") == 1 and not {"Mean", "Reshape"} & set(lines)
    fetches = [y, tf.gradients(y, x)[0]]
    assert "one sum for two" in agree(
        monkeypatch, fetches, {x: values(4, 5, 2)}, NAME, fires=1, tolerance=1e-6
    )


def test_a_sum_that_others_take_stays() -> None:
    x = tf.placeholder(tf.float32, [4, 5])
    rows = tf.reduce_sum(x, 1)
    assert ops(text([tf.reduce_mean(rows), rows], [x], *EVERYTHING)).count("Mean") == 1
    assert ops(text([tf.reduce_mean(rows), rows * 2.0], [x], *EVERYTHING)).count("Mean") == 1
    of_parts = tf.reduce_mean(tf.reduce_sum(x, 1, keepdims=True), 1)
    assert ops(text([of_parts], [x], *EVERYTHING)).count("Mean") == 1


def test_a_reshape_that_only_adds_or_drops_axes_comes_before_the_broadcast(monkeypatch) -> None:
    x, y = tf.placeholder(tf.float32, [4, 1]), tf.placeholder(tf.float32, [4, 1, 6, 1])
    wide = tf.broadcast_to(x, [4, 6])
    product = tf.reshape(wide, [4, 1, 6, 1]) * y
    assert "BroadcastTo" not in ops(text([product], [x, y], *EVERYTHING))
    split = tf.reshape(wide, [2, 2, 6]) * tf.reshape(y, [2, 2, 6])
    assert "BroadcastTo" in ops(text([split], [x, y], *EVERYTHING))
    feed = {x: values(4, 1), y: values(4, 1, 6, 1)}
    agree(
        monkeypatch,
        [product, split],
        feed,
        "narrow_broadcasts",
        fires=2,
        tolerance=1e-6,
    )


def test_an_operation_between_reshapes_needs_none(monkeypatch) -> None:
    x, y, z = (tf.placeholder(tf.float32, dims) for dims in ([4, 6], [4, 6], [4, 1]))
    product = tf.expand_dims(x, 1) * tf.reshape(y, [-1, 1, 6])
    rows = tf.reshape(product, [4, 6])
    assert ops(text([rows], [x, y], *EVERYTHING)) == ["_Arg", "_Arg", "Mul"]
    column = tf.reshape(tf.reshape(z, [4, 1, 1]) * tf.reshape(y, [4, 1, 6]), [4, 6])
    assert ops(text([column], [y, z], *EVERYTHING)) == ["_Arg", "_Arg", "Mul"]
    kept = ops(text([rows, product], [x, y], *EVERYTHING))
    assert kept.count("Mul") == 1
    other = tf.reshape(tf.expand_dims(x, 1) * tf.reshape(y, [-1, 1, 6]), [8, 3])
    assert "Reshape" in ops(text([other], [x, y], *EVERYTHING))
    row = tf.reshape(tf.reshape(x[0], [2, 3])[0] * y[1, :3], [1, 3])
    assert "Reshape" in ops(text([row], [x, y], *EVERYTHING))
    feed = {x: values(4, 6), y: values(4, 6), z: values(4, 1)}
    agree(monkeypatch, [rows, column, other, row], feed, "cancel_transposes", fires=2, tolerance=1e-6)


# ---- sums of merges


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
