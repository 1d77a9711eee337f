from __future__ import annotations

import flowstone as tf
from flowstone.partition.client_ends import client_way, connect_client
from flowstone.placement.devices import SimulatedDevice
from flowstone.rewriting.simplification.partial_execution import prune

HOST = SimulatedDevice("/job:worker/replica:0/task:0/device:CPU:0")


def test_feeds_are_received_and_fetches_sent() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.tanh(x, name="y")
        subgraph = prune([y, x], [], [x])
        chosen = dict.fromkeys(subgraph.nodes, HOST)
        connect_client(subgraph, [x], [y, x], HOST, chosen)
    types = {node.name: node.type for node in subgraph.nodes}
    assert types == {"x/feed": "_Recv", "y": "Tanh", "y/fetch": "_Send", "x/feed/fetch": "_Send"}
    nodes = {node.name: node for node in subgraph.nodes}
    received = nodes["x/feed"].outputs[0]
    assert received.dims == (2,) and nodes["y"].inputs == [received] == nodes["x/feed/fetch"].inputs
    assert nodes["y/fetch"].inputs == nodes["y"].outputs
    assert subgraph.feeds == [] and subgraph.fetches == []
    assert set(subgraph.targets) == {nodes["y/fetch"], nodes["x/feed/fetch"]}
    assert set(chosen) == set(subgraph.nodes) and set(chosen.values()) == {HOST}
    for node, key in (
        (nodes["x/feed"], client_way("feed", x, HOST.name)),
        (nodes["y/fetch"], client_way("fetch", y, HOST.name)),
    ):
        ends = tuple(node.attributes[name] for name in ("tensor_name", "send_device", "recv_device"))
        assert (ends, ()) == key and node.attributes["client_terminated"]
