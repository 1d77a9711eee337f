"""Random programs of branches, loops and queues over a CPU and a device to which values are copied.

The other device is the host under a GPU's name, with a GPU's kernels and transfers, or the example device,
whose values no other kernel can read. All its Receives are delayed, however small they are. The programs are
those of `test_random_programs`.
"""

from __future__ import annotations

import importlib
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.runtime.test_random_programs import ARITHMETIC, evaluate, program, start

import flowstone as tf
from flowstone.partition import receive_scheduling
from flowstone.runtime.plans import session_options
from flowstone.runtime.process.device import Device, local_devices
from flowstone.runtime.process.device_types import register_device_type, unregister_device_type

EXAMPLE = Path(__file__).parents[2] / "examples" / "example_device"
GPU = Device("/job:localhost/replica:0/task:0/device:GPU:0", "GPU", torch.device("cpu"), 1 << 30)


@pytest.fixture(params=["GPU", "ARENA"])
def other(request, monkeypatch):
    """The name of the other device."""
    monkeypatch.setattr(receive_scheduling, "SMALLEST", 0)
    if request.param == "GPU":
        monkeypatch.setattr(session_options, "local_devices", lambda *args: [*local_devices({"GPU": 0}), GPU])
        yield "/gpu:0"
    else:
        monkeypatch.syspath_prepend(EXAMPLE)
        register_device_type(importlib.import_module("example_device").Arenas())
        yield "/device:ARENA:0"
        unregister_device_type("ARENA")


def build(statements, values, other):
    """The last value, as a graph with about half of the statements on each device."""
    values = list(values)
    for kind, device, *rest in statements:
        with tf.device("/cpu:0" if device % 2 else other):
            if kind == "op":
                name, (a, b, _) = rest
                values.append(ARITHMETIC[name][0](values[a], values[b]))
            elif kind == "cond":
                (a, _, _), branches = rest
                odd = tf.equal(tf.floormod(tf.reduce_sum(values[a]), 2), 1)
                ways = [lambda b=b: build(b, values, other) for b in (branches[1], branches[0])]
                values.append(tf.cond(odd, *ways))
            elif kind == "loop":
                values.append(build_loop(rest, values, other))
            else:
                queue = tf.FIFOQueue(10, [tf.int32], [[3]])
                with tf.control_dependencies([queue.enqueue(values[rest[0][0]])]):
                    values.append(tf.identity(queue.dequeue()))
    return values[-1]


def build_loop(rest, values, other):
    (a, b, _), count, parallel, body = rest

    def step(i, first, second):
        return i + 1, build(body, [*values, first, second], other), first

    start_values = [tf.constant(0), values[a], values[b]]
    _, first, second = tf.while_loop(
        lambda i, first, second: i < count, step, start_values, parallel_iterations=parallel
    )
    return first + second


@pytest.mark.parametrize("seed", range(40))
def test_copies_and_delays_give_what_plain_python_gives(seed, other):
    rng = random.Random(seed)
    statements = program(rng, 3, rng.randint(2, 7), 3, queues=seed % 3 == 0)
    with tf.Graph().as_default() as graph, np.errstate(over="ignore"):
        feeds = [tf.placeholder(tf.int32, [3]) for _ in range(3)]
        result = build(statements, feeds, other)
        config = tf.ConfigProto(allow_soft_placement=True, operation_timeout_in_ms=60_000)
        with tf.Session(graph=graph, config=config) as session:
            for _ in range(2):
                given = start(rng)
                expected = evaluate(statements, given)
                np.testing.assert_array_equal(session.run(result, dict(zip(feeds, given))), expected)


def test_a_receive_that_a_loop_wants_does_not_wait_for_what_comes_after_it(other):
    x, w = tf.placeholder(tf.float32, [2], name="x"), tf.placeholder(tf.float32, [2], name="w")

    def body(i, y):
        with tf.device(other):
            return i + 1, y * w

    with tf.device("/cpu:0"):
        _, y = tf.while_loop(lambda i, y: i < 3, body, [0, x])
    with tf.device(other):
        after = tf.exp(y) * w
    with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=60_000)) as session:
        found = session.run(after, {x: [1, 2], w: [0.5, 1]})
    np.testing.assert_allclose(found, np.exp([0.125, 2.0]) * [0.5, 1], rtol=1e-6)
