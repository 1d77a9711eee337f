"""Small updates with the same numbers are one call: which, how large, and when they run."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.lowering.passes import EVERY
from flowstone.native.codegen import host
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


# ---- gradients that a number scales

OPTIMIZERS = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "Nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "Adam": lambda: tf.train.AdamOptimizer(0.1),
    "RMSProp": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "Ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.1),
}


def clipped(optimizer, use_resource=False, sizes=((3, 2), (5,), (4, 4), (300, 100))):
    """Variables, and a step by gradients that are scaled to a global norm; one is not."""
    numbers = np.random.RandomState(0)
    variables = [
        tf.get_variable(f"v{i}", initializer=numbers.randn(*shape).astype("f"), use_resource=use_resource)
        for i, shape in enumerate(sizes)
    ]
    targets = [numbers.randn(*shape).astype("f") for shape in sizes]
    loss = tf.add_n([tf.reduce_sum(tf.sin(v) * y) for v, y in zip(variables, targets)])
    gradients, norm = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.5)
    last = tf.get_variable("last", initializer=np.ones(3, "f"), use_resource=use_resource)
    pairs = [*zip(gradients, variables), (tf.gradients(tf.reduce_sum(tf.sin(last)), last)[0], last)]
    return [*variables, last], norm, gradients, optimizer.apply_gradients(pairs)


@pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
@pytest.mark.parametrize("use_resource", [False, True])
def test_the_update_scales_the_gradients(monkeypatch, use_resource):
    monkeypatch.setattr(flags, "NATIVE", 2)
    *_, gradients, step = clipped(tf.train.MomentumOptimizer(0.1, 0.9), use_resource)
    name = "_GroupedResourceUpdate(" if use_resource else "_GroupedUpdate("
    with tf.Session() as session:
        scaled, plain = (session.explain([step, *more]).splitlines() for more in ([], gradients))
    updates = [[line for line in lines if name in line] for lines in (scaled, plain)]
    assert [("scaled=True" in line, line.partition(")")[0].count("%")) for line in updates[0]] == [
        (True, 16),  # two variables, a gradient and a name, of four; two rates and the scale
        (False, 6),
    ]
    assert len(updates[1]) == 1 and "scaled" not in updates[1][0]
    products = [sum(" = Mul(" in line for line in lines) for lines in (scaled, plain)]
    assert products[1] >= products[0] + 4


@pytest.mark.both_ways
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_scaled_updates_have_the_bits_of_products_and_updates(monkeypatch, name):
    if not host.reason():
        monkeypatch.setattr(flags, "NATIVE", 2)
    results = []
    for fetched in (False, True):  # a product that is fetched stays a node of its own
        with tf.Graph().as_default(), tf.Session() as session:
            variables, norm, gradients, step = clipped(OPTIMIZERS[name]())
            session.run(tf.global_variables_initializer())
            more = gradients if fetched else []
            norms = [session.run([norm, step, *more])[0] for _ in range(4)]
            assert all(each > 0.5 for each in norms)
            results.append([*session.run(variables), np.array(norms)])
    for one, other in zip(*results):
        np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
def test_what_others_take_and_small_gradients_of_their_own_scale_stay(monkeypatch):
    monkeypatch.setattr(flags, "NATIVE", 2)
    scale = tf.placeholder(tf.float32, [])
    v = [tf.Variable(tf.ones([4]), name=f"v{i}") for i in range(4)]
    state = tf.Variable(2.0, name="scale")
    x = tf.placeholder(tf.float32, [4])
    taken = x * scale
    pairs = [
        (taken, v[0]),  # fetched
        (tf.sin(x) * tf.cos(scale), v[1]),  # alone, and small
        (tf.exp(x) * state, v[2]),  # by a variable
        (tf.exp(-x) * state, v[3]),
    ]
    step = tf.train.GradientDescentOptimizer(1.0).apply_gradients(pairs)
    subgraph = prune([taken], [step], [x, scale])
    run_passes(subgraph, EVERY, {p.name for p in EVERY} - {"compile_updates"})
    check(subgraph)
    assert not any(node.attributes.get("scaled") for node in subgraph.nodes)
    assert sum(node.type == "_GroupedUpdate" for node in subgraph.nodes) == 1
