"""What comes before nodes: late arrivals, and changes of state."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.framework.graphs.subgraph import Subgraph
from flowstone.rewriting.analyses.arrivals import Before, arrivals, changes, is_in_pieces
from flowstone.rewriting.simplification.partial_execution import prune


def node(subgraph: Subgraph, name: str) -> Any:
    (found,) = [each for each in subgraph.nodes if each.name == name]
    return found


def test_a_step_with_a_queue_is_in_pieces() -> None:
    queue = tf.FIFOQueue(3, tf.float32, shapes=[[]])
    waiting = prune([tf.negative(queue.dequeue())], [], [])
    plain = prune([tf.negative(tf.constant(1.0))], [], [])
    assert is_in_pieces(waiting) and not is_in_pieces(plain)
    plain.in_pieces = True
    assert is_in_pieces(plain)


def test_each_node_waits_for_the_arrivals_behind_it() -> None:
    queue = tf.FIFOQueue(3, tf.float32, shapes=[[]])
    a, b = queue.dequeue(name="a"), queue.dequeue(name="b")
    x = tf.negative(a, name="x")
    y = tf.add(x, b, name="y")
    z = tf.negative(tf.constant(1.0), name="z")
    subgraph = prune([y, z], [], [])
    before = arrivals(subgraph)
    first, second = (before(node(subgraph, name)) for name in "ab")
    assert first and second and not first & second
    assert before.behind(node(subgraph, "a")) == 0, "nothing is behind it but the queue"
    assert before(node(subgraph, "x")) == first
    assert before(node(subgraph, "y")) == first | second
    assert before(node(subgraph, "z")) == 0


def test_feeds_arrive_where_they_come_one_by_one() -> None:
    x = tf.placeholder(tf.float32, [])
    subgraph = prune([tf.negative(x)], [], [x])
    assert arrivals(subgraph)(subgraph.nodes[-1]) == 0
    subgraph.in_pieces = True
    assert arrivals(subgraph)(subgraph.nodes[-1]) == 1


def test_changes_are_what_control_edges_put_before_too() -> None:
    v = tf.Variable(1.0, use_resource=True)
    change = v.assign_add(1.0, read_value=False)
    with tf.control_dependencies([change]):
        after = tf.negative(tf.constant(1.0), name="after")
    beside = tf.negative(tf.constant(2.0), name="beside")
    subgraph = prune([after, beside], [], [])
    before = changes(subgraph)
    assert before(node(subgraph, "after")) == 1 and before(node(subgraph, "beside")) == 0


def test_what_the_next_iteration_brings_does_not_count() -> None:
    y = tf.while_loop(lambda y: y < 9, lambda y: y * 2, [tf.constant(1)])
    subgraph = prune([y], [], [])
    before = Before(subgraph, lambda each: each.type == "Mul")
    assert [before(n) for n in subgraph.nodes if n.type == "Merge"] == [0]
    assert [before(n) for n in subgraph.nodes if n.type == "NextIteration"] == [1]
    assert [before(n) for n in subgraph.nodes if n.type == "Exit"] == [0]
