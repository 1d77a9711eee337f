"""Pruning: what a step needs, cut at what is fed."""

from __future__ import annotations

import pytest

import flowstone as tf
from agreement import ops
from flowstone.rewriting.simplification.partial_execution import prune


def kinds(*arguments):
    return ops(str(prune(*arguments)).splitlines())


def test_only_what_the_fetches_need() -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.exp(x)
    tf.sin(y)
    assert kinds([y], [], [x]) == ["_Arg", "Exp"]


def test_a_fed_tensor_cuts_off_what_computes_it() -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.exp(tf.sin(x), name="y")
    assert str(prune([tf.negative(y)], [], [y])).splitlines()[0].startswith("%0 = _Arg() index=0 : float32[]")
    assert kinds([tf.negative(y)], [], [y]) == ["_Arg", "Neg"]
    assert kinds([y], [], [y]) == ["_Arg"]


def test_targets_and_control_edges_are_run() -> None:
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([tf.sin(x)]):
        y = tf.exp(x)
    assert kinds([y], [], [x]) == ["_Arg", "Sin", "Exp"]
    subgraph = prune([], [y.op], [x])
    assert subgraph.fetches == [] and [t.type for t in subgraph.targets] == ["Exp"]


def test_nobody_waits_for_a_placeholder_that_is_fed() -> None:
    x, gate = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    with tf.control_dependencies([gate]):
        y = tf.exp(x)
    assert prune([y], [], [x, gate]).nodes[-1].control_inputs == []
    assert [c.type for c in prune([y], [], [x]).nodes[-1].control_inputs] == ["Placeholder"]


def test_fed_shapes_hold_for_the_plan_alone() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    subgraph = prune([tf.exp(x)], [], [x], [(2, 3)])
    assert subgraph.feeds[0].dims == (2, 3) and x.shape.as_list() == [None, 3]


def test_the_users_graph_is_left_alone() -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.exp(x)
    subgraph = prune([y], [], [x])
    subgraph.nodes[-1].inputs.clear()
    assert list(y.op.inputs) == [x] and subgraph.nodes[-1].origin is y.op


def test_inputs_made_later_come_first() -> None:
    x, y = tf.placeholder(tf.float32, []), tf.exp(tf.constant(1.0))
    late = tf.sin(x)
    y.op._update_input(0, late)
    assert kinds([y], [], [x]) == ["_Arg", "Sin", "Exp"]


def test_a_cycle_is_an_error_that_names_its_nodes() -> None:
    a = tf.exp(tf.constant(1.0), name="a")
    b = tf.sin(a, name="b")
    a.op._update_input(0, b)
    with pytest.raises(tf.errors.InvalidArgumentError, match="cycle through the nodes: a, b"):
        prune([b], [], [])


def test_a_loop_whose_next_iteration_comes_first() -> None:
    """Programs that edit graphs leave a Merge's inputs in either order."""
    body = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x / 2.0), (0, 42.0))
    for merge in [each for each in tf.get_default_graph().get_operations() if each.type == "Merge"]:
        outside, following = merge.inputs
        merge._update_input(0, following)
        merge._update_input(1, outside)
    with tf.Session() as session:
        assert session.run(body) == (3, 5.25)
