"""What a traced step tells of outputs and of memory."""

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


def by_name(metadata, device=0):
    return {node.node_name: node for node in runs(metadata, device)}


def test_outputs_are_described_and_memory_is_counted_once():
    x = tf.placeholder(tf.float32, [2, 4], name="x")
    y = tf.exp(x, name="y")
    r = tf.reshape(y, [8], name="r")
    n = tf.negative(x, name="n")
    words = tf.placeholder(tf.string, [3], name="words")
    _, metadata = traced([y, r, n, words], {x: np.ones((2, 4), np.float32), words: ["a", "b", "c"]})
    found = by_name(metadata)
    (output,) = found["y"].output
    description = output.tensor_description
    assert (output.slot, description.dtype) == (0, tf.float32.as_datatype_enum)
    assert [dim.size for dim in description.shape.dim] == [2, 4]
    assert description.allocation_description.requested_bytes == 32
    assert description.allocation_description.allocated_bytes >= 32
    assert description.allocation_description.allocator_name == "cpu"
    (memory,) = found["y"].memory
    assert memory.allocator_name == "cpu" and memory.total_bytes >= 32
    assert not found["r"].memory
    ids = {
        name: found[name].output[0].tensor_description.allocation_description.allocation_id for name in "yrn"
    }
    assert ids["y"] == ids["r"] != ids["n"]
    assert [dim.size for dim in found["words"].output[0].tensor_description.shape.dim] == [3]


@pytest.mark.by_aten
def test_what_overwrites_its_input_takes_no_memory():
    x = tf.placeholder(tf.float32, [64], name="x")
    y = tf.negative(tf.exp(x, name="e"), name="n")
    value, metadata = traced(y, {x: np.zeros(64, np.float32)})
    found = by_name(metadata)
    assert found["e"].memory and not found["n"].memory
    np.testing.assert_array_equal(value, -np.ones(64))
