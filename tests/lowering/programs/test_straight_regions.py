"""Many nodes on small arrays as machine code: what is joined, how regions hand on values, equal results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.lowering.programs import straight_regions
from flowstone.lowering.programs.straight_regions import join_straight_programs
from flowstone.rewriting.simplification.partial_execution import prune
from three_ways import steps


def _cells(x: Any, w: Any) -> list[Any]:
    h = x
    for _ in range(12):
        z = tf.matmul(h, w)
        z = z - tf.reduce_max(z, 1, keepdims=True)
        h = tf.concat([tf.exp(z)[:, 2:], h[:, :2] / tf.reduce_sum(tf.exp(z))], 1)
    return [h]


def _scalars(x: Any, w: Any) -> list[Any]:
    a, b = tf.reduce_sum(x), tf.reduce_max(w)
    for _ in range(250):
        a, b = tf.tanh(a * b + a), b * 0.9 + a
    return [a, b]


def _branches(x: Any, w: Any) -> list[Any]:
    return [tf.add_n([tf.reduce_sum(tf.tanh(x * float(i)) * w[i % 4]) for i in range(40)])]


def _integers(x: Any, w: Any) -> list[Any]:
    n = tf.cast(x * 5.0, tf.int32)
    for i in range(40):
        n = tf.reverse(n, [1]) + tf.reduce_max(n) - i
    return [n, tf.cast(n, tf.float32) * w]


def _gradients(x: Any, w: Any) -> list[Any]:
    (h,) = _cells(x, w)
    return list(tf.gradients(tf.reduce_sum(h), [x, w]))


PROGRAMS: dict[str, Callable[[Any, Any], list[Any]]] = {
    "cells": _cells,
    "scalars": _scalars,
    "branches": _branches,
    "integers": _integers,
    "gradients": _gradients,
}
X = np.linspace(-1, 1, 4, dtype=np.float32).reshape(1, 4)
W = np.cos(np.arange(16, dtype=np.float32)).reshape(4, 4)


def _feeds() -> tuple[Any, Any]:
    return tf.placeholder(tf.float32, [1, 4], name="x"), tf.placeholder(tf.float32, [4, 4], name="w")


def _joined(fetches: Any, feeds: Any) -> list[Any]:
    subgraph = prune(fetches, [], feeds)
    join_straight_programs(subgraph)
    return [node for node in subgraph.nodes if node.type == "_Program"]


@pytest.mark.parametrize("most", [300, 40])
@pytest.mark.parametrize("name", PROGRAMS)
def test_has_the_values_of_its_nodes(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(straight_regions, "_MOST_STATEMENTS", most)
    with tf.Graph().as_default():
        x, w = _feeds()
        fetches = PROGRAMS[name](x, w)
        feed = {x: X, w: W}
        monkeypatch.setattr(flags, "NATIVE", 0)
        wanted, plan = steps(fetches, feed)
        assert "_Program(" not in plan
        for native in (1, 2):  # in few steps, the first means the program's own nodes
            monkeypatch.setattr(flags, "NATIVE", native)
            found, plan = steps(fetches, feed)
            assert "_Program(" in plan, plan
            for a, b in zip(found, wanted, strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_regions_hand_on_values_in_one_array(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(straight_regions, "_MOST_STATEMENTS", 40)
    x, w = _feeds()
    found = _joined(_scalars(x, w), [x, w])
    assert len(found) > 5
    for node in found[1:-1]:
        members = node.attributes["members"]
        assert len(members.packed_inputs) == 1 and len(members.packed_outputs) == 1
        assert len(node.outputs) == 1 + len(members.outputs)


def test_branches_are_one_program() -> None:
    x, w = _feeds()
    assert len(_joined(_branches(x, w), [x, w])) == 1


def test_few_nodes_and_large_arrays_stay() -> None:
    x, w = _feeds()
    assert not _joined([tf.matmul(tf.tanh(x), w)], [x, w])
    large = tf.placeholder(tf.float32, [64, 64])
    y = large
    for _ in range(60):
        y = tf.matmul(y, y)
    assert not _joined([y], [large])


def _block(x: Any) -> Any:
    """A convolution with a filter of its own, normalised over the batch."""
    channels = x.shape[-1].value
    w = tf.Variable(np.random.RandomState(channels).randn(3, 3, channels, channels).astype(np.float32) / 6)
    scale, offset = tf.Variable(np.ones(channels, np.float32)), tf.Variable(np.zeros(channels, np.float32))
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
    mean, variance = tf.nn.moments(y, [0, 1, 2])
    return tf.nn.relu(tf.nn.batch_normalization(y, mean, variance, offset, scale, 1e-3))


@pytest.mark.parametrize("optimiser", ["Momentum", "Adam"])
@pytest.mark.parametrize("image", [(1, 6, 6, 4), (2, 4, 4, 8)], ids=str)
def test_layers_of_a_deep_network_have_the_same_code(
    image: tuple[int, ...], optimiser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(straight_regions, "_MOST_STATEMENTS", 60)
    x = tf.placeholder(tf.float32, image)
    h = x
    for _ in range(14):
        h = h + _block(h)
    loss = tf.reduce_mean(tf.square(h))
    train = {"Momentum": tf.train.MomentumOptimizer(1e-2, 0.9), "Adam": tf.train.AdamOptimizer(1e-3)}[
        optimiser
    ]
    fetches = [loss, train.minimize(loss)]
    feed = {x: np.random.RandomState(0).randn(*image).astype(np.float32)}
    monkeypatch.setattr(flags, "NATIVE", 0)
    wanted, plan = steps(fetches, feed, tf.global_variables_initializer(), runs=4)
    assert "_Program(" not in plan
    monkeypatch.setattr(flags, "NATIVE", 2)
    found, plan = steps(fetches, feed, tf.global_variables_initializer(), runs=4)
    assert "_Program(" in plan and "convolution" not in plan.split("def segment")[1], plan
    for a, b in zip(found, wanted, strict=True):
        assert b is None or abs(a - b) <= 1e-3 * abs(b)
    shared = _joined([loss, *tf.gradients(loss, tf.trainable_variables())], [x])
    programs = [node.attributes["members"].program for node in shared]
    assert len(set(programs)) <= len(programs) / 2


def test_a_variable_is_read_before_it_is_assigned() -> None:
    v = tf.Variable(np.ones(4, np.float32))
    y = v + 0.0
    for i in range(50):
        y = tf.reverse(y, [0]) * 1.01 + float(i)
    with tf.control_dependencies([y]):
        done = tf.assign(v, y)
    for native in (0, 2):
        flags.NATIVE = native
        with tf.Session() as session:
            session.run(v.initializer)
            values = [session.run([y, done])[0].copy() for _ in range(2)]
        if not native:
            wanted = values
    np.testing.assert_allclose(values, wanted, rtol=1e-5)
    assert not np.allclose(values[0], values[1])


def test_an_error_names_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    n = tf.placeholder(tf.int32, [])
    y = n
    for _ in range(40):
        y = tf.maximum(y // 2, 3) + tf.reduce_sum(tf.stack([y, n]))
    z = tf.floordiv(y, n, name="divided")
    with tf.Session() as session:
        assert "_Program(" in session.explain(z, {n: 1})
        for _ in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError, match="divided"):
                session.run(z, {n: 0})


def test_regions_around_loops_make_no_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.linspace(-1, 1, 60).reshape(4, 5, 3).astype("f")

    def computed() -> Any:
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(1)
            x, lengths = tf.constant(values), tf.constant([5, 3, 1, 2])

            def cells() -> list[Any]:
                return [tf.nn.rnn_cell.GRUCell(4), tf.nn.rnn_cell.BasicLSTMCell(3)]

            found = tf.contrib.rnn.stack_bidirectional_dynamic_rnn(
                cells(), cells(), x, dtype=tf.float32, sequence_length=lengths
            )
            unrolled = tf.contrib.rnn.stack_bidirectional_rnn(
                cells(), cells(), tf.unstack(x, axis=1), dtype=tf.float32, scope="st"
            )
            session.run(tf.global_variables_initializer())
            return session.run([found[0], unrolled[0]])

    found = computed()
    monkeypatch.setattr(flags, "NATIVE", 0)
    for a, b in zip(found, computed()):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_sums_of_products_of_a_loop_beside_it_stay_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop, which machine code does not have, hands on an object; a program would make an array of it."""
    x = tf.placeholder(tf.float32, [3, 9])
    w = tf.placeholder_with_default(np.eye(9, dtype=np.float32) * 0.5, [9, 9])

    def body(i: Any, h: Any) -> tuple[Any, Any]:
        h = tf.tanh(tf.matmul(h, w))
        return i + 1, h * tf.exp(tf.linalg.slogdet(tf.matmul(h, h, transpose_b=True) + tf.eye(3))[1])

    _, last = tf.while_loop(lambda i, h: i < 5, body, [0, x])
    y = x
    for _ in range(40):
        y = tf.tanh(tf.matmul(y, w))
    total = tf.reduce_sum(last) + tf.reduce_sum(y)
    fetches, feed = [total, *tf.gradients(total, [w])], {x: np.sin(np.arange(27)).reshape(3, 9) * 0.3}
    found, plan = steps(fetches, feed)
    assert "_ProductSum(" in plan and "_Program(" in plan
    monkeypatch.setattr(flags, "NATIVE", 0)
    wanted, _ = steps(fetches, feed)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
