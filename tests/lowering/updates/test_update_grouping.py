"""Small updates with the same numbers are one call: which, how large, and when they run."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.lowering.passes import EVERY
from flowstone.native import host
from flowstone.rewriting.invariants import check
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune


def types(fetches, feeds, *names, targets=()):
    """The ops' types before and after only the passes of these names."""
    subgraph = prune(fetches, list(targets), feeds)
    before = [node.type for node in subgraph.nodes]
    run_passes(subgraph, EVERY, {p.name for p in EVERY} - set(names))
    check(subgraph)
    return before, [node.type for node in subgraph.nodes]


def updates_of(optimizer, count, use_resource=False):
    variables = [
        tf.get_variable(
            f"v{i}", [3, 2], initializer=tf.constant_initializer(i + 1.0), use_resource=use_resource
        )
        for i in range(count)
    ]
    loss = tf.add_n([tf.reduce_sum(tf.square(v)) * (i + 1) for i, v in enumerate(variables)])
    return variables, optimizer.minimize(loss)


@pytest.mark.parametrize("use_resource", [False, True])
def test_small_updates_with_the_same_numbers_are_one_call(use_resource):
    _, train = updates_of(tf.train.MomentumOptimizer(0.1, 0.9), 5, use_resource)
    before, after = types([], [], *[p.name for p in EVERY], targets=[train])
    name = "ResourceApplyMomentum" if use_resource else "ApplyMomentum"
    grouped = "_GroupedResourceUpdate" if use_resource else "_GroupedUpdate"
    assert before.count(name) == 5 and name not in after and after.count(grouped) == 1


@pytest.mark.by_aten
def test_joined_variables_fit_in_a_cache() -> None:
    values = [tf.Variable(tf.ones([4096])) for _ in range(10)] + [
        tf.Variable(tf.ones([4097])),
        tf.Variable(0.5),
    ]
    optimizer = tf.train.RMSPropOptimizer(0.1)
    train = optimizer.apply_gradients([(tf.ones(x.shape), x) for x in values])
    _, after = types([], [], *[p.name for p in EVERY], targets=[train])
    assert after.count("_GroupedUpdate") == 1 and after.count("ApplyRMSProp") == 4
    optimizer = tf.train.AdagradOptimizer(0.1)
    train = optimizer.apply_gradients([(tf.ones(x.shape), x) for x in values])
    _, after = types([], [], *[p.name for p in EVERY], targets=[train])
    assert after.count("_GroupedUpdate") == 1 and "ApplyAdagrad" not in after


def test_an_update_that_somebody_waits_for_runs_before_him():
    v = [tf.Variable(tf.ones([2]), name=f"v{i}") for i in range(5)]
    first = [tf.assign_sub(v[0], [0.0, 0.0])]
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    applied = optimizer.apply_gradients([(tf.ones([2]), x) for x in v])
    with tf.control_dependencies([applied]):
        after = tf.add_n([x + 0.0 for x in v])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run([after, first])[0], [0, 0])


@pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
def test_a_gradient_may_be_a_variable_even_one_that_is_updated_next(monkeypatch):
    monkeypatch.setattr(flags, "NATIVE", 2)
    v = [tf.Variable(np.arange(6, dtype=np.float32) + i, name=f"v{i}") for i in range(3)]
    first = tf.raw_ops.ApplyGradientDescent(var=v[0]._ref(), alpha=1.0, delta=v[2]._ref())
    with tf.control_dependencies([first]):
        second = tf.raw_ops.ApplyGradientDescent(var=v[1]._ref(), alpha=1.0, delta=v[0]._ref())
    _, after = types([], [], *[p.name for p in EVERY], targets=[second.op])
    assert after.count("_GroupedUpdate") == 2 and "ApplyGradientDescent" not in after
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(second.op)
        np.testing.assert_array_equal(session.run(v[0]), [-2] * 6)
        np.testing.assert_array_equal(session.run(v[1]), np.arange(6) + 3)
