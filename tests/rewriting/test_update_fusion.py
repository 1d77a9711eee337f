"""Descent by a product goes into the variable: graph text, equal results, and where it must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text

RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def layer(use_resource: bool, rate: Any = 0.1) -> tuple[Any, Any, Any]:
    x = tf.placeholder(tf.float32, [4, 6], name="x")
    w = tf.get_variable("w", initializer=values(6, 5), use_resource=use_resource)
    loss = tf.reduce_sum(tf.square(tf.matmul(x, w)))
    return x, loss, tf.train.GradientDescentOptimizer(rate).minimize(loss)


@pytest.mark.parametrize("use_resource", [False, True])
def test_the_gradient_goes_into_the_variable(monkeypatch, use_resource) -> None:
    x, loss, train = layer(use_resource)
    before, after = (
        ops(text([loss], [x], "apply_identities", "remove_unneeded", *names, targets=[train]))
        for names in ((), ("fuse_updates",))
    )
    name = "ResourceApply" if use_resource else "Apply"
    assert f"{name}GradientDescent" in before and f"_{name}Product" not in before
    assert f"_{name}Product" in after and f"{name}GradientDescent" not in after
    assert before.count("MatMul") - after.count("MatMul") == 1
    feed = {x: values(4, 6)}
    log = agree(monkeypatch, [loss, train], feed, "fuse_updates", setup=tf.global_variables_initializer())
    assert "fuse_updates: " in log


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_products_of_all_orientations(monkeypatch, transposed) -> None:
    w = tf.get_variable("w", initializer=values(6, 5))
    a = tf.placeholder(tf.float32, (3, 6) if transposed[0] else (6, 3))
    b = tf.placeholder(tf.float32, (5, 3) if transposed[1] else (3, 5))
    rate = tf.placeholder(tf.float32, [])
    optimizer = tf.train.GradientDescentOptimizer(rate)
    step = optimizer.apply_gradients([(tf.matmul(a, b, transposed[0], transposed[1]), w)])
    feed = {a: values(*a.shape.as_list()), b: values(*b.shape.as_list()), rate: 0.25}
    log = agree(monkeypatch, [w, step], feed, "fuse_updates", setup=tf.global_variables_initializer())
    assert "fuse_updates: " in log


def test_a_gradient_that_others_want_stays() -> None:
    x = tf.placeholder(tf.float32, [4, 6])
    w = tf.get_variable("w", initializer=values(6, 5))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    ((gradient, _),) = optimizer.compute_gradients(tf.reduce_sum(tf.square(tf.matmul(x, w))))
    train = optimizer.apply_gradients([(gradient, w)])
    for fetches in ([gradient], [tf.reduce_sum(gradient)]):
        lines = text(fetches, [x], "apply_identities", "fuse_updates", targets=[train])
        assert "_ApplyProduct" not in ops(lines)


def test_an_operand_that_the_update_changes(monkeypatch) -> None:
    """The gradient of w'w by w is made of w itself, as it was before the step."""
    w = tf.get_variable("w", initializer=values(4, 4))
    v = tf.get_variable("v", initializer=values(4, 4))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    first = optimizer.apply_gradients([(tf.matmul(w, v), w)])
    second = optimizer.apply_gradients([(tf.matmul(w, v), v)])
    with tf.control_dependencies([first]):
        last = tf.identity(w)
    setup = tf.global_variables_initializer()
    agree(monkeypatch, [first, last], {}, "fuse_updates", setup=setup)
    with tf.control_dependencies([second]):
        agree(monkeypatch, [tf.identity(v), second], {}, "fuse_updates", setup=setup)
