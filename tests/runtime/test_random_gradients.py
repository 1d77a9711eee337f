"""Gradients of random programs of branches and loops over several devices: the same bits as on one.

The programs are those of `test_random_programs`, over floats and with smooth products. On one device segments
run loops and branches, on several the executor does, so both are held against each other.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.runtime.test_random_programs import program

import flowstone as tf
from flowstone.framework import flags
from flowstone.lowering.passes import LOWERING

ARITHMETIC = {
    "add": tf.add,
    "sub": tf.subtract,
    "mul": lambda a, b: tf.multiply(tf.tanh(a), tf.tanh(b)),
    "max": tf.maximum,
}


def build(statements, values, devices):
    """The last value; each statement on its own one of `devices` CPUs (0: nowhere in particular)."""
    values = list(values)
    for kind, device, *rest in statements:
        with tf.device(f"/cpu:{device % devices}" if devices else None):
            if kind == "op":
                name, (a, b, _) = rest
                values.append(ARITHMETIC[name](values[a], values[b]))
            elif kind == "cond":
                (a, _, _), branches = rest
                ways = [lambda b=b: build(b, values, devices) for b in (branches[1], branches[0])]
                values.append(tf.cond(tf.reduce_sum(values[a]) > 0.0, *ways))
            else:
                values.append(build_loop(rest, values, devices))
    return values[-1]


def build_loop(rest, values, devices):
    (a, b, _), count, parallel, body = rest

    def step(i, first, second):
        return i + 1, build(body, [*values, first, second], devices), first

    start = [tf.constant(0), values[a], values[b]]
    _, first, second = tf.while_loop(
        lambda i, first, second: i < count, step, start, parallel_iterations=parallel
    )
    return first + second


def values_of(seed, devices):
    """The program's value and gradients for two feeds."""
    rng = random.Random(seed)
    statements = program(rng, 3, rng.randint(2, 6), 2, queues=False)
    with tf.Graph().as_default() as graph:
        feeds = [tf.placeholder(tf.float32, [3]) for _ in range(3)]
        y = build(statements, feeds, devices)
        fetches = [y, *[dy for dy in tf.gradients(y, feeds) if dy is not None]]
        config = tf.ConfigProto(device_count={"CPU": max(1, devices)}, operation_timeout_in_ms=60_000)
        with tf.Session(graph=graph, config=config) as session:
            given = np.random.RandomState(seed).randn(2, 3, 3).astype(np.float32)
            return [value for each in given for value in session.run(fetches, dict(zip(feeds, each)))]


@pytest.mark.parametrize("seed", range(30))
def test_gradients_are_the_same_bits_on_several_devices(seed, monkeypatch):
    monkeypatch.setattr(flags, "DISABLED_PASSES", flags.DISABLED_PASSES | {each.name for each in LOWERING})
    for expected, found in zip(values_of(seed, 0), values_of(seed, 3)):
        np.testing.assert_array_equal(found, expected)
