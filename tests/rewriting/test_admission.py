"""Whether new nodes may stand for old ones: by the versions of state that both read."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf
from flowstone.framework.graphs.subgraph import Subgraph
from flowstone.rewriting.admission import Admission
from flowstone.rewriting.simplification.partial_execution import prune


def changed(between: bool, use_resource: bool) -> Subgraph:
    """Two sums of one variable, which changes between them or after both."""
    v = tf.Variable([1.0, 2.0], use_resource=use_resource)
    first = tf.exp(v.read_value() if use_resource else v, name="first")
    change_after = [first]
    if not between:
        second = tf.exp(v.read_value() if use_resource else v, name="second")
        change_after.append(second)
    with tf.control_dependencies(change_after):
        change = tf.assign_add(v, [1.0, 1.0])
    if between:
        with tf.control_dependencies([change]):
            second = tf.exp(v.read_value() if use_resource else v, name="second")
    return prune([first, second], [change.op], [])


def readers(subgraph: Subgraph, use_resource: bool) -> list[Any]:
    """What reads the variable, in order."""
    kind = "ReadVariableOp" if use_resource else "Exp"
    return [node for node in subgraph.nodes if node.type == kind][:2]


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("between", [False, True])
def test_a_value_of_another_version_may_not_stand_for_it(between: bool, use_resource: bool) -> None:
    subgraph = changed(between, use_resource)
    first, second = readers(subgraph, use_resource)
    admission = Admission(subgraph)
    assert admission.admits_in_place(second, first.outputs, (), between) is not between


def test_a_change_that_is_substituted_all_the_same_is_refused() -> None:
    subgraph = changed(True, True)
    new, old = readers(subgraph, True)
    refused = Admission(subgraph).refused({old: []}, {old.outputs[0]: new.outputs[0]}, {old: [new]})
    assert old in refused


def test_what_is_not_refused_may_be_substituted() -> None:
    subgraph = changed(False, True)
    new, old = readers(subgraph, True)
    refused = Admission(subgraph).refused({old: []}, {old.outputs[0]: new.outputs[0]}, {old: [new]})
    assert not refused


def test_in_pieces_nothing_comes_to_wait_for_another_arrival() -> None:
    queues = [tf.FIFOQueue(3, tf.float32, shapes=[[]]) for _ in range(2)]
    x, y = (tf.exp(queue.dequeue(), name=name) for queue, name in zip(queues, "xy"))
    subgraph = prune([x, y], [], [])
    nodes = {node.name: node for node in subgraph.nodes}
    admission = Admission(subgraph)
    assert not admission.admits_in_place(nodes["y"], nodes["x"].outputs, (), True)
    assert admission.admits_in_place(nodes["y"], nodes["y"].outputs, (), True)
