"""Host and device memory: where nodes of a GPU's segment compute, and which inputs are moved for them.

The decisions are asked for a device that need not exist.
"""

from __future__ import annotations

import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.kernel import CPU, GPU, Environment
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.code.memory import Memory

pytestmark = pytest.mark.usefixtures("graph")

WITHOUT_KERNEL = ("_Arg", "Switch", "Merge")
DEVICE = torch.device("cuda", 0)


def decisions(fetches, feeds):
    """node name -> (the type of the device it runs on, where each input is moved to)."""
    subgraph = prune(fetches, [], feeds)
    memory = Memory(Environment(GPU, DEVICE), subgraph.feeds)
    found = {}
    for node in subgraph.nodes:
        if node.type in WITHOUT_KERNEL:
            continue
        kind = memory.environment_for(node).device_type
        targets = [memory.target_of(node, i) for i in range(len(node.inputs))]
        found[node.name] = kind, [target and target.type for target in targets]
    return found


def test_arithmetic_is_on_the_device_and_shapes_are_on_the_host():
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    y = tf.exp(x, name="y")
    shape = tf.shape(y, name="shape")
    largest = tf.maximum(shape, 1, name="largest")
    z = tf.reshape(y, largest, name="z")
    found = decisions([z], [x])
    assert found["y"][0] == GPU
    assert found["largest"][0] == CPU, "what is computed from host values alone"
    assert found["z"] == (GPU, [None, None]), "the shape is on the host, where it is wanted"


def test_host_values_move_to_kernels_on_the_device():
    x = tf.placeholder(tf.float32, [None], name="x")
    y = tf.exp(x, name="y")
    size = tf.cast(tf.shape(y, name="shape"), tf.float32, name="size")
    found = decisions([tf.multiply(y, size, name="z")], [x])
    assert found["size"][0] == CPU
    assert found["z"] == (GPU, [None, "cuda"])


def test_arguments_are_moved_wherever_they_are_wanted():
    x, n = tf.placeholder(tf.float32, [None], name="x"), tf.placeholder(tf.int32, [2], name="n")
    found = decisions([tf.reshape(tf.exp(x, name="y"), n, name="z")], [x, n])
    assert found["y"] == (GPU, ["cuda"])
    assert found["z"] == (GPU, [None, "cpu"])


def test_values_of_branches_too():
    p, n = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.float32, [2], name="n")
    y = tf.cond(p, lambda: tf.identity(n), lambda: tf.negative(n), name="c")
    assert decisions([tf.exp(y, name="z")], [p, n])["z"] == (GPU, ["cuda"])


def test_scalars_need_not_move():
    x, s = tf.placeholder(tf.float32, [3], name="x"), tf.placeholder(tf.float32, [], name="s")
    assert decisions([tf.multiply(x, s, name="z")], [x, s])["z"] == (GPU, ["cuda", None])


def test_strings_stay_on_the_host():
    s = tf.placeholder(tf.string, [2], name="s")
    assert decisions([tf.stack([s, s], name="z")], [s])["z"] == (CPU, [None, None])
