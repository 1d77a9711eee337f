"""A segment of a program of units is a subgraph of copies; the plan's nodes stay as they are."""

from __future__ import annotations

import flowstone as tf
from flowstone.rewriting.invariants import check
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.execution.segment_copies import SegmentCopies


def test_members_are_copied_and_what_others_compute_is_an_argument() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.sin(x, name="y")
        z = tf.multiply(tf.cos(y, name="c"), tf.constant([1.0, 2.0], name="k"), name="z")
        whole = prune([z], [], [x])
    nodes = {node.name: node for node in whole.nodes}
    before = str(whole)
    copies = SegmentCopies([nodes["c"], nodes["z"]], dynamic=False)
    copies.share(nodes["k"])
    copies.add_argument(nodes["y"].outputs[0])
    for name in ("c", "z"):
        copies.add(nodes[name])
    part = copies.subgraph([nodes["z"].outputs[0]])
    check(part)
    assert [node.type for node in part.nodes] == ["Const", "_Arg", "Cos", "Mul"]
    assert part.nodes[0] is nodes["k"] and part.nodes[2] is not nodes["c"]
    assert part.nodes[2].origin is nodes["c"].origin and part.feeds[0].dims == (2,)
    assert copies.taken == [nodes["y"].outputs[0]]
    assert str(whole) == before


def test_waits_between_members_are_kept_and_those_for_others_are_not() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [], name="x")
        with tf.control_dependencies([tf.sin(x, name="outside")]):
            first = tf.cos(x, name="first")
        with tf.control_dependencies([first]):
            last = tf.exp(x, name="last")
        whole = prune([last], [], [x])
    nodes = {node.name: node for node in whole.nodes}
    copies = SegmentCopies([nodes["first"], nodes["last"]], dynamic=False)
    copies.add_argument(whole.feeds[0])
    copies.add(nodes["first"])
    copies.add(nodes["last"])
    _, first, last = copies.subgraph([]).nodes
    assert first.control_inputs == [] and last.control_inputs == [first]


def test_a_loops_head_takes_the_copy_that_comes_after_it() -> None:
    with tf.Graph().as_default():
        y = tf.while_loop(lambda y: y < 9, lambda y: y * 2, [1])
        whole = prune([y], [], [])
    members = [node for node in whole.nodes if node.type != "Const"]
    copies = SegmentCopies(members, dynamic=False)
    for node in whole.nodes:
        copies.share(node) if node.type == "Const" else copies.add(node)
    part = copies.subgraph(whole.fetches)
    (head,) = [node for node in part.nodes if node.type == "Merge"]
    assert all(x.op in part.nodes for x in head.inputs)
