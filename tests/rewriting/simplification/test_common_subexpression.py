"""Common subexpressions: which nodes become one, and which must not."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text

NAME = "merge_common_subexpressions"


def merged(fetches, feeds=()):
    return ops(text(fetches, feeds, NAME, "remove_unneeded"))


def test_equal_nodes_become_one(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [3])
    fetches = [tf.exp(tf.negative(x)) + 1.0, tf.exp(tf.negative(x)) * 2.0]
    kinds = merged(fetches, [x])
    assert kinds.count("Exp") == kinds.count("Neg") == 1
    agree(monkeypatch, fetches, {x: np.ones(3)}, NAME, fires=2)


def test_only_commutative_operands_may_be_exchanged() -> None:
    x, y = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [3])
    assert merged([x * y, y * x], [x, y]).count("Mul") == 1
    assert merged([x - y, y - x], [x, y]).count("Sub") == 2


def test_attributes_and_controls_tell_nodes_apart() -> None:
    x = tf.placeholder(tf.float32, [3, 3])
    assert merged([tf.matmul(x, x), tf.matmul(x, x, transpose_a=True)], [x]).count("MatMul") == 2
    with tf.control_dependencies([tf.sin(x)]):
        later = tf.exp(x)
    assert merged([tf.exp(x), later], [x]).count("Exp") == 2


def test_random_numbers_and_feeds_stay() -> None:
    assert merged([tf.random_normal([2]), tf.random_normal([2])]).count("RandomStandardNormal") == 2
    x, y = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [3])
    assert merged([tf.exp(x), tf.exp(y)], [x, y]) == ["_Arg", "_Arg", "Exp", "Exp"]


@pytest.mark.parametrize(("size", "left"), [(1024, 1), (1025, 2)])
def test_large_constants_are_not_compared(size, left) -> None:
    x = tf.placeholder(tf.float32, [])
    fetches = [tf.constant(np.arange(size, dtype="f")) * x for _ in range(2)]
    assert merged(fetches, [x]).count("Const") == left


def test_of_constants_the_type_and_shape_count() -> None:
    x = tf.placeholder(tf.float32, [])
    fetches = [tf.constant(np.float32([[0.0, 0.0]])) * x, tf.constant(np.float32([0.0, 0.0])) * x]
    assert merged(fetches, [x]).count("Const") == 2


@pytest.mark.parametrize("use_resource", [False, True])
def test_reads_become_one_where_nothing_changes_in_between(monkeypatch, use_resource) -> None:
    v = tf.get_variable("v", initializer=np.float32([1, 2]), use_resource=use_resource)
    first = tf.exp(v.read_value())
    with tf.control_dependencies([first]):
        change = tf.assign_add(v, [1.0, 1.0])
    with tf.control_dependencies([change]):
        last = tf.exp(v.read_value())
    assert merged([first, last]).count("Exp") == 2
    assert merged([tf.exp(v.read_value()), tf.exp(v.read_value())]).count("Exp") == 1
    agree(monkeypatch, [first, last], {}, NAME, fires=0, setup=v.initializer)
