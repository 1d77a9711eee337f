"""Stacks and arrays of programs: each operation on them, in a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.declarations.operation import F
from flowstone.lowering.programs.container_statements import CONTAINERS
from three_ways import assert_equal_three_ways

IN_GRADIENTS = {"StackV2", "StackPushV2", "StackPopV2", "TensorArrayGradV3"}


def doubled(array: Any, x: Any) -> Any:
    """An array whose elements a loop reads, and another that it writes."""
    made = tf.TensorArray(tf.float32, array.size())
    return tf.while_loop(
        lambda i, _: i < array.size(), lambda i, t: (i + 1, t.write(i, array.read(i) * 2.0 + x)), [0, made]
    )[1]


def whole() -> tuple[Any, Any]:
    """A graph with every operation on arrays, forward and backward."""
    x = tf.placeholder(tf.float32, [5, 2])
    array = tf.TensorArray(tf.float32, 5).unstack(x)
    result = doubled(array, x[0])
    y = result.stack()
    picked = doubled(tf.TensorArray(tf.float32, 5, clear_after_read=False).unstack(y), x[1]).gather([3, 0])
    size = F.TensorArraySizeV3(result.handle, result.flow)
    return [y, picked, size, tf.gradients(picked, x)[0]], {x: np.random.RandomState(0).rand(5, 2)}


def test_arrays_and_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    fetches, feed = whole()
    assert_equal_three_ways(monkeypatch, fetches, feed)


def test_the_cases_have_every_operation() -> None:
    with tf.Graph().as_default() as graph:
        fetches, feed = whole()
        array = tf.TensorArray(tf.float32, 2)
        closed = array.close()
        used = {each.type for each in graph.get_operations()}
    assert set(CONTAINERS) <= used | IN_GRADIENTS, set(CONTAINERS) - used
    assert used >= IN_GRADIENTS
    assert closed.type in CONTAINERS and fetches and feed


def test_what_is_read_twice_is_added_to_in_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, [3])
    array = tf.TensorArray(tf.float32, 3, clear_after_read=False).unstack(x)
    y = tf.while_loop(lambda i, _: i < 6, lambda i, a: (i + 1, a * 0.5 + array.read(i % 3)), [0, 0.0])[1]
    assert_equal_three_ways(monkeypatch, [y, tf.gradients(y, x)[0]], {x: [1.0, 2.0, 3.0]})


@pytest.mark.parametrize("clears", [False, True])
@pytest.mark.parametrize("shape", [None, [2]])
def test_what_nothing_was_written_to_is_read_as_zeros(
    shape: Any, clears: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = tf.placeholder(tf.float32, [2])
    array = tf.TensorArray(tf.float32, 5, element_shape=shape, clear_after_read=clears)
    array = tf.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t.write(i, x * 2.0)), [0, array])[1]
    y = array.stack()
    assert_equal_three_ways(monkeypatch, [y, *tf.gradients(y * y, x)], {x: [1.0, 2.0]})


def test_what_nothing_was_written_to_is_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, [2])
    array = tf.TensorArray(tf.float32, 5)
    array = tf.while_loop(lambda i, _: i < x[0], lambda i, t: (i + 1.0, t.write(0, x)), [0.0, array])[1]
    y = array.stack()
    monkeypatch.setattr(flags, "NATIVE", 2)
    with tf.Session() as session:
        assert "_Program(" in session.explain(y, {x: [1.0, 2.0]})
        assert session.run(y, {x: [1.0, 2.0]}).tolist() == [[1.0, 2.0], *[[0.0, 0.0]] * 4]
        assert session.run(y, {x: [0.0, 2.0]}).tolist() == [[0.0, 0.0]] * 5
