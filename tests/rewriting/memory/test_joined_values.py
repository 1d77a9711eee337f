"""Operands of concatenations that are let go, as gradients read the joined value: graphs, results, limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.analyses.memory_estimate import peak_memory
from flowstone.rewriting.invariants import check
from flowstone.rewriting.memory import joined_values
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune

NAME = "read_joined_values"
RNG = np.random.default_rng(15)


@pytest.fixture(autouse=True)
def settings(monkeypatch) -> None:
    monkeypatch.setattr(joined_values, "WORTHWHILE", 1)


def joined(*activations: Any, axis: int = 1, layers: int = 2) -> tuple[Any, Any, Any]:
    """(feed, values to compute, joined values) of layers that join the activations of products."""
    x = tf.placeholder(tf.float32, [6, 5], name="x")
    y, joins = x, []
    for _ in range(layers):
        width = int(y.shape[1])
        weights = [
            tf.constant(RNG.standard_normal((width, 4 + i)), tf.float32) for i in range(len(activations))
        ]
        if axis == 0:
            weights = [tf.constant(RNG.standard_normal((width, 4)), tf.float32) for _ in activations]
        parts = [f(tf.matmul(y, w)) for f, w in zip(activations, weights)]
        y = tf.concat(parts, axis)
        joins.append(y)
        y = y * tf.sqrt(tf.square(y) + 1.0)
    (gradient,) = tf.gradients(tf.reduce_sum(tf.square(y)), x)
    return {x: RNG.standard_normal((6, 5)).astype("f")}, [gradient], joins


def rewritten(fetches: Any, feeds: Any) -> Any:
    """The subgraph after this pass alone, and the nodes that it changed."""
    subgraph = prune(fetches, [], list(feeds))
    run_passes(subgraph, EVERY, {each.name for each in EVERY} - {NAME})
    check(subgraph)
    changed = {name for _, name, _ in subgraph.log}
    return subgraph, [node for node in subgraph.nodes if node.name in changed]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gradients_read_the_joined_value(monkeypatch, axis) -> None:
    feed, fetches, joins = joined(tf.nn.relu, tf.tanh, tf.sigmoid, axis=axis)
    log = agree(monkeypatch, fetches, feed, NAME, fires=6, tolerance=0)
    assert log.count(f"{NAME}: ") == 6
    _, changed = rewritten(fetches, feed)
    taken = [
        (node.type, x.op.type, x.op.inputs[0].op.name, x.value_index)
        for node in changed
        for x in [node.inputs[1 if node.type == "ReluGrad" else 0]]
    ]
    kinds = ("ReluGrad", "TanhGrad", "SigmoidGrad")
    names = [join.op.name for join in joins]
    assert set(taken) == {(kind, "SplitV", name, i) for name in names for i, kind in enumerate(kinds)}


def test_operands_that_go_have_no_other_consumer() -> None:
    feed, fetches, _ = joined(tf.nn.relu, tf.tanh)
    subgraph, _ = rewritten(fetches, feed)
    consumers = subgraph.consumers()
    kinds = [
        node.type for each in subgraph.nodes if each.type == "Relu" for node in consumers[each.outputs[0]]
    ]
    assert kinds == ["ConcatV2"] * 2


def test_activations_whose_gradient_takes_their_input_stay() -> None:
    feed, fetches, _ = joined(tf.nn.softplus, tf.nn.relu)
    assert [node.type for node in rewritten(fetches, feed)[1]] == ["ReluGrad"] * 2


def test_what_others_look_at_is_there_anyway() -> None:
    feed, fetches, joins = joined(tf.nn.relu, tf.nn.relu, layers=1)
    assert len(rewritten(fetches, feed)[1]) == 2
    assert rewritten([*fetches, *joins[0].op.inputs[:2]], feed)[1] == []


def test_a_value_that_nobody_holds_is_not_held() -> None:
    """The gradient of a product with a constant does not take the joined value."""
    x = tf.placeholder(tf.float32, [6, 5])
    joined = tf.concat([tf.nn.relu(x * 2.0), x], 1)
    loss = tf.reduce_sum(tf.matmul(joined, tf.ones([10, 3])))
    for _ in range(5):
        loss = tf.square(loss)
    assert rewritten(tf.gradients(loss, x), [x])[1] == []


def test_the_peak_is_lower() -> None:
    feed, fetches, _ = joined(tf.nn.relu, tf.nn.relu, tf.nn.relu, layers=4)
    peaks = []
    for disabled in (set(), {NAME}):
        subgraph = prune(fetches, [], list(feed))
        run_passes(
            subgraph,
            EVERY,
            {each.name for each in EVERY if each.name in disabled or "recompute" in each.name},
        )
        peaks.append(peak_memory(subgraph))
    assert peaks[0] < peaks[1]


def test_small_operands_wait(monkeypatch) -> None:
    monkeypatch.undo()
    feed, fetches, _ = joined(tf.nn.relu, tf.nn.relu)
    assert f"{NAME}: " not in tf.Session().explain(fetches, feed)
