"""Traces of programs of units: a run of every unit, iteration by iteration."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"


CPU = "/job:localhost/replica:0/task:0/device:CPU:{}"


def session(devices=1, **graph_options):
    config = tf.ConfigProto(device_count={"CPU": devices, "GPU": 0})
    for name, value in graph_options.items():
        setattr(config.graph_options, name, value)
    return tf.Session(config=config)


def traced(fetches, feed_dict=None, devices=1, **options):
    """The fetched values, and the metadata of a step with a full trace."""
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, **options)
    with session(devices) as sess:
        sess.run(tf.global_variables_initializer())
        values = sess.run(fetches, feed_dict, options, metadata)
    return values, metadata


def runs(metadata, device=0):
    """The runs of nodes on a device, in order."""
    (own,) = [each for each in metadata.step_stats.dev_stats if each.device == CPU.format(device)]
    return list(own.node_stats)


def names(metadata, device=0):
    return [node.node_name for node in runs(metadata, device)]


def by_name(metadata, device=0):
    return {node.node_name: node for node in runs(metadata, device)}


def test_queues_and_what_is_between_them():
    q = tf.FIFOQueue(3, tf.float32, name="q")
    with tf.control_dependencies([q.enqueue(tf.exp(tf.constant(0.0), name="e"), name="in")]):
        y = tf.negative(q.dequeue(name="out"), name="y")
    value, metadata = traced(y)
    assert value == -1.0
    found = by_name(metadata)
    assert found["out"].timeline_label == "out = QueueDequeueV2(q, ^in)"
    order = [found[name].all_start_nanos for name in ("in", "out", "y")]
    assert order == sorted(order)
    assert found["q"].all_end_rel_nanos == 0
    assert found["out"].output[0].tensor_description.allocation_description.requested_bytes == 4


def test_a_loop_over_devices_has_a_run_of_its_control_flow_an_iteration():
    def body(i, u):
        with tf.device("/cpu:1"):
            v = tf.tanh(u, name="tanh")
        return i + 1, v

    with tf.device("/cpu:0"):
        x = tf.placeholder(tf.float32, [], name="x")
        _, y = tf.while_loop(lambda i, u: i < 3, body, [0, x])
    value, metadata = traced(y, {x: 1.0}, devices=2)
    np.testing.assert_allclose(value, np.tanh(np.tanh(np.tanh(1.0))), rtol=1e-6)
    assert names(metadata, 1).count("while/tanh") == 3
    assert names(metadata, 0).count("while/Less") == 4
    assert names(metadata, 0).count("while/Exit_1") == 1
    assert sum(name.endswith("/receive") and "anh" in name for name in names(metadata, 0)) == 3
