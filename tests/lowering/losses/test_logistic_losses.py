"""Logistic losses: the graph after the pass, values and gradients as the formulas', and as without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.lowering.passes import EVERY

RNG = np.random.default_rng(7)
EVERYTHING = [each.name for each in EVERY]
INSIDE = {"Exp", "Log1p", "Select", "GreaterEqual", "Reciprocal", "ZerosLike"}
NAME = "simplify_logistic_losses"


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f") * 3


def loss_of(x: Any, labels: Any) -> Any:
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=x)


def expected(x: Any, z: Any) -> tuple[Any, Any]:
    """The loss and its derivative in double precision."""
    x, z = np.float64(x), np.float64(z)
    return np.logaddexp(0, x) - x * z, 1 / (1 + np.exp(-x)) - z


LABELS = {
    "zeros": np.zeros([3, 4], "f"),
    "ones": np.ones([3, 4], "f"),
    "zeros and ones": np.eye(3, 4, dtype="f"),
    "between": np.linspace(0, 1, 12, dtype="f").reshape(3, 4),
}


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("fetched", ["both", "loss", "gradient"])
def test_losses_and_gradients_agree(monkeypatch, labels, constant, weighted, fetched) -> None:
    """Whatever is known of the labels and of the gradient with respect to the loss, and whichever of the two
    is wanted."""
    x = tf.placeholder(tf.float32, [3, 4], name="x")
    value = LABELS[labels]
    z = tf.constant(value) if constant else tf.placeholder(tf.float32, [3, 4])
    weights = tf.placeholder(tf.float32, [3, 4])
    loss = loss_of(x, z)
    total = tf.reduce_sum(loss * weights) if weighted else tf.reduce_mean(loss)
    gradient = tf.gradients(total, x)[0]
    feed = {x: values(3, 4), weights: values(3, 4), **({} if constant else {z: value})}
    fetches = {"both": [loss, gradient], "loss": [loss], "gradient": [gradient]}[fetched]
    log = agree(monkeypatch, fetches, feed, NAME, fires=len(fetches), tolerance=1e-6)
    assert f"{NAME}:" in log
    lines = text(fetches, list(feed), *EVERYTHING)
    assert not INSIDE & set(ops(lines))
    with tf.Session() as session:
        wanted, slope = expected(feed[x], value)
        slope = slope * (feed[weights] if weighted else 1 / 12)
        for got, formula in zip(session.run([loss, gradient], feed), (wanted, slope)):
            np.testing.assert_allclose(got, formula, rtol=2e-6, atol=1e-7)


@pytest.mark.by_aten
def test_the_graph_of_a_mean_over_constant_labels() -> None:
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    loss = loss_of(x, tf.constant([[1.0, 0.0], [0.0, 0.0]]))
    gradient = tf.gradients(tf.reduce_sum(loss), x)[0]
    lines = text([loss, gradient], [x], *EVERYTHING)
    assert [line.partition("  #")[0] for line in lines if "Const" not in line] == [
        "%0 = _Arg() index=0 : float32[2,2]",
        "%2 = Mul(%0, %1) : float32[2,2]",
        "%3 = Softplus(%2) : float32[2,2]",
        "%5 = Minimum(%2, %4) : float32[2,2]",
        "%7 = Mul(%5, %6) : float32[2,2]",
        "%8 = AddV2(%3, %7) : float32[2,2]",
        "%9 = Sigmoid(%2) : float32[2,2]",
        "%11 = Mul(%9, %10) : float32[2,2]",
        "return %8, %11",
    ]


@pytest.mark.parametrize("labels", LABELS)
def test_infinite_logits_and_gradients_are_as_spelled_out(monkeypatch, labels) -> None:
    x, dy = tf.placeholder(tf.float32, [3, 4]), tf.placeholder(tf.float32, [])
    loss = loss_of(x, tf.constant(LABELS[labels]))
    gradient = tf.gradients(loss * dy, x)[0]
    special = [np.inf, -np.inf, np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 3e38, -3e38, 1.0, -np.inf]
    for number in (1.0, np.inf, np.nan):
        feed = {x: np.float32(special).reshape(3, 4), dy: number}
        log = agree(monkeypatch, [loss, gradient], feed, NAME, fires=2, tolerance=1e-6)
    assert f"{NAME}:" in log


@pytest.mark.by_aten
def test_the_graph_of_fed_labels() -> None:
    x, z = tf.placeholder(tf.float32, [2, 2]), tf.placeholder(tf.float32, [2, 2])
    loss = loss_of(x, z)
    lines = text([loss, tf.gradients(loss, x)[0]], [x, z], *EVERYTHING)
    assert ops(lines) == [
        "_Arg", "_Arg", "Relu", "Mul", "Sub", "Abs", "Neg", "Softplus", "AddV2", "Sigmoid", "Sub",
    ]  # fmt: skip


def test_hard_labels_of_large_logits_keep_their_precision() -> None:
    x = tf.placeholder(tf.float32, [6])
    feed = {x: np.float32([-60, -30, -9, 9, 30, 60])}
    for value in (np.zeros(6, "f"), np.ones(6, "f"), np.float32([0, 1, 0, 1, 0, 1])):
        loss = loss_of(x, tf.constant(value))
        gradient = tf.gradients(loss, x)[0]
        with tf.Session() as session:
            got = session.run([loss, gradient], feed)
        signed = np.float64(feed[x]) * (1 - 2 * value)
        np.testing.assert_allclose(got[0], np.logaddexp(0, signed), rtol=1e-6)
        np.testing.assert_allclose(got[1], (1 - 2 * value) / (1 + np.exp(-signed)), rtol=1e-6)


def test_two_losses_of_the_same_logits(monkeypatch) -> None:
    """As of an adversarial net: one takes them for zeros, the other for ones."""
    x = tf.placeholder(tf.float32, [5, 1])
    w = tf.placeholder(tf.float32, [5, 1])
    logits = x * w
    losses = [tf.reduce_mean(loss_of(logits, f(logits))) for f in (tf.zeros_like, tf.ones_like)]
    fetches = [*losses, *[tf.gradients(loss, v)[0] for loss in losses for v in (x, w)]]
    feed = {x: values(5, 1), w: values(5, 1)}
    assert agree(monkeypatch, fetches, feed, NAME, fires=4, tolerance=1e-6).count(f"{NAME}:") == 4
    assert not INSIDE & set(ops(text(fetches, [x, w], *EVERYTHING)))


def test_logits_with_other_uses_and_labels_with_gradients(monkeypatch) -> None:
    x, v = tf.placeholder(tf.float32, [3, 4]), tf.placeholder(tf.float32, [3, 4])
    total = tf.reduce_sum(loss_of(x, tf.sigmoid(v))) + tf.reduce_sum(x * x * v)
    fetches = [total, *tf.gradients(total, [x, v])]
    feed = {x: values(3, 4), v: values(3, 4)}
    assert f"{NAME}:" in agree(monkeypatch, fetches, feed, NAME, fires=2, tolerance=1e-5)


def test_fed_batches_of_any_size(monkeypatch) -> None:
    x, z = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 2])
    loss = tf.reduce_mean(loss_of(x, z))
    feed = {x: values(3, 2), z: np.eye(3, 2, dtype="f")}
    log = agree(monkeypatch, [loss, tf.gradients(loss, x)[0]], feed, NAME, fires=2, tolerance=1e-6)
    assert log.count(f"{NAME}:") == 2


def test_in_conditionals_and_loops_the_values_stay(monkeypatch) -> None:
    x, z = tf.placeholder(tf.float32, [3, 4]), tf.constant(LABELS["zeros and ones"])
    chosen = tf.cond(x[0, 0] > 0, lambda: loss_of(x, z), lambda: loss_of(-x, z))
    looped = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + loss_of(y, z)), [0, x])[1]
    total = tf.reduce_sum(chosen) + tf.reduce_sum(looped)
    for sign in (1, -1):
        feed = {x: np.abs(values(3, 4)) * sign}
        agree(monkeypatch, [total, tf.gradients(total, x)[0]], feed, NAME, fires=0, tolerance=1e-4)


@pytest.mark.parametrize("what", ["Exp", "GreaterEqual", "Log1p"])
def test_where_something_else_takes_what_is_inside_all_stays(what) -> None:
    x, z = tf.placeholder(tf.float32, [3, 4]), tf.placeholder(tf.float32, [3, 4])
    loss = loss_of(x, z)
    inside = next(op for op in tf.get_default_graph().get_operations() if op.type == what)
    lines = text([loss, inside.outputs[0]], [x, z], *EVERYTHING)
    assert "Softplus" not in ops(lines)


def test_half_precision_and_what_only_looks_alike_stay() -> None:
    x = tf.placeholder(tf.float32, [3, 4])
    alike = tf.where(x >= 1, x, tf.zeros_like(x)) - x * x + tf.log1p(tf.exp(tf.where(x >= 1, -x, x)))
    half = tf.placeholder(tf.float16, [3, 4])
    lines = text([alike, loss_of(half, half)], [x, half], *EVERYTHING)
    assert "Softplus" not in ops(lines)
