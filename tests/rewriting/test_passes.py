"""Rewriting passes: graph text before and after, and equal results with and without each."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.framework.declarations.kernel import Environment
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.invariants import check
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune


def rewritten(fetches, feeds, *names, targets=()):
    """Text before and after only the passes of these names."""
    subgraph = prune(fetches, list(targets), feeds)
    before = str(subgraph)
    run_passes(subgraph, EVERY, {p.name for p in EVERY} - set(names))
    check(subgraph)
    return before, str(subgraph)


def lines(text):
    return [line.strip() for line in text.strip().splitlines()]


def test_pruning_keeps_what_the_fetch_needs_and_cuts_at_feeds():
    x = tf.placeholder(tf.float32, [2], name="x")
    a = tf.add(x, x, name="a")
    b = tf.multiply(a, a, name="b")
    tf.negative(b, name="unused")
    assert lines(str(prune([b], [], [x]))) == [
        "%0 = _Arg() index=0 : float32[2]  # x",
        "%1 = Add(%0, %0) : float32[2]  # a",
        "%2 = Mul(%1, %1) : float32[2]  # b",
        "return %2",
    ]
    assert lines(str(prune([b], [], [a]))) == [
        "%0 = _Arg() index=0 : float32[2]  # a",
        "%1 = Mul(%0, %0) : float32[2]  # b",
        "return %1",
    ]


def test_pruning_follows_control_edges_and_orders_by_creation():
    first = tf.no_op(name="first")
    with tf.control_dependencies([first]):
        second = tf.constant(1.0, name="second")
    late = tf.no_op(name="late")
    second.op._add_control_input(late)
    assert lines(str(prune([second], [], []))) == [
        "%0 = NoOp()  # first",
        "%1 = NoOp()  # late",
        "%2 = Const(^%0, ^%1) value=1. : float32[]  # second",
        "return %2",
    ]


def test_constant_folding():
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.add(
        x, tf.multiply(tf.constant(2.0, name="two"), tf.constant(3.0, name="three"), name="six"), name="y"
    )
    before, after = rewritten([y], [x], "fold_constants", "remove_unneeded")
    assert lines(before) == [
        "%0 = _Arg() index=0 : float32[2]  # x",
        "%1 = Const() value=2. : float32[]  # two",
        "%2 = Const() value=3. : float32[]  # three",
        "%3 = Mul(%1, %2) : float32[]  # six",
        "%4 = Add(%0, %3) : float32[2]  # y",
        "return %4",
    ]
    assert lines(after) == [
        "%0 = _Arg() index=0 : float32[2]  # x",
        "%1 = Const() value=6. : float32[]  # six",
        "%2 = Add(%0, %1) : float32[2]  # y",
        "return %2",
    ]


def test_folding_leaves_random_ops_state_and_fed_constants_alone():
    c = tf.constant(2.0, name="c")
    assert "Add" in rewritten([tf.add(c, c)], [c], "fold_constants")[1]
    assert "RandomUniform" in rewritten([tf.random_uniform([2])], [], "fold_constants")[1]
    v = tf.Variable(1.0)
    assert "Assign" in rewritten([tf.assign(v, c)], [], "fold_constants")[1]


def test_large_results_are_left_to_the_step():
    small, large = tf.fill([10], 1.0), tf.fill([1000, 1000], 1.0)
    assert "= Fill(" not in rewritten([small], [], "fold_constants", "remove_unneeded")[1]
    assert "= Fill(" in rewritten([large], [], "fold_constants", "remove_unneeded")[1]
    matrix = tf.constant(np.ones((300, 300)))  # larger than what comes of it
    assert "= Transpose(" not in rewritten([tf.transpose(matrix)], [], "fold_constants", "remove_unneeded")[1]


def test_a_constant_error_is_left_to_the_step():
    bad = tf.floordiv(tf.constant(1), tf.constant(0))
    before, after = rewritten([bad], [], "fold_constants")
    assert before == after
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(bad)


def test_identities():
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.negative(tf.identity(tf.identity(x)), name="y")
    _, after = rewritten([y], [x], "apply_identities", "remove_unneeded")
    assert lines(after) == [
        "%0 = _Arg() index=0 : float32[2]  # x",
        "%1 = Neg(%0) : float32[2]  # y",
        "return %1",
    ]


@pytest.mark.parametrize(
    "dtype, function",
    [
        (tf.float32, lambda x: tf.negative(-x)),
        (tf.bool, lambda x: tf.logical_not(tf.logical_not(x))),
        (tf.int32, lambda x: tf.bitwise.invert(tf.bitwise.invert(x))),
        (tf.complex64, lambda x: tf.conj(tf.conj(x))),
        (tf.float32, lambda x: x**1.0 - 0.0),
        (tf.int32, lambda x: x // 1 * 1),
        (tf.float32, lambda x: tf.div(x / 1.0, 1.0)),
        (tf.int64, lambda x: tf.truncatediv(x, tf.constant(1, tf.int64))),
    ],
)
def test_what_is_undone_exactly(dtype, function):
    x = tf.placeholder(dtype, [2], name="x")
    _, after = rewritten([function(x)], [x], "apply_identities", "remove_unneeded")
    assert lines(after)[1:] == ["return %0"]


def test_what_special_values_forbid_stays():
    x = tf.placeholder(tf.float32, [2], name="x")
    for y, kind in ((x * 0.0, "Mul"), (x - x, "Sub"), (x / x, "RealDiv"), (x // 1.0, "FloorDiv")):
        _, after = rewritten([y], [x], "apply_identities", "remove_unneeded")
        assert f"= {kind}(" in after
    with tf.Session() as session:
        values = session.run([x * 0.0, x - x], {x: [float("inf"), float("nan")]})
        assert all(str(value) == "nan" for row in values for value in row)


def test_an_identity_that_waits_is_kept():
    v = tf.Variable(1.0, name="v")
    with tf.control_dependencies([tf.assign(v, 5.0)]):
        after_assignment = tf.identity(v)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(after_assignment) == 5.0


def test_an_identity_whose_constant_waits_is_kept():
    v = tf.Variable(1.0, name="v")
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([tf.assign(v, 5.0)]):
        same = x + 0.0  # the zero waits, and nothing else does
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(same, {x: 2.0}) == 2.0
        assert session.run(v) == 5.0


def test_common_subexpressions():
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.placeholder(tf.float32, [2], name="y")
    total = tf.multiply(tf.add(x, y, name="a"), tf.add(y, x, name="b"), name="total")
    _, after = rewritten([total], [x, y], "merge_common_subexpressions", "remove_unneeded")
    assert lines(after) == [
        "%0 = _Arg() index=0 : float32[2]  # x",
        "%1 = _Arg() index=1 : float32[2]  # y",
        "%2 = Add(%0, %1) : float32[2]  # a",
        "%3 = Mul(%2, %2) : float32[2]  # total",
        "return %3",
    ]


def test_what_must_not_be_merged():
    x = tf.placeholder(tf.float32, [2], name="x")
    _, after = rewritten([x - 1.0, 1.0 - x], [x], "merge_common_subexpressions")
    assert after.count("= Sub(") == 2
    _, after = rewritten([tf.random_uniform([2]), tf.random_uniform([2])], [], "merge_common_subexpressions")
    assert after.count("= RandomUniform(") == 2
    _, after = rewritten([tf.cast(x, tf.int32), tf.cast(x, tf.int64)], [x], "merge_common_subexpressions")
    assert after.count("= Cast(") == 2
    assert "2." in rewritten([tf.constant(1.0), tf.constant(2.0)], [], "merge_common_subexpressions")[1]


def test_reads_before_and_after_an_update_are_not_merged():
    v = tf.Variable(1.0)
    before = v + 1.0
    with tf.control_dependencies([before]):
        update = tf.assign(v, 10.0)
    with tf.control_dependencies([update]):
        after = v + 1.0
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run([before, after]) == [2.0, 11.0]


def test_results_are_equal_with_and_without_every_pass():
    x = tf.placeholder(tf.float32, [3, 4], name="x")
    w = tf.Variable(np.arange(8, dtype=np.float32).reshape(4, 2))
    h = tf.nn.relu(tf.matmul(tf.identity(x), w) + tf.constant([1.0, -20.0]) * tf.constant(1.0))
    loss = tf.reduce_sum(h * h) + tf.reduce_mean(h + h)
    gradient = tf.gradients(loss, [w])[0]
    value = np.random.RandomState(0).randn(3, 4).astype(np.float32)
    names = [p.name for p in EVERY]
    results = []
    for disabled in [[], *[[name] for name in names], names]:
        with tf.Session() as session:
            without = flags.ROUNDING_PASSES.union(disabled)
            session.planner.options = session.planner.options._replace(disabled_passes=without)
            session.run(w.initializer)
            results.append(session.run([loss, gradient, h], {x: value}))
    for other in results[1:]:
        for a, b in zip(results[0], other):
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_show_receives_the_graph_before_and_after_each_pass():
    y = tf.constant(1.0) + tf.constant(2.0)
    shown = []
    run_passes(
        prune([y], [], []),
        EVERY,
        frozenset(),
        lambda name, before, after: shown.append((name, before, after)),
    )
    assert [name for name, _, _ in shown] == ["fold_constants", "remove_unneeded"]
    assert "AddV2" in shown[0][1] and "AddV2" not in shown[0][2]


def test_the_checker_names_what_is_wrong():
    x = tf.placeholder(tf.float32, [], name="x")
    subgraph = prune([x + 1.0], [], [x])
    check(subgraph)
    subgraph.nodes.reverse()
    with pytest.raises(AssertionError, match="not computed before it after some_pass"):
        check(subgraph, "some_pass")
    subgraph.nodes.reverse()
    subgraph.nodes.pop()
    with pytest.raises(AssertionError, match="is not computed"):
        check(subgraph)


def test_every_pass_can_be_switched_off_by_the_config():
    y = tf.add(tf.constant(1.0), tf.constant(2.0))
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
    with tf.Session(config=config) as session:
        assert session.run(y) == 3.0
        assert "Add" in session.explain(y)
    assert Environment(resources=ResourceStore()).device_type == "CPU"


def test_equal_reads_of_state_are_one_until_it_changes():
    v = tf.get_variable("v", [2], initializer=tf.zeros_initializer(), use_resource=True)
    first, second = v.read_value(), v.read_value()
    with tf.control_dependencies([first, second]):
        changed = v.assign_add([1.0, 1.0])
    with tf.control_dependencies([changed]):
        third = v.read_value()
    _, after = rewritten(
        [first, second, third], [], "merge_common_subexpressions", "apply_identities", "remove_unneeded"
    )
    assert after.count("= ReadVariableOp") == 2
    with tf.Session() as session:
        session.run(v.initializer)
        for run in range(2):
            values = session.run([first, second, third])
            np.testing.assert_array_equal(values, [[run] * 2, [run] * 2, [run + 1] * 2])


def test_equal_reads_of_a_reference_are_one_until_it_changes():
    v = tf.Variable(tf.zeros([2]), name="v")
    first, second = v._ref() + 1.0, v._ref() + 1.0
    with tf.control_dependencies([first, second]):
        changed = tf.assign_add(v, [1.0, 1.0])
    with tf.control_dependencies([changed]):
        third = v._ref() + 1.0
    _, after = rewritten([first, second, third], [], "merge_common_subexpressions", "remove_unneeded")
    assert after.count("= AddV2") == 2
