"""Rows by numbers that may be negative: graph text, and the same bits without the pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text

NAME = "pick_present_rows"


def summed(shape: tuple[int, ...], numbers: str, ids_dims: Any = (6,)) -> tuple[Any, Any, Any]:
    """A gradient of an unsorted sum, the data and the numbers."""
    data, ids = tf.placeholder(tf.float32, shape), tf.placeholder(numbers, ids_dims)
    total = tf.unsorted_segment_sum(data, ids, 4)
    return tf.gradients(tf.sin(total), data)[0], data, ids


@pytest.mark.parametrize("numbers", ["int32", "int64"])
@pytest.mark.parametrize("shape", [(6,), (6, 1), (6, 5), (6, 2, 3)])
@pytest.mark.parametrize("ids", [[3, 1, 1, 0, 2, 3], [3, -1, 1, -7, 0, 3], [-1] * 6])
def test_gradients_of_sums(monkeypatch: pytest.MonkeyPatch, shape: Any, numbers: str, ids: Any) -> None:
    flow, data, fed = summed(shape, numbers)
    found = ops(text([flow], [data, fed], NAME))
    assert "_PresentRows" in found
    assert not {"Select", "GreaterEqual", "Maximum", "LogicalAnd"} & set(found)
    agree(monkeypatch, [flow], {data: np.random.randn(*shape), fed: ids}, NAME, fires=1, tolerance=0)


def test_numbers_of_two_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    flow, data, fed = summed((2, 3, 4), "int32", (2, 3))
    feed = {data: np.random.randn(2, 3, 4), fed: [[0, -1, 2], [3, 3, 0]]}
    agree(monkeypatch, [flow], feed, NAME, fires=1, tolerance=0)


@pytest.mark.parametrize("kind", ["max", "min", "prod"])
def test_gradients_of_others(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    data, ids = tf.placeholder(tf.float32, [6, 3]), tf.placeholder(tf.int32, [6])
    found = getattr(tf, f"unsorted_segment_{kind}")(data, ids, 4)
    flow = tf.gradients(found * 3, data)[0]
    feed = {data: np.random.randn(6, 3), ids: [3, 1, -1, 1, 0, 0]}
    agree(monkeypatch, [flow], feed, NAME, fires=1 if kind == "prod" else 2, tolerance=0)


def test_known_numbers_need_no_choice() -> None:
    data = tf.placeholder(tf.float32, [4, 3])
    total = tf.unsorted_segment_sum(data, [1, 0, 1, 1], 2)
    flow = tf.gradients(tf.sin(total), data)[0]
    with tf.Session() as session:
        plan = str(session.explain(flow, {data: np.zeros([4, 3])}))
    assert " = Select(" not in plan
    assert " = GatherV2(" in plan


def test_other_choices_stay() -> None:
    params, ids = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.int32, [6])
    rows = tf.gather(params, tf.maximum(ids, 1))
    present = tf.reshape(tf.greater_equal(ids, 0), [6, 1]) & tf.fill([6, 3], True)
    assert "Select" in ops(text([tf.where(present, rows, tf.zeros_like(rows))], [params, ids], NAME))
    rows = tf.gather(params, tf.maximum(ids, 0))
    assert "Select" in ops(text([tf.where(present, rows, tf.ones_like(rows))], [params, ids], NAME))
    present &= tf.placeholder_with_default(np.ones([6, 3], bool), [6, 3])
    assert "Select" in ops(text([tf.where(present, rows, tf.zeros_like(rows))], [params, ids], NAME))
