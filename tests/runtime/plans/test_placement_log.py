"""The lines of placements: one for each node of the user's graph."""

from __future__ import annotations

import io

import flowstone as tf
from flowstone.runtime.plans.placement_log import PlacementLog


def test_each_node_of_the_graph_gets_one_line() -> None:
    stream = io.StringIO()
    with tf.Graph().as_default() as graph:
        tf.identity(tf.constant(1.0, name="a"), name="b")
    log = PlacementLog(graph, stream)
    log.add({"a": "/job:ps/task:0", "made/by/rewriting": "/job:ps/task:0"})
    assert stream.getvalue() == "a: (Const): /job:ps/task:0\n"
    log.add({"a": "/job:ps/task:1", "b": "/job:worker/task:0"})
    assert stream.getvalue().splitlines()[1:] == ["b: (Identity): /job:worker/task:0"]
