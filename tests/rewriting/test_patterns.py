"""The driver of rewriting rules: what it redirects, keeps, refuses and drops."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf
from agreement import ops
from flowstone.framework.graphs.subgraph import Subgraph
from flowstone.rewriting.invariants import check
from flowstone.rewriting.patterns import Replacement, in_order, remove_unneeded, rewrite, substitute
from flowstone.rewriting.simplification.partial_execution import prune


def kinds(subgraph: Subgraph) -> list[str]:
    check(subgraph)
    return ops(str(subgraph).splitlines())


def without_negation(node: Any) -> Replacement | None:
    if node.type != "Neg":
        return None
    return Replacement([node.inputs[0]], "signs do not matter")


def test_a_replacement_redirects_inputs_fetches_and_waits() -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.negative(tf.sin(x), name="y")
    with tf.control_dependencies([y]):
        z = tf.exp(x)
    subgraph = prune([tf.cos(y), y, z], [y.op], [x])
    rewrite(subgraph, "a_pass", without_negation)
    assert kinds(subgraph) == ["_Arg", "Sin", "Exp", "Cos"]
    assert subgraph.fetches[1].op.type == "Sin" and subgraph.targets[0].type == "Sin"
    assert [c.type for c in subgraph.fetches[2].op.control_inputs] == ["Sin"]
    assert subgraph.log == [("a_pass", "y", "signs do not matter")]


def test_rules_see_inputs_that_are_rewritten_already() -> None:
    x = tf.placeholder(tf.float32, [])
    subgraph = prune([tf.exp(tf.negative(tf.negative(x)))], [], [x])
    rewrite(subgraph, "a_pass", without_negation)
    assert kinds(subgraph) == ["_Arg", "Exp"] and len(subgraph.log) == 2


def test_new_nodes_come_in_before_and_wait_for_what_the_old_one_waited_for() -> None:
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([tf.sin(x)]):
        y = tf.negative(x)
    subgraph = prune([y], [], [x])

    def rule(node: Any) -> Replacement | None:
        if node.type != "Neg":
            return None
        new = prune([tf.exp(tf.constant(1.0))], [], []).nodes[-1]
        new.inputs[:] = node.inputs
        return Replacement([new.outputs[0]], "another", (new,))

    rewrite(subgraph, "a_pass", rule)
    assert kinds(subgraph) == ["_Arg", "Sin", "Exp"]
    assert [c.type for c in subgraph.nodes[-1].control_inputs] == ["Sin"]


def test_another_version_of_a_variable_is_refused() -> None:
    v = tf.Variable(1.0, use_resource=True)
    first = v.read_value()
    with tf.control_dependencies([first]):
        change = v.assign_add(1.0, read_value=False)
    with tf.control_dependencies([change]):
        last = v.read_value()
    subgraph = prune([first, last], [], [])
    reads = [node for node in subgraph.nodes if node.type == "ReadVariableOp"]

    def rule(node: Any) -> Replacement | None:
        return Replacement([reads[0].outputs[0]], "the same") if node is reads[1] else None

    rewrite(subgraph, "a_pass", rule)
    assert subgraph.log == [] and subgraph.fetches[1].op.inputs[0].op is reads[1]


def test_a_value_of_one_branch_does_not_stand_for_one_that_is_always_there() -> None:
    x, p = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.sin(x), lambda: x)
    subgraph = prune([y, tf.cos(x)], [], [x, p])
    (sine,) = [node for node in subgraph.nodes if node.type == "Sin"]

    def rule(node: Any) -> Replacement | None:
        return Replacement([sine.outputs[0]], "not so") if node.type == "Cos" else None

    rewrite(subgraph, "a_pass", rule)
    assert subgraph.log == [] and "Cos" in kinds(subgraph)


def test_substitution_of_several_nodes_at_a_time() -> None:
    x = tf.placeholder(tf.float32, [])
    a, b = tf.sin(x), tf.cos(x)
    subgraph = prune([a + b], [], [x])
    (sine,), (cosine,) = ([n for n in subgraph.nodes if n.type == kind] for kind in ("Sin", "Cos"))
    substitute(subgraph, {cosine: []}, {cosine.outputs[0]: sine.outputs[0]}, {cosine: [sine]})
    assert kinds(subgraph) == ["_Arg", "Sin", "AddV2"]
    assert [x.op for x in subgraph.nodes[-1].inputs] == [sine, sine]


def test_who_waited_for_nodes_that_go_waits_for_what_stands_for_them_in_the_end() -> None:
    """Whatever the order in which the replacements are named; what stays is waited for itself."""
    x = tf.placeholder(tf.float32, [])
    first = tf.exp(x)
    waited: list[Any] = [first]
    for function in (tf.sin, tf.cos, tf.tan):
        with tf.control_dependencies([waited[-1]]):
            waited.append(function(x))
    with tf.control_dependencies([waited[-1]]):
        y = tf.negative(x)
    subgraph = prune([y], [], [x])
    node = {each.type: each for each in subgraph.nodes}
    chain = [node[kind] for kind in ("Cos", "Tan", "Sin")]
    replacements = {each: list(each.control_inputs) for each in chain}
    substitute(subgraph, {each: [] for each in chain}, {}, replacements)
    assert node["Neg"].control_inputs == [node["Exp"]]
    assert kinds(subgraph) == ["_Arg", "Exp", "Neg"]


def test_order_follows_edges_and_is_otherwise_kept() -> None:
    x = tf.placeholder(tf.float32, [])
    subgraph = prune([tf.sin(x), tf.cos(x), tf.exp(x)], [], [x])
    arg, sine, cosine, exp = subgraph.nodes
    assert in_order([cosine, exp, sine, arg]) == [arg, cosine, exp, sine]
    assert in_order([arg, sine, cosine, exp], [(exp, sine)]) == [arg, exp, sine, cosine]


@pytest.mark.parametrize("targeted", [False, True])
def test_what_is_only_waited_for_need_not_run(targeted: bool) -> None:
    x = tf.placeholder(tf.float32, [])
    v = tf.Variable(1.0, use_resource=True)
    with tf.control_dependencies([v.assign_add(1.0, read_value=False)]):
        between = tf.sin(x)
    with tf.control_dependencies([between]):
        y = tf.exp(x)
    subgraph = prune([y], [between.op] if targeted else [], [x])
    remove_unneeded(subgraph)
    assert ("Sin" in kinds(subgraph)) is targeted
    assert "AssignAddVariableOp" in kinds(subgraph), "effects stay"
    waited = [c.type for c in subgraph.fetches[0].op.control_inputs]
    assert ("AssignAddVariableOp" in waited) is not targeted
