"""Products that a loop adds up, as one product of stacked operands: equal results, and what stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, text
from flowstone.lowering.passes import EVERY

RNG = np.random.default_rng(5)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def recurrence(steps: Any, rows: int = 2, columns: int = 7) -> tuple[Any, Any, Any]:
    w = tf.placeholder_with_default(values(columns, columns) * 0.3, [columns, columns], name="w")
    x = tf.placeholder(tf.float32, [rows, columns], name="x")
    _, h = tf.while_loop(lambda i, h: i < steps, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [0, x])
    return w, x, h


@pytest.mark.parametrize("steps", [0, 1, 3, 40])
@pytest.mark.by_aten
def test_a_loops_sum_of_products(monkeypatch, steps) -> None:
    steps_fed = tf.placeholder(tf.int32, [])
    w, x, h = recurrence(steps_fed)
    gradients = tf.gradients(tf.reduce_sum(h), [w, x])
    log = agree(
        monkeypatch, [*gradients, h], {x: values(2, 7), steps_fed: steps}, "stack_accumulators", fires=1
    )
    assert "multiplies stacked operands" in log and "ProductSum" in log


@pytest.mark.by_aten
def test_a_sum_that_begins_with_something(monkeypatch) -> None:
    x, start = tf.placeholder(tf.float32, [2, 9]), tf.placeholder(tf.float32, [9, 9])
    _, total = tf.while_loop(
        lambda i, _: i < 5,
        lambda i, total: (i + 1, total + tf.matmul(x * tf.cast(i, tf.float32), x, transpose_a=True)),
        [0, start],
    )
    log = agree(monkeypatch, [total], {x: values(2, 9), start: values(9, 9)}, "stack_accumulators", fires=1)
    assert "multiplies stacked operands" in log


def test_a_sum_that_the_loop_looks_at_stays() -> None:
    x = tf.placeholder(tf.float32, [2, 9])
    _, total = tf.while_loop(
        lambda i, total: tf.logical_and(i < 5, total[0, 0] < 3.0),
        lambda i, total: (i + 1, total + tf.matmul(x, x, transpose_a=True)),
        [0, tf.zeros([9, 9])],
    )
    assert "_ProductSum" not in str(text([total], [x], *[p.name for p in EVERY]))


def test_on_several_devices_as_on_one() -> None:
    w, x, h = recurrence(4)
    with tf.device("/cpu:1"):
        gradients = tf.gradients(tf.reduce_sum(h), [w, x])
    feed = {x: values(2, 7), w: values(7, 7)}
    results = []
    for count in (2, 1):
        config = tf.ConfigProto(device_count={"CPU": count}, allow_soft_placement=True)
        with tf.Session(config=config) as s:
            results.append(s.run([*gradients, h], feed))
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.by_aten
def test_recurrences_of_cells(monkeypatch) -> None:
    """Whose gradients' tuples wait for the products."""
    x = tf.placeholder(tf.float32, [4, 5, 6])
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(9), x, dtype=tf.float32)
    variables = tf.trainable_variables()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(outputs * outputs))
    with tf.control_dependencies([train]):
        after = [tf.identity(v.read_value()) for v in variables]
    constants = [tf.constant(values(*v.shape.as_list())) for v in variables]
    setup = tf.group(*[v.assign(c) for v, c in zip(variables, constants)])
    log = agree(
        monkeypatch, [outputs, *after], {x: values(4, 5, 6)}, "stack_accumulators", fires=1, setup=setup
    )
    assert "multiplies stacked operands" in log
