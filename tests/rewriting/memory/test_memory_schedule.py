"""The order of low peak memory: graph text before and after, what stays in order, equal results."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.rewriting.analyses.memory_estimate import peak_memory
from flowstone.rewriting.invariants import check
from flowstone.rewriting.memory import memory_schedule
from flowstone.rewriting.memory.memory_schedule import lower_peak, schedule_memory, split_sums
from flowstone.rewriting.simplification.partial_execution import prune


@pytest.fixture(autouse=True)
def settings(monkeypatch) -> None:
    monkeypatch.setattr(memory_schedule, "WORTHWHILE", 0)


def lines(subgraph):
    return str(subgraph).splitlines()


def names(subgraph):
    return [node.name for node in subgraph.nodes]


def test_what_frees_memory_goes_first():
    x = tf.placeholder(tf.float32, [2, 100], name="x")
    products = [tf.matmul(x, x, transpose_a=True, name=f"product{i}") for i in range(2)]
    sums = [tf.reduce_sum(p, name=f"sum{i}") for i, p in enumerate(products)]
    subgraph = prune(sums, [], [x])
    assert names(subgraph) == ["x", "product0", "product1", "Const", "sum0", "Const_1", "sum1"]
    before = peak_memory(subgraph)
    lower_peak(subgraph)
    check(subgraph)
    assert lines(subgraph) == [
        "%0 = _Arg() index=0 : float32[2,100]  # x",
        "%1 = Const() value=[0,1] : int32[2]  # Const",
        "%2 = Const() value=[0,1] : int32[2]  # Const_1",
        "%3 = MatMul(%0, %0) transpose_a=True : float32[100,100]  # product0",
        "%4 = Sum(%3, %1) : float32[]  # sum0",
        "%5 = MatMul(%0, %0) transpose_a=True : float32[100,100]  # product1",
        "%6 = Sum(%5, %2) : float32[]  # sum1",
        "return %4, %6",
    ]
    assert (before, peak_memory(subgraph)) == (80_004, 40_008)
    assert subgraph.log == [
        ("schedule_memory", "the order", "release early: an estimated peak of 40,008 bytes instead of 80,004")
    ]


def test_an_order_that_is_no_better_is_left_alone():
    x = tf.placeholder(tf.float32, [100, 100], name="x")
    y = tf.matmul(tf.tanh(tf.matmul(x, x)), x)
    subgraph = prune([y], [], [x])
    before = str(subgraph)
    lower_peak(subgraph)
    assert str(subgraph) == before and not subgraph.log


def test_small_steps_are_left_alone(monkeypatch):
    monkeypatch.setattr(memory_schedule, "WORTHWHILE", 80_005)
    x = tf.placeholder(tf.float32, [2, 100])
    products = [tf.matmul(x, x, transpose_a=True) for _ in range(2)]
    subgraph = prune([tf.reduce_sum(product) for product in products], [], [x])
    before = str(subgraph)
    schedule_memory(subgraph)
    assert str(subgraph) == before
    monkeypatch.setattr(memory_schedule, "WORTHWHILE", 80_004)
    schedule_memory(subgraph)
    assert str(subgraph) != before


def test_control_edges_hold():
    x = tf.placeholder(tf.float32, [2, 100], name="x")
    first, second = (tf.matmul(x, x, transpose_a=True, name=n) for n in ("first", "second"))
    with tf.control_dependencies([second]):
        total = tf.reduce_sum(first, name="total")
    subgraph = prune([total, tf.reduce_sum(second, name="other")], [], [x])
    lower_peak(subgraph)
    check(subgraph)
    assert names(subgraph).index("second") < names(subgraph).index("total")


def test_updates_go_where_their_gradients_are_known_but_after_the_uses_of_the_variable():
    x = tf.placeholder(tf.float32, [4, 300])
    weights = [tf.Variable(tf.zeros([300, 300]), name=f"w{i}") for i in range(4)]
    y = x
    for w in weights:
        y = tf.tanh(tf.matmul(y, w))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y))
    subgraph = prune([], [train], [x])
    before = peak_memory(subgraph)
    lower_peak(subgraph)
    check(subgraph)
    assert peak_memory(subgraph) < 0.6 * before
    order = names(subgraph)
    for i in range(4):
        update = order.index(f"GradientDescent/update_w{i}/ApplyGradientDescent")
        uses = [
            order.index(node.name)
            for node in subgraph.nodes
            if f"w{i}/read" in [x.op.name for x in node.inputs]
        ]
        assert len(uses) >= 1 and max(uses) < update
        if i:
            assert update < order.index(f"GradientDescent/update_w{i - 1}/ApplyGradientDescent")


@pytest.mark.parametrize("use_resource", [False, True])
def test_reads_before_and_after_a_change_stay_there(use_resource):
    """A fetch of the old value as a large product, an update, and one of the new value."""
    initial = np.arange(600 * 600, dtype=np.float32).reshape(600, 600) / 1e5
    v = tf.get_variable("v", initializer=initial, use_resource=use_resource)
    old = tf.reduce_sum(tf.matmul(v.read_value() if use_resource else v, tf.constant(initial)))
    with tf.control_dependencies([old]):
        update = v.assign_add(tf.matmul(tf.constant(initial), tf.constant(initial)))
    with tf.control_dependencies([update if isinstance(update, tf.Tensor) else update.op]):
        new = tf.reduce_sum(v.read_value() * 2.0)
    results = []
    for passes in ("", "schedule_memory"):
        with tf.Session() as session:
            without = flags.DISABLED_PASSES | frozenset([passes])
            session.planner.options = session.planner.options._replace(disabled_passes=without)
            session.run(v.initializer)
            results.append(session.run([old, new]))
    assert results[0] == results[1]
    np.testing.assert_allclose(results[0][0], (initial @ initial).sum(), rtol=1e-4)
    np.testing.assert_allclose(results[0][1], 2 * (initial + initial @ initial).sum(), rtol=1e-4)


def test_sums_of_large_terms_become_chains():
    x = tf.placeholder(tf.float32, [2, 300], name="x")
    products = [tf.matmul(x, x, transpose_a=True, name=f"p{i}") for i in range(4)]
    total = tf.add_n(products, name="total")
    subgraph = prune([total], [], [x])
    split_sums(subgraph)
    check(subgraph)
    assert lines(subgraph)[5:] == [
        "%5 = AddN(%1, %2) : float32[300,300]  # total/partial_1",
        "%6 = AddN(%5, %3) : float32[300,300]  # total/partial_2",
        "%7 = AddN(%6, %4) : float32[300,300]  # total",
        "return %7",
    ]
    before = peak_memory(prune([total], [], [x]))
    lower_peak(subgraph)
    assert names(subgraph) == ["x", "p0", "p1", "total/partial_1", "p2", "total/partial_2", "p3", "total"]
    assert before == 4 * 360_000 and peak_memory(subgraph) == 2 * 360_000


def test_small_sums_stay_one_call():
    x = tf.placeholder(tf.float32, [2, 3])
    total = tf.add_n([tf.matmul(x, x, transpose_a=True) for _ in range(4)])
    subgraph = prune([total], [], [x])
    before = str(subgraph)
    split_sums(subgraph)
    assert str(subgraph) == before


def test_loops_stay_blocks():
    x = tf.placeholder(tf.float32, [2, 300], name="x")
    kept = [tf.matmul(x, x, transpose_a=True, name=f"p{i}") for i in range(3)]
    last = tf.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, tf.tanh(t) + kept[0]), (0, kept[1]))[1]
    results = [tf.reduce_sum(last), tf.reduce_sum(kept[2])]
    subgraph = prune(results, [], [x])
    lower_peak(subgraph)
    check(subgraph)
    assert subgraph.log
    values = np.random.default_rng(0).random((2, 300), np.float32)
    found = []
    for disabled in ("schedule_memory", ""):
        with tf.Session() as session:
            without = flags.DISABLED_PASSES | frozenset([disabled])
            session.planner.options = session.planner.options._replace(disabled_passes=without)
            found.append(session.run(results, {x: values}))
    assert found[0] == found[1]


@pytest.mark.parametrize("cell", [tf.nn.rnn_cell.BasicLSTMCell, tf.nn.rnn_cell.GRUCell])
def test_training_steps_are_equal_bit_for_bit(cell):
    """Dropout, recurrent weights, momentum: three steps with and without the order."""
    x = tf.placeholder(tf.float32, [20, 6, 200])
    outputs, _ = tf.nn.static_rnn(cell(200), tf.unstack(x, axis=1), dtype=tf.float32)
    weights = tf.get_variable("weights", [200, 3000])
    y = tf.matmul(tf.nn.dropout(tf.concat(outputs, 0), 0.5, seed=3), weights)
    loss = tf.reduce_mean(tf.square(y))
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    variables = tf.global_variables()
    tf.set_random_seed(7)
    initial = [
        np.random.default_rng(i).normal(size=v.shape).astype(np.float32) / 9 for i, v in enumerate(variables)
    ]
    values = np.random.default_rng(1).random((20, 6, 200), np.float32)
    results = []
    for disabled in ("schedule_memory", ""):
        with tf.Session() as session:
            without = flags.DISABLED_PASSES | frozenset([disabled, "stack_products"])
            session.planner.options = session.planner.options._replace(disabled_passes=without)
            for v, value in zip(variables, initial):
                v.load(value, session)
            losses = [session.run([train, loss], {x: values})[1] for _ in range(3)]
            results.append([*losses, *session.run(variables)])
            log = session.explain([train, loss], [x])
    assert "large terms, added as they come" in log and "schedule_memory: the order" in log
    for with_it, without in zip(*results):
        np.testing.assert_array_equal(with_it, without)
