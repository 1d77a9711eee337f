"""Rows of a tensor are changed in its own memory where nobody reads it afterwards, and else in a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import registry

OPS = ("InplaceUpdate", "InplaceAdd", "InplaceSub")
ROWS = [1, 4, -1]


def wanted(op: str, x: np.ndarray[Any, Any], v: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    result = x.copy()
    result[ROWS] = v if op == "InplaceUpdate" else result[ROWS] + (v if op == "InplaceAdd" else -v)
    return result


@pytest.fixture
def numbers() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    chance = np.random.default_rng(1)
    return chance.standard_normal((7, 3)).astype("f"), chance.standard_normal((3, 3)).astype("f")


@pytest.mark.usefixtures("graph")
@pytest.mark.parametrize("op", OPS)
def test_a_value_that_nobody_reads_is_overwritten(op: str, numbers: Any) -> None:
    x, v = numbers
    fed = tf.placeholder(tf.float32, [7, 3])
    made = tf.nn.relu(fed) - 1
    y = registry[op](made, ROWS, v)
    with tf.Session() as session:
        assert "change_in_place" in session.explain(y, {fed: x})
        for _ in range(2):
            np.testing.assert_array_equal(session.run(y, {fed: x}), wanted(op, np.maximum(x, 0) - 1, v))


@pytest.mark.usefixtures("graph")
@pytest.mark.parametrize("op", OPS)
def test_what_is_read_afterwards_or_fed_stays(op: str, numbers: Any) -> None:
    x, v = numbers
    fed = tf.placeholder(tf.float32, [7, 3])
    made = tf.nn.relu(fed) - 1
    ys = [registry[op](each, ROWS, v) for each in (made, fed, tf.Variable(x))]
    with tf.control_dependencies([ys[0]]):
        after = tf.identity(made)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            given = x.copy()
            *found, kept = session.run([*ys, after], {fed: given})
            np.testing.assert_array_equal(kept, np.maximum(x, 0) - 1)
            np.testing.assert_array_equal(given, x)
            for each, start in zip(found, (np.maximum(x, 0) - 1, x, x), strict=True):
                np.testing.assert_array_equal(each, wanted(op, start, v))


@pytest.mark.usefixtures("graph")
def test_rows_of_the_value_itself_are_read_before_they_change(numbers: Any) -> None:
    fed = tf.placeholder(tf.float32, [7, 3])
    made = tf.nn.relu(fed) - 1
    y = registry["InplaceUpdate"](made, list(range(7)), made[::-1])
    turned = registry["InplaceUpdate"](tf.transpose(tf.transpose(fed) * 2), ROWS, numbers[1])
    with tf.Session() as session:
        found = session.run([y, turned], {fed: numbers[0]})
    np.testing.assert_array_equal(found[0], (np.maximum(numbers[0], 0) - 1)[::-1])
    np.testing.assert_array_equal(found[1], wanted("InplaceUpdate", numbers[0] * 2, numbers[1]))


@pytest.mark.usefixtures("graph")
def test_a_loop_of_updates(numbers: Any) -> None:
    start = tf.placeholder(tf.float32, [7, 3])

    def body(i: Any, x: Any) -> Any:
        return i + 1, registry["InplaceAdd"](x, tf.reshape(i, [1]), tf.ones([1, 3]))

    _, y = tf.while_loop(lambda i, x: i < 7, body, [0, start])
    with tf.Session() as session:
        given = numbers[0].copy()
        np.testing.assert_array_equal(session.run(y, {start: given}), numbers[0] + 1)
        np.testing.assert_array_equal(given, numbers[0])
