"""What follows from constants and shapes alone: counters of loops among them."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.code.host_decisions import decided_on_host, undecided

pytestmark = pytest.mark.usefixtures("graph")


def decided(fetches: list[Any], feeds: list[Any]) -> set[str]:
    """The names of the nodes with an output that the host decides, the program's own among them."""
    return {output.op.name for output in decided_on_host(prune(fetches, [], feeds).nodes)}


def asks(fetches: list[Any], feeds: list[Any]) -> str | None:
    node = undecided(prune(fetches, [], feeds))
    return None if node is None else node.type


def test_scalars_of_constants_and_shapes():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    rows = tf.shape(x, name="dims")
    n = tf.add(tf.constant(2, name="two"), tf.size(x, name="size"), name="n")
    found = decided([tf.multiply(n, 3, name="m"), rows[0], tf.reduce_sum(x, name="sum"), tf.add(x, 1.0)], [x])
    assert {"two", "dims", "size", "n", "m"} <= found
    assert found.isdisjoint({"x", "sum", "Add"})


def test_what_is_fed_or_kept_is_not():
    fed = tf.placeholder(tf.int32, [], name="fed")
    kept = tf.Variable(3, name="kept")
    drawn = tf.random_uniform([], maxval=5, dtype=tf.int32, name="drawn")
    one = tf.constant(1, name="one")
    fetches = [tf.add(value, one, name=f"sum{i}") for i, value in enumerate((fed, kept, drawn))]
    found = decided(fetches, [fed])
    assert "one" in found and found.isdisjoint({"fed", "kept", "drawn", "sum0", "sum1", "sum2"})


def test_counters():
    x = tf.placeholder(tf.float32, [4], name="x")
    counts = tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y * 2), [0, x])
    assert asks(counts, [x]) is None
    nested = tf.while_loop(
        lambda i, y: i < 3,
        lambda i, y: (i + 1, tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z + 1), [0, y])[1]),
        [0, x],
    )
    assert asks(nested, [x]) is None
    assert asks(tf.gradients(counts[1], x), [x]) is None


def test_loops_and_branches_that_ask_the_device():
    x, n = tf.placeholder(tf.float32, []), tf.placeholder(tf.int32, [])
    assert asks(tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * 2), [0, x]), [x, n]) == "LoopCond"
    assert asks([tf.while_loop(lambda y: y > 1, lambda y: y / 2, [x])], [x]) == "LoopCond"
    stops = tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + tf.cast(y, tf.int32), y), [0, x])
    assert asks(stops, [x]) == "LoopCond"
    chosen = tf.while_loop(
        lambda i, y: i < 5,
        lambda i, y: (i + 1, tf.cond(y > 0, lambda: y + 1, lambda: y - 1)),
        [0, x],
    )
    assert asks(chosen, [x]) == "Switch"
    turns = tf.while_loop(
        lambda i, y: i < 5,
        lambda i, y: (i + 1, tf.cond(i > 2, lambda: y + 1, lambda: y - 1)),
        [0, x],
    )
    assert asks(turns, [x]) is None
