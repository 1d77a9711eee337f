"""Sums of products in loops of programs: which variables are such sums, and that values are the nodes'."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.rewriting.patterns import remove_unneeded
from flowstone.rewriting.simplification.constant_folding import apply_identities, fold_constants
from three_ways import assert_equal_three_ways, programs

RNG = np.random.RandomState(3)
PASSES = [fold_constants, apply_identities, remove_unneeded]


def values(*dims: int) -> Any:
    return RNG.randn(*dims).astype("f")


def trained(cell: Callable[[int], Any], rows: int, units: int, lengths: Any = None) -> tuple[Any, Any]:
    """The loss and gradients of a recurrence, and a feed."""
    x = tf.placeholder(tf.float32, [rows, 5, 12])
    with tf.variable_scope("cell", initializer=tf.random_uniform_initializer(-0.3, 0.3, seed=1)):
        outputs, _ = tf.nn.dynamic_rnn(cell(units), x, sequence_length=lengths, dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(outputs))
    return [loss, *tf.gradients(loss, tf.trainable_variables())], {x: values(rows, 5, 12)}


CELLS = {
    "gru": tf.nn.rnn_cell.GRUCell,
    "basic": tf.nn.rnn_cell.BasicRNNCell,
    "lstm": tf.nn.rnn_cell.BasicLSTMCell,
    "peepholes": lambda n: tf.nn.rnn_cell.LSTMCell(n, use_peepholes=True),
    "projected": lambda n: tf.nn.rnn_cell.LSTMCell(n, num_proj=20),
}


@pytest.mark.parametrize("cell", list(CELLS))
def test_recurrences_of_few_rows(monkeypatch: pytest.MonkeyPatch, cell: str) -> None:
    lengths = [4, 2] if cell in ("gru", "projected") else None
    fetches, feed = trained(CELLS[cell], 2, 40, lengths)
    assert_equal_three_ways(monkeypatch, fetches, feed, tf.global_variables_initializer())
    (program,) = programs(fetches, list(feed), PASSES)[0]
    assert str(program).count("AddProduct") == {"gru": 2, "projected": 2}.get(cell, 1)


def test_weights_that_are_larger_than_what_loops_may_make(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum is no value of an iteration: GRUs of 128 units and one row were left to Python for it."""
    fetches, feed = trained(CELLS["gru"], 1, 120)
    assert_equal_three_ways(monkeypatch, fetches, feed, tf.global_variables_initializer())


def added(rows: int, columns: int, first: Any, steps: Any = 4) -> Any:
    """A loop that adds products, and what it is fed."""
    a, b = tf.placeholder(tf.float32, [rows, columns]), tf.placeholder(tf.float32, [rows, 30])

    def body(i: Any, total: Any) -> Any:
        return i + 1, total + tf.matmul(a * tf.cast(i + 1, tf.float32), b, transpose_a=True)

    total = tf.while_loop(lambda i, _: i < steps, body, [0, first])[1]
    return total, {a: values(rows, columns), b: values(rows, 30)}


@pytest.mark.parametrize("steps", [0, 1, 70])
def test_sums_that_begin_with_something(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    first = tf.placeholder(tf.float32, [40, 30])
    count = tf.placeholder(tf.int32, [])
    for start in (first, tf.zeros([40, 30])):
        total, feed = added(1, 40, start, count)
        feed = {**feed, count: steps, first: values(40, 30)}
        assert_equal_three_ways(monkeypatch, [total], feed)


def test_sums_inside_of_loops_and_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = tf.placeholder(tf.float32, [1, 40]), tf.placeholder(tf.float32, [1, 30])

    def inner(total: Any) -> Any:
        return tf.while_loop(
            lambda i, _: i < 3, lambda i, t: (i + 1, t + tf.matmul(a, b, transpose_a=True)), [0, total]
        )[1]

    def outer(i: Any, total: Any) -> Any:
        return i + 1, tf.cond(i > 1, lambda: inner(total) * 0.5, lambda: inner(tf.zeros([40, 30])) + total)

    total = tf.while_loop(lambda i, _: i < 5, outer, [0, tf.ones([40, 30])])[1]
    assert_equal_three_ways(monkeypatch, [total], {a: values(1, 40), b: values(1, 30)})


def test_what_is_no_such_sum() -> None:
    def texts(total: Any, feed: Any) -> str:
        return str(programs([total], list(feed), PASSES)[0][0])

    assert "AddProduct" in texts(*added(1, 40, tf.zeros([40, 30])))
    assert "AddProduct" not in texts(*added(40, 40, tf.zeros([40, 30])))  # as much work either way
    assert "AddProduct" not in texts(*added(1, 8, tf.zeros([8, 30])))  # registers hold it
    a, b = tf.placeholder(tf.float32, [1, 40]), tf.placeholder(tf.float32, [1, 30])
    looked_at = tf.while_loop(
        lambda i, t: t[0, 0] < 3.0,
        lambda i, t: (i + 1, t + tf.matmul(a, b, transpose_a=True)),
        [0, tf.zeros([40, 30])],
    )[1]
    assert "AddProduct" not in texts(looked_at, [a, b])
