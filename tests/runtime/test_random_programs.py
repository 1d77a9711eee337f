"""Random programs of branches, loops, devices and queues, against the same program in plain Python.

A program is a tree of statements over int32 vectors (so that results are equal to the bit). It is built as a
graph, each op on a random device, and run as one segment, as units, and over one to four devices; NumPy
evaluates the same tree statement by statement.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.framework.declarations.kernel import Environment
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.execution.unit_program import UnitProgram
from flowstone.runtime.steps.step import Step

ARITHMETIC = {
    "add": (tf.add, np.add),
    "sub": (tf.subtract, np.subtract),
    "mul": (tf.multiply, np.multiply),
    "max": (tf.maximum, np.maximum),
}


def program(rng: random.Random, names: int, size: int, depth: int, queues: bool) -> list[Any]:
    """Statements; each makes one more value out of the `names` so far. Nested lists are bodies."""
    statements: list[Any] = []
    for _ in range(size):
        pick = [rng.randrange(max(0, names - 5), names) for _ in range(3)]
        device, kind = rng.randrange(4), rng.random()
        if kind < 0.6 or depth == 0:
            statements.append(("op", device, rng.choice(list(ARITHMETIC)), pick))
        elif kind < 0.75:
            branches = [program(rng, names, rng.randint(1, 3), depth - 1, queues) for _ in range(2)]
            statements.append(("cond", device, pick, branches))
        elif kind < 0.9 or not queues:
            body = program(rng, names + 2, rng.randint(1, 4), depth - 1, queues)
            statements.append(("loop", device, pick, rng.randrange(5), rng.choice([1, 2, 10]), body))
        else:
            statements.append(("queue", device, pick))
        names += 1
    return statements


def evaluate(statements: list[Any], values: list[np.ndarray]) -> np.ndarray:
    """The last value, in plain Python."""
    values = list(values)
    for kind, _, *rest in statements:
        if kind == "op":
            name, (a, b, _) = rest
            values.append(ARITHMETIC[name][1](values[a], values[b]))
        elif kind == "cond":
            (a, _, _), branches = rest
            values.append(evaluate(branches[int(values[a].sum() % 2)], values))
        elif kind == "loop":
            (a, b, _), count, _, body = rest
            first, second = values[a], values[b]
            for _ in range(count):
                first, second = evaluate(body, [*values, first, second]), first
            values.append(first + second)
        else:
            values.append(values[rest[0][0]])
    return values[-1]


def build(statements: list[Any], values: list[tf.Tensor], devices: int) -> tf.Tensor:
    """The last value, as a graph whose ops are on `devices` CPU devices (0: nowhere in particular)."""
    values = list(values)
    for kind, device, *rest in statements:
        with tf.device(f"/cpu:{device % devices}" if devices else None):
            if kind == "op":
                name, (a, b, _) = rest
                values.append(ARITHMETIC[name][0](values[a], values[b]))
            elif kind == "cond":
                (a, _, _), branches = rest
                odd = tf.equal(tf.floormod(tf.reduce_sum(values[a]), 2), 1)
                taken, other = (lambda b=b: build(b, values, devices) for b in (branches[1], branches[0]))
                values.append(tf.cond(odd, taken, other))
            elif kind == "loop":
                values.append(build_loop(rest, values, devices))
            else:
                queue = tf.FIFOQueue(10, [tf.int32], [[3]])
                with tf.control_dependencies([queue.enqueue(values[rest[0][0]])]):
                    values.append(tf.identity(queue.dequeue()))
    return values[-1]


def build_loop(rest: list[Any], values: list[tf.Tensor], devices: int) -> tf.Tensor:
    (a, b, _), count, parallel, body = rest

    def step(i, first, second):
        return i + 1, build(body, [*values, first, second], devices), first

    _, first, second = tf.while_loop(
        lambda i, first, second: i < count,
        step,
        [tf.constant(0), values[a], values[b]],
        parallel_iterations=parallel,
    )
    return first + second


def start(rng: random.Random) -> list[np.ndarray]:
    return [np.array([rng.randint(-9, 9) for _ in range(3)], np.int32) for _ in range(3)]


@pytest.mark.parametrize("devices", [0, 1, 2, 4])
@pytest.mark.parametrize("seed", range(25))
def test_any_placement_gives_what_plain_python_gives(seed, devices):
    rng = random.Random(seed)
    statements = program(rng, 3, rng.randint(2, 7), 3, queues=False)
    with tf.Graph().as_default() as graph, np.errstate(over="ignore"):
        feeds = [tf.placeholder(tf.int32, [3]) for _ in range(3)]
        result = build(statements, feeds, devices)
        config = tf.ConfigProto(device_count={"CPU": max(devices, 1)})
        with tf.Session(graph=graph, config=config) as session:
            for _ in range(3):
                given = start(rng)
                np.testing.assert_array_equal(
                    session.run(result, dict(zip(feeds, given)), tf.RunOptions(timeout_in_ms=60_000)),
                    evaluate(statements, given),
                )


@pytest.mark.parametrize("seed", range(40))
def test_the_executor_gives_what_plain_python_gives(seed):
    rng = random.Random(1000 + seed)
    statements = program(rng, 3, rng.randint(2, 7), 3, queues=False)
    with tf.Graph().as_default(), np.errstate(over="ignore"):
        feeds = [tf.placeholder(tf.int32, [3]) for _ in range(3)]
        subgraph = prune([build(statements, feeds, 0)], [], feeds)
        if seed % 2:
            run_passes(subgraph, EVERY)
        units = UnitProgram.compiled(subgraph, Environment(resources=ResourceStore()), dynamic=True)
        given = start(rng)
        with torch.inference_mode():
            (value,) = units.function(Step(), *map(torch.from_numpy, given))
        np.testing.assert_array_equal(value, evaluate(statements, given))


@pytest.mark.parametrize("devices", [0, 2])
@pytest.mark.parametrize("seed", range(20))
def test_queues_among_branches_and_loops(seed, devices):
    rng = random.Random(2000 + seed)
    statements = program(rng, 3, rng.randint(2, 5), 2, queues=True)
    statements.append(("queue", 0, [2 + len(statements), 0, 0]))
    with tf.Graph().as_default() as graph, np.errstate(over="ignore"):
        feeds = [tf.placeholder(tf.int32, [3]) for _ in range(3)]
        result = build(statements, feeds, devices)
        config = tf.ConfigProto(device_count={"CPU": max(devices, 1)})
        with tf.Session(graph=graph, config=config) as session:
            for _ in range(2):
                given = start(rng)
                np.testing.assert_array_equal(
                    session.run(result, dict(zip(feeds, given)), tf.RunOptions(timeout_in_ms=60_000)),
                    evaluate(statements, given),
                )
