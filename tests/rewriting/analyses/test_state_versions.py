"""Versions of state: which values of a variable a node sees, by reference and by handle."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.rewriting.analyses.state_versions import References, StateVersions, changed_by
from flowstone.rewriting.simplification.partial_execution import prune


def changed(use_resource: bool) -> tuple[Any, Subgraph, dict[str, PlanNode]]:
    v = tf.Variable(1.0, use_resource=use_resource, name="v")
    first = tf.exp(v.read_value() if use_resource else v, name="first")
    with tf.control_dependencies([first]):
        change = tf.assign_add(v, 1.0, name="change")
    with tf.control_dependencies([change]):
        last = tf.exp(v.read_value() if use_resource else v, name="last")
    subgraph = prune([first, last], [], [])
    return v, subgraph, {node.name: node for node in subgraph.nodes}


def reader(node: PlanNode, use_resource: bool) -> PlanNode:
    while use_resource and node.type != "ReadVariableOp":
        node = node.inputs[0].op
    return node


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_change_makes_a_new_version(use_resource: bool) -> None:
    _, subgraph, nodes = changed(use_resource)
    versions = StateVersions(subgraph)
    before, after = (versions.read_by(reader(nodes[name], use_resource)) for name in ("first", "last"))
    ((state, first),), ((same, second),) = before, after
    assert state == same and first == (0, None) and second == (1, None) == versions.final(state)
    assert versions.is_changed(state) and not versions.is_changed("another")


@pytest.mark.parametrize("use_resource", [False, True])
def test_who_changes_is_told(use_resource: bool) -> None:
    _, subgraph, _ = changed(use_resource)
    references = References()
    assert sum(bool(changed_by(node, references)) for node in subgraph.nodes) == 1


def test_values_are_no_references() -> None:
    _, _, nodes = changed(False)
    references = References()
    assert len(references[nodes["v"].outputs[0]]) == 1 and not references[nodes["first"].outputs[0]]


def test_nothing_is_read_in_a_version_where_nothing_changes() -> None:
    v = tf.Variable(1.0)
    subgraph = prune([tf.exp(v)], [], [])
    assert StateVersions(subgraph).read_by(subgraph.nodes[-1]) == frozenset()


def test_a_node_put_in_anothers_place_reads_what_that_read() -> None:
    _, subgraph, nodes = changed(False)
    versions = StateVersions(subgraph)
    moved = prune([tf.exp(tf.constant(1.0))], [], []).nodes[-1]
    moved.inputs[:] = nodes["first"].inputs
    versions.add(moved, nodes["last"])
    assert versions.read_by(moved) == versions.read_by(nodes["last"]) != versions.read_by(nodes["first"])


def test_an_iteration_sees_what_the_one_before_left() -> None:
    v = tf.Variable(1.0, use_resource=True)

    def body(i, y):
        x = tf.identity(v.read_value(), name="inside")
        with tf.control_dependencies([x]):
            change = v.assign_add(1.0, read_value=False)
        with tf.control_dependencies([change]):
            return i + 1, y + x

    _, y = tf.while_loop(lambda i, _: i < 3, body, [0, 0.0])
    subgraph = prune([y, v.read_value()], [], [])
    versions = StateVersions(subgraph)
    reads = [versions.read_by(node) for node in subgraph.nodes if node.type == "ReadVariableOp"]
    assert len(reads) == 2 and not reads[0] & reads[1], "inside and outside are never the same version"
