"""Floats that cross tasks in 16 bits (`graph_options.enable_bfloat16_sendrecv`; white paper 5.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clusters
import flowstone as tf

pytestmark = pytest.mark.usefixtures("connection")

ON = tf.GraphOptions(enable_bfloat16_sendrecv=True)
Devices = Callable[[int], str]


def on_tasks(number: int) -> str:
    """The devices of a cluster: number 0 is the parameter server."""
    return "/job:ps/task:0" if number == 0 else f"/job:worker/task:{number - 1}"


def in_one_process(number: int) -> str:
    return f"/cpu:{number}"


def session(target: str, options: Any = ON) -> tf.Session:
    return tf.Session(target, config=tf.ConfigProto(device_count={"CPU": 3}, graph_options=options))


def cut(values: Any) -> Any:
    """The floats with the upper half of their bits alone."""
    return (np.asarray(values, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


@pytest.mark.parametrize("compresses", [False, True])
@pytest.mark.parametrize("size", [7, 300_000])  # by a socket, through shared memory
def test_values_lose_their_lower_bits_where_they_cross(
    cluster: clusters.Cluster, compresses: bool, size: int
) -> None:
    given = np.random.RandomState(0).randn(size).astype(np.float32)
    given[:5] = [0.0, -0.0, np.inf, -np.inf, 1e-30]
    x = tf.placeholder(tf.float32, [None])
    with tf.device(on_tasks(0)):
        here = tf.negative(x)
        whole = tf.cast(here, tf.float64)
    with tf.device(on_tasks(2)):
        there = tf.reverse(here, [0])
        exact = tf.reverse(whole, [0])
    options = tf.GraphOptions(enable_bfloat16_sendrecv=compresses)
    with session(cluster.target("worker", 0), options) as each:
        results = each.run([here, there, exact], {x: given})
    np.testing.assert_array_equal(results[0], -given)  # what is fed and fetched stays as it is
    np.testing.assert_array_equal(results[2], -given[::-1].astype(np.float64))  # so do other types
    expected = cut(-given[::-1]) if compresses else -given[::-1]
    np.testing.assert_array_equal(results[1].view(np.uint32), expected.view(np.uint32))


def test_what_crosses_is_half_as_large(cluster: clusters.Cluster) -> None:
    with tf.device(on_tasks(0)):
        v = tf.get_variable("halved", [64, 64], initializer=tf.ones_initializer())
    with tf.device(on_tasks(2)):
        y = tf.matmul(v, v)
    with session(cluster.target()) as each:
        each.run(v.initializer)
        metadata = tf.RunMetadata()
        asked = tf.RunOptions(output_partition_graphs=True)
        np.testing.assert_array_equal(
            each.run(y, options=asked, run_metadata=metadata), np.full((64, 64), 64.0)
        )
    nodes = [node for graph in metadata.partition_graphs for node in graph.node]
    sent = {tf.DType(node.attr["T"].type) for node in nodes if node.op == "_Send" and "halved" in node.name}
    received = {tf.DType(node.attr["tensor_type"].type) for node in nodes if node.op == "_Recv"}
    assert sent == {tf.bfloat16} and tf.bfloat16 in received


def trained(target: str, device: Devices, name: str) -> list[np.ndarray[Any, Any]]:
    """The weights and losses of a model over three devices, after each of some steps."""
    rng = np.random.RandomState(1)
    inputs = rng.randn(32, 5).astype(np.float32)
    wanted = inputs @ rng.randn(5, 2).astype(np.float32)
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.float32, [None, 2])
        with tf.device(device(0)):
            w = tf.get_variable(f"{name}_w", initializer=rng.randn(5, 8).astype(np.float32) * 0.3)
            u = tf.get_variable(f"{name}_u", initializer=rng.randn(8, 2).astype(np.float32) * 0.3)
        with tf.device(device(1)):
            hidden = tf.tanh(tf.matmul(x, w))
        with tf.device(device(2)):
            loss = tf.reduce_mean(tf.square(tf.matmul(hidden, u) - y))
        train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, colocate_gradients_with_ops=True)
        found = []
        with session(target) as each:
            each.run(tf.global_variables_initializer())
            for _ in range(10):
                each.run(train, {x: inputs, y: wanted})
                found += each.run([w, u, loss], {x: inputs, y: wanted})
    return found


def test_a_training_is_that_of_one_process(cluster: clusters.Cluster, request: Any) -> None:
    kind = "".join(filter(str.isalnum, request.node.name))
    there = trained(cluster.target(), on_tasks, f"there_{kind}")
    here = trained("", in_one_process, "here")
    for one, other in zip(there, here):
        np.testing.assert_array_equal(one, other)
    losses = there[2::3]
    assert losses[-1] < 0.6 * losses[0]
