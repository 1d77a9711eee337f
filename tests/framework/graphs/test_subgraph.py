"""Analyses of a subgraph: kept while it stays as it is, shared, and found out where they are stale."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.graphs.subgraph import StaleAnalysisError, Subgraph, requested_device
from flowstone.rewriting.simplification.partial_execution import prune


@pytest.fixture
def subgraph() -> Subgraph:
    """y = -x, z = y + x."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.negative(x, name="y")
        return prune([tf.add(y, x, name="z")], [], [x])


def names(subgraph: Subgraph) -> list[str]:
    """An analysis."""
    return [node.name for node in subgraph.nodes]


def waits(subgraph: Subgraph) -> dict[str, list[str]]:
    """An analysis of control edges."""
    return {node.name: [x.name for x in node.control_inputs] for node in subgraph.nodes}


def test_consumers_are_the_nodes_that_take_an_output_once_an_input(subgraph: Subgraph) -> None:
    x, y, z = subgraph.nodes
    z.inputs[0] = x.outputs[0]
    assert subgraph.consumers() == {x.outputs[0]: [y, z, z]}


def test_an_analysis_is_kept(subgraph: Subgraph) -> None:
    found = subgraph.analysis(names)
    assert found == ["x", "y", "z"]
    assert subgraph.analysis(names) is found
    assert subgraph.consumers() is subgraph.consumers()


def test_setting_the_nodes_invalidates(subgraph: Subgraph) -> None:
    found, consumers = subgraph.analysis(names), subgraph.consumers()
    x, y = subgraph.nodes[:2]
    subgraph.nodes = [x, y]
    assert subgraph.analysis(names) == ["x", "y"] and found == ["x", "y", "z"]
    assert subgraph.consumers() == {x.outputs[0]: [y]} != consumers


@pytest.mark.parametrize("check", [0, 1])
def test_invalidating_after_changes_in_place(subgraph: Subgraph, check: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(flags, "CHECK", check)
    subgraph.analysis(waits)
    x, y, z = subgraph.nodes
    consumers = subgraph.consumers()
    z.inputs[0], z.control_inputs = x.outputs[0], [y]
    subgraph.invalidate()
    assert subgraph.analysis(waits) == {"x": [], "y": [], "z": ["y"]}
    assert subgraph.consumers() == {x.outputs[0]: [y, z, z]} != consumers


def test_an_analysis_that_is_stale_is_found_out_when_it_is_asked_for(
    subgraph: Subgraph, monkeypatch: Any
) -> None:
    monkeypatch.setattr(flags, "CHECK", 1)
    subgraph.analysis(names)
    subgraph.analysis(waits)
    subgraph.nodes[2].control_inputs = [subgraph.nodes[1]]
    assert subgraph.analysis(names) == ["x", "y", "z"]
    with pytest.raises(StaleAnalysisError, match=r"^waits is stale: "):
        subgraph.analysis(waits)
    with pytest.raises(StaleAnalysisError, match=r"^waits is stale after a pass: "):
        subgraph.check_analyses(" after a pass")


def test_a_result_that_someone_changed_is_found_out(subgraph: Subgraph, monkeypatch: Any) -> None:
    monkeypatch.setattr(flags, "CHECK", 1)
    subgraph.analysis(names).append("w")
    with pytest.raises(StaleAnalysisError, match="names is stale"):
        subgraph.analysis(names)


def test_without_checks_nothing_is_computed_twice(subgraph: Subgraph, monkeypatch: Any) -> None:
    monkeypatch.setattr(flags, "CHECK", 0)
    found = subgraph.analysis(waits)
    subgraph.nodes[2].control_inputs = [subgraph.nodes[1]]
    assert subgraph.analysis(waits) is found


def test_requested_devices_are_canonical() -> None:
    with tf.Graph().as_default():
        node = tf.constant(1).op
    assert requested_device(node) == ""
    node._set_device("/job:a/cpu:0")
    assert requested_device(node) == "/job:a/device:CPU:0"
    node._set_device("junk")
    with pytest.raises(tf.errors.InvalidArgumentError, match="Malformed device specification 'junk'"):
        requested_device(node)
