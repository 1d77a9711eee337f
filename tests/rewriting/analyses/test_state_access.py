"""Who reads and who changes state, and the order that follows."""

from __future__ import annotations

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.rewriting.analyses.state_access import UNKNOWN, StateAccess, input_positions, order_edges
from flowstone.rewriting.simplification.partial_execution import prune


def edges(subgraph):
    return {(a.name, b.name) for a, b in order_edges(subgraph.nodes)}


def test_state_access_names_states_and_keeps_effects_in_order():
    v = tf.Variable(1.0, name="v")
    w = tf.get_variable("w", initializer=2.0, use_resource=True)
    total = v + w
    a = tf.random_uniform([], name="a")
    b = tf.random_uniform([], name="b")
    with tf.control_dependencies([total]):
        changes = [tf.assign(v, a), w.assign(b)]
    subgraph = prune([total], [c.op for c in changes], [])
    nodes = {node.name: node for node in subgraph.nodes}
    access = StateAccess(subgraph)
    assert access.reads[nodes["add"]] == {("", "v"), ("", "w")}
    assert sorted(access.writes[n] for n in access.writes) == [{("", "v")}, {("", "w")}]
    assert [node.name for node in access.effects] == ["a/RandomUniform", "b/RandomUniform"]
    edges = {(a.name, b.name) for a, b in order_edges(subgraph.nodes)}
    assert ("a/RandomUniform", "b/RandomUniform") in edges
    assert ("add", "Assign") in edges and ("v/read", "Assign") in edges


def test_uses_stay_between_changes():
    v = tf.Variable(1.0, name="v")
    first = tf.assign(v, 2.0, name="first")
    with tf.control_dependencies([first]):
        between = tf.add(v, 1.0, name="between")
    with tf.control_dependencies([between]):
        second = tf.assign_add(v, 3.0, name="second")
    found = edges(prune([between], [first.op, second.op], []))
    assert {("first", "between"), ("between", "second"), ("first", "second")} <= found


def test_a_state_without_changes_orders_nothing():
    v = tf.Variable(1.0, name="v")
    assert edges(prune([v + 1.0, v * 2.0], [], [])) == set()


def test_one_state_by_two_nodes_is_one():
    """Two handles of one shared name stand for one variable."""
    handles = [F.VariableV2(shape=(), dtype=tf.float32, shared_name="both", name=f"v{i}") for i in range(2)]
    read = tf.identity(handles[0], name="read")
    change = tf.assign(handles[1], 1.0, name="change")
    access = StateAccess(prune([read], [change.op], []))
    assert set(access.reads.values()) == {frozenset({("", "both")})}
    assert ("read", "change") in edges(prune([read], [change.op], []))


def test_a_handle_from_outside_may_be_any():
    v = tf.get_variable("v", initializer=1.0, use_resource=True)
    fed = tf.placeholder(tf.resource, [], name="fed")
    read = v.read_value()
    change = F.AssignVariableOp(fed, tf.constant(2.0), name="change")
    subgraph = prune([read], [change], [fed])
    assert UNKNOWN in StateAccess(subgraph).writes[subgraph.targets[0]]
    handle, last = read.op.inputs[0].op.name, read.op.name
    assert {(handle, "change"), (last, "change")} & edges(subgraph)


def test_positions_of_list_arguments():
    total = tf.add_n([tf.constant(1.0), tf.constant(2.0), tf.constant(3.0)])
    (node,) = [n for n in prune([total], [], []).nodes if n.type == "AddN"]
    assert input_positions(node, [0]) == [0, 1, 2]
    assert input_positions(node, []) == []
