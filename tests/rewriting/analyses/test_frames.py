"""Which loop each node is in, and an order in which loops are blocks."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.framework.graphs.subgraph import Subgraph
from flowstone.rewriting.analyses.frames import Frames, is_head, is_loop_switch, order_by_frames
from flowstone.rewriting.simplification.partial_execution import prune


def nested() -> Subgraph:
    x = tf.placeholder(tf.float32, [])

    def outer(i, y):
        _, z = tf.while_loop(lambda j, _: j < 2, lambda j, z: (j + 1, tf.sin(z)), [0, y], name="inner")
        return i + 1, tf.exp(z)

    _, y = tf.while_loop(lambda i, _: i < 3, outer, [0, x], name="outer")
    return prune([tf.negative(y)], [], [x])


def test_a_graph_without_loops_has_no_frames() -> None:
    frames = Frames(prune([tf.exp(tf.constant(1.0))], [], []))
    assert not frames.exist and frames.of == {}


def test_each_node_is_in_the_innermost_loop_that_it_hangs_on() -> None:
    subgraph = nested()
    frames = Frames(subgraph)
    by_type = {node.type: node for node in subgraph.nodes}
    inner, outer = frames.of[by_type["Sin"]], frames.of[by_type["Exp"]]
    assert inner.parent is outer and (outer.depth, inner.depth) == (1, 2) and outer.parent is None
    assert frames.of[by_type["Neg"]] is None


def test_an_exit_leads_out_of_the_block_that_it_stands_in() -> None:
    subgraph = nested()
    frames = Frames(subgraph)
    places = {
        (frames.home(n).depth, frames.of[n] and frames.of[n].depth)
        for n in subgraph.nodes
        if n.type == "Exit"
    }
    assert places == {(1, None), (2, 1)}


def test_loops_become_blocks() -> None:
    subgraph = nested()
    frames = order_by_frames(subgraph)
    depths = [frames.home(n).depth if frames.home(n) else 0 for n in subgraph.nodes]
    for depth in (1, 2):
        inside = [i for i, d in enumerate(depths) if d >= depth]
        assert inside == list(range(inside[0], inside[-1] + 1)), f"loops of depth {depth} are in one piece"
    place = {node: i for i, node in enumerate(subgraph.nodes)}
    for node in subgraph.nodes:
        for x in node.inputs:
            assert x.op.type == "NextIteration" or place[x.op] < place[node]


def test_heads_and_switches_of_loops_are_told_from_those_of_conditionals() -> None:
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    y = tf.cond(p, lambda: tf.while_loop(lambda y: y < 9.0, lambda y: y * 2.0, [x]), lambda: x)
    subgraph = prune([y], [], [p, x])
    merges = [is_head(n) for n in subgraph.nodes if n.type == "Merge"]
    switches = [is_loop_switch(n) for n in subgraph.nodes if n.type == "Switch"]
    assert sorted(merges) == [False, True]
    assert switches.count(True) == 1 and switches.count(False) >= 2


def test_an_exit_without_a_loop_is_an_error() -> None:
    y = tf.while_loop(lambda y: y < 9, lambda y: y * 2, [1])
    subgraph = prune([y], [], [])
    (leaving,) = [n for n in subgraph.nodes if n.type == "Exit"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="leaves a loop that it is not in"):
        Frames(prune([tf.constant(1.0)], [], [])).frame_of(leaving)
