"""Which nodes a debugger's watches put into a plan."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.plans.debug_watches import Watch, insert_watches, watches_of

DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


def inserted(fetches: list[Any], feeds: list[Any], *watches: Watch) -> dict[str, Any]:
    """The debugger's nodes of a plan, by what they watch."""
    subgraph = prune(fetches, [], feeds)
    insert_watches(subgraph, watches, DEVICE)
    made = [node for node in subgraph.nodes if node.type.startswith("Debug")]
    assert subgraph.targets == made
    for node in made:
        assert subgraph.nodes.index(node) > subgraph.nodes.index(node.inputs[0].op)
    return {node.attributes["tensor_name"]: node for node in made}


def test_outputs_of_nodes() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [4], name="x")
        parts = tf.split(x, 2, name="parts")
        urls = ("file:///tmp/a",)
        some = inserted(parts, [x], Watch("parts", 1, ("DebugIdentity", "DebugNanCount"), urls))
        assert list(some) == ["parts:1"] and some["parts:1"].type == "DebugNanCount"
        every = inserted(parts, [x], Watch("*", -1, ("DebugIdentity",), urls))
        assert list(every) == ["x:0", "parts/split_dim:0", "parts:0", "parts:1"]
        assert every["x:0"].attributes["debug_urls"] == ["file:///tmp/a"]
        assert every["x:0"].attributes["device_name"] == DEVICE
        assert inserted(parts, [x], Watch("parts", 7, ("DebugIdentity",), urls)) == {}
        assert inserted(parts, [x], Watch("other", 0, ("DebugIdentity",), urls)) == {}


def test_what_is_not_watched() -> None:
    with tf.Graph().as_default():
        variable = tf.Variable(1.0, use_resource=True, name="v")
        loop = tf.while_loop(lambda i: i < 3, lambda i: tf.add(i, 1, name="next"), [tf.constant(0)])
        watched = inserted([variable.value(), loop], [], Watch("*", -1, ("DebugIdentity",), ()))
        assert "v:0" not in watched and not any("next" in name for name in watched)


def test_attributes_of_debug_ops() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [], name="x")
        text = "DebugNumericSummary(mute_if_healthy=true; lower_bound=-2.5)"
        (node,) = inserted([x + 1], [x], Watch("x", 0, (text,), ())).values()
        assert node.attributes["mute_if_healthy"] is True and node.attributes["lower_bound"] == -2.5
        for wrong in ("DebugNothing", "Identity", "DebugIdentity(a=1)"):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"no debug op|no attribute"):
                inserted([x + 1], [x], Watch("x", 0, (wrong,), ()))


def test_watches_of_options() -> None:
    assert watches_of(None) == () == watches_of(tf.RunOptions())
    options = tf.RunOptions()
    watch = options.debug_options.debug_tensor_watch_opts.add(node_name="a", output_slot=2)
    watch.debug_ops.append("DebugIdentity")
    assert watches_of(options) == (Watch("a", 2, ("DebugIdentity",), ()),)
