"""Which nodes with reductions are one cluster, and that it gives what the nodes give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import text
from flowstone.framework import flags
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "-")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)


def clusters(fetches: list[Any], feeds: list[Any]) -> list[str]:
    """What each cluster does."""
    lines = text(fetches, feeds, "fold_constants", "apply_identities", "join_clusters")
    return [line.split("operations='")[1].split("'")[0] for line in lines if " _Cluster(" in line]


def check(fetches: list[Any], feed: Any, monkeypatch: pytest.MonkeyPatch, tolerance: float = 2e-6) -> None:
    """The fetches by machine code and by ATen are the same."""
    found = []
    for native in (2, 0):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Session() as session:
            found.append([session.run(fetches, feed) for _ in range(2)])
    for ours, atens in zip(*found):
        for a, b in zip(ours, atens):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def moments(x: Any, axes: list[int]) -> list[Any]:
    mean = tf.reduce_mean(x, axes, keepdims=True)
    return [mean, tf.reduce_mean(tf.squared_difference(x, mean), axes, keepdims=True)]


def layer_norm(x: Any) -> list[Any]:
    mean, variance = moments(x, [-1])
    return [(x - mean) * tf.rsqrt(variance + 1e-3)]


def log_sum_exp(x: Any) -> list[Any]:
    best = tf.reduce_max(x, -1, keepdims=True)
    return [tf.log(tf.reduce_sum(tf.exp(x - best), -1)) + tf.squeeze(best, [-1])]


def losses(x: Any) -> list[Any]:
    return [tf.reduce_mean(tf.square(x)), tf.reduce_sum(tf.abs(x)), tf.nn.l2_loss(x * 2.0)]


def bias_gradient(x: Any) -> list[Any]:
    change = x * (1.0 - tf.square(x))
    return [change, tf.reduce_sum(change, 0)]


def nearest(x: Any) -> list[Any]:
    return [tf.argmin(tf.square(x) + x, -1), tf.argmax(tf.abs(x), -1, output_type=tf.int32)]


def mean_of_rows(x: Any) -> list[Any]:
    return [tf.reduce_mean(tf.sqrt(tf.reduce_sum(tf.square(x), -1)))]


ONE: dict[str, Callable[[Any], list[Any]]] = {
    "layer_norm": layer_norm,
    "log_sum_exp": log_sum_exp,
    "losses": losses,
    "bias_gradient": bias_gradient,
    "nearest": nearest,
    "mean_of_rows": mean_of_rows,
    "softmax": lambda x: [tf.nn.softmax(x * 3.0), tf.nn.log_softmax(x - 1.0)],
    "unit rows": lambda x: [x * tf.rsqrt(tf.reduce_sum(tf.square(x), -1, keepdims=True))],
}


@pytest.mark.parametrize("dims", [(7, 10), (3, 2), (4, 70), (2, 1000)], ids=str)
@pytest.mark.parametrize("name", list(ONE))
def test_one_cluster(name: str, dims: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, dims)
    fetches = ONE[name](x * 0.5)
    assert len(clusters(fetches, [x])) == 1
    value = np.random.RandomState(0).randn(*dims)
    check(fetches, {x: value}, monkeypatch)


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_a_cross_entropy_with_its_gradient(is_sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.RandomState(1)
    x, b = tf.placeholder(tf.float32, [6, 10]), tf.placeholder(tf.float32, [10])
    logits = tf.nn.bias_add(x, b)
    if is_sparse:
        labels, value = tf.placeholder(tf.int32, [6]), random.randint(0, 10, 6)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    else:
        labels, value = tf.placeholder(tf.float32, [6, 10]), np.eye(10)[random.randint(0, 10, 6)]
        loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
    total = tf.reduce_mean(loss)
    fetches = [total, *tf.gradients(total, [x, b])]
    (found,) = clusters(fetches, [x, b, labels])
    assert found.startswith("BiasAdd+Max+Sub+Exp+Sum")
    feed = {x: random.randn(6, 10) * 3, b: random.randn(10), labels: value}
    check(fetches, feed, monkeypatch)


def test_labels_that_are_out_of_bounds_are_an_error() -> None:
    x, labels = tf.placeholder(tf.float32, [3, 4]), tf.placeholder(tf.int32, [3])
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x * 2.0)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="outside the valid"):
        session.run(loss, {x: np.ones((3, 4)), labels: [0, 4, 1]})


def test_reductions_over_columns_end_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, [6, 10])
    mean, variance = moments(x * 2.0, [0])
    fetches = [(x - mean) * tf.rsqrt(variance + 1e-3)]
    found = clusters(fetches, [x])
    assert len(found) > 1 and all(each.count("Sum") <= 1 for each in found)
    check(fetches, {x: np.random.randn(6, 10)}, monkeypatch)


def test_a_first_size_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    x, labels = tf.placeholder(tf.float32, [None, 10]), tf.placeholder(tf.int32, [None])
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x * 0.5)
    fetches = [tf.reduce_mean(loss), tf.gradients(loss, x)[0]]
    found, *_ = clusters(fetches, [x, labels])
    assert found.startswith("Mul+Max+Sub+Exp+Sum") and found.endswith("+Sum")
    monkeypatch.setattr("flowstone.runtime.plans.plans_by_shape.AT_ONCE", 0)
    monkeypatch.setattr("flowstone.runtime.plans.plans_by_shape.MOST_WIDENINGS", 0)
    random = np.random.RandomState(2)
    with tf.Session() as session:
        for n in (5, 1, 7, 40, 3000):
            feed = {x: random.randn(n, 10), labels: random.randint(0, 10, n)}
            monkeypatch.setattr(flags, "NATIVE", 2)
            ours = session.run(fetches, feed)
            monkeypatch.setattr(flags, "NATIVE", 0)
            with tf.Session() as other:
                atens = other.run(fetches, feed)
            np.testing.assert_allclose(ours[0], atens[0], rtol=1e-6)
            np.testing.assert_allclose(ours[1], atens[1], rtol=1e-5, atol=1e-7)


def test_axes_that_are_not_at_an_end_part_clusters() -> None:
    x = tf.placeholder(tf.float32, [6, 10, 4])
    y = tf.exp(x) * 2.0
    assert clusters([tf.reduce_sum(y, 1)], [x]) == ["Exp+Mul"]
    assert clusters([tf.reduce_sum(y, [0, 1])], [x]) == ["Exp+Mul+Sum"]
