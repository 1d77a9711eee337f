"""Descent by a product goes into the variable: graph text, equal results, and where it must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework import flags

RNG = np.random.default_rng(11)


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
    log = agree(
        monkeypatch, [loss, train], feed, "fuse_updates", fires=1, setup=tf.global_variables_initializer()
    )
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
    log = agree(
        monkeypatch, [w, step], feed, "fuse_updates", fires=1, setup=tf.global_variables_initializer()
    )
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
    agree(monkeypatch, [first, last], {}, "fuse_updates", fires=1, setup=setup)
    with tf.control_dependencies([second]):
        agree(monkeypatch, [tf.identity(v), second], {}, "fuse_updates", fires=1, setup=setup)


@pytest.mark.parametrize("examples", [1, 4, 8, 12, 13])
@pytest.mark.parametrize("transposed", [False, True])
def test_few_examples_descend_a_few_rows_at_a_time(monkeypatch, examples, transposed) -> None:
    w = tf.get_variable("w", initializer=values(1536, 1024))
    a = tf.placeholder(tf.float32, (examples, 1536))
    b = tf.placeholder(tf.float32, (1024, examples) if transposed else (examples, 1024))
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    step = optimizer.apply_gradients([(tf.matmul(a, b, True, transposed), w)])
    feed = {a: values(*a.shape.as_list()), b: values(*b.shape.as_list())}
    log = agree(
        monkeypatch, [w, step], feed, "fuse_updates", fires=1, setup=tf.global_variables_initializer()
    )
    assert "fuse_updates: " in log
    monkeypatch.undo()
    with tf.Session() as s:
        s.run(w.initializer)
        assert ("by_rows" in s.explain([w, step], feed)) == (examples < 13)


@pytest.mark.needs_onednn
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.by_aten
def test_many_examples_of_few_columns(monkeypatch, transposed) -> None:
    """The gradient is made the other way round and then added, into a variable kept column by column."""
    w = tf.get_variable("w", initializer=values(600, 6))
    a = tf.placeholder(tf.float32, (300, 600) if transposed[0] else (600, 300))
    b = tf.placeholder(tf.float32, (6, 300) if transposed[1] else (300, 6))
    product = tf.matmul(a, b, transposed[0], transposed[1])
    step = tf.train.GradientDescentOptimizer(0.5).apply_gradients([(product, w)])
    feed = {a: values(*a.shape.as_list()), b: values(*b.shape.as_list())}
    agree(monkeypatch, [w, step], feed, "fuse_updates", fires=1, setup=w.initializer, tolerance=1e-3)
    monkeypatch.undo()
    monkeypatch.setattr(flags, "NATIVE", 0)
    with tf.Session() as session:
        session.run(w.initializer)
        assert "descend_narrow(" in session.explain(step, feed)


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("constant", [False, True])
def test_a_sum_goes_into_the_variable(monkeypatch, use_resource, axis, constant) -> None:
    x = tf.placeholder(tf.float32, [7, 3] if axis else [3, 7], name="x")
    b = tf.get_variable("b", initializer=values(7), use_resource=use_resource)
    rate = tf.placeholder(tf.float32, [])
    optimizer = tf.train.GradientDescentOptimizer(0.25 if constant else rate)
    step = optimizer.apply_gradients([(tf.reduce_sum(x, axis), b)])
    lines = text([], [x, rate], "fold_constants", "apply_identities", "fuse_updates", targets=[step])
    name = "_ResourceApplySum" if use_resource else "_ApplySum"
    (update,) = [line for line in lines if f"{name}(" in line]
    assert f"axis={axis % 2} " in update and "Sum" not in ops(lines)
    feed = {x: values(*x.shape.as_list()), rate: 0.25}
    log = agree(monkeypatch, [b, step], feed, "fuse_updates", fires=1, setup=b.initializer)
    assert "fuse_updates: " in log


def test_sums_that_stay() -> None:
    small, large = tf.placeholder(tf.float32, [3, 7]), tf.placeholder(tf.float32, [1 << 14, 7])
    cube = tf.placeholder(tf.float32, [3, 2, 7])
    b = tf.get_variable("b", initializer=values(7))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    total = tf.reduce_sum(small, 0)
    for gradient, variable, fetches in (
        (tf.reduce_sum(large, 0), b, []),
        (tf.reduce_sum(cube, [0, 1]), b, []),
        (total, b, [total]),
        (tf.squeeze(tf.reduce_sum(small, 0, keepdims=True), 0), b, []),
    ):
        step = optimizer.apply_gradients([(gradient, variable)])
        feeds = [small, large, cube]
        lines = text(fetches, feeds, "fold_constants", "apply_identities", "fuse_updates", targets=[step])
        assert "_ApplySum" not in ops(lines) and "Sum" in ops(lines)


@pytest.mark.parametrize("rate", [0.0, np.inf, np.nan])
@pytest.mark.parametrize("special", [1.0, np.inf, np.nan])
def test_rates_of_zero_and_infinity(monkeypatch, rate, special) -> None:
    """BLAS leaves out what it multiplies by zero; the update does not."""
    initial = {"w": values(6, 5), "v": values(5), "large": values(512, 1024)}
    w, v, large = (tf.get_variable(name, initializer=x) for name, x in initial.items())
    given = [values(4, 6), values(4, 5), values(512, 8), values(8, 1024)]
    for x in given:
        x.flat[x.size // 2] = special
    a, b, c, d = placeholders = [tf.placeholder(tf.float32, x.shape) for x in given]
    number = tf.placeholder(tf.float32, [])
    gradients = [(tf.matmul(a, b, transpose_a=True), w), (tf.reduce_sum(b, 0), v), (tf.matmul(c, d), large)]
    step = tf.train.GradientDescentOptimizer(number).apply_gradients(gradients)
    feed = {**dict(zip(placeholders, given)), number: rate}
    log = agree(
        monkeypatch,
        [w, v, large, step],
        feed,
        "fuse_updates",
        fires=3,
        setup=tf.global_variables_initializer(),
    )
    assert log.count("fuse_updates: ") == 3
