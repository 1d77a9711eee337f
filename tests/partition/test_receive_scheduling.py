"""Delayed Receives: where the control edges lie, that no cycle comes of it, and the memory it saves."""

from __future__ import annotations

import importlib
import random
from pathlib import Path

import numpy as np
import pytest

import flowstone as tf
from flowstone.partition.receive_scheduling import delay_receives, simulate_parts, windows
from flowstone.partition.send_receive import RECEIVES
from flowstone.partition.subgraphs import partition
from flowstone.placement.devices import Link, SimulatedDevice
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.plans import plan
from flowstone.runtime.process.device_types import memory_of, register_device_type, unregister_device_type

pytestmark = pytest.mark.usefixtures("graph")

EXAMPLE = Path(__file__).parents[2] / "examples" / "example_device"
TASK = "/job:localhost/replica:0/task:0"
CPU = SimulatedDevice(f"{TASK}/device:CPU:0")
LANE = SimulatedDevice(f"{TASK}/device:LANE:0", "LANE")
LAYERS, SIZE = 8, 256
BYTES = SIZE * SIZE * 4


def chain(device=None):
    """A chain of products on another device, with matrices that the CPU computes at the start, the one that
    is needed last first."""
    x = tf.placeholder(tf.float32, [SIZE, SIZE], name="x")
    with tf.device("/cpu:0"):
        weights = [tf.add(x, i / 10, name=f"w{i}") for i in reversed(range(LAYERS))][::-1]
    with tf.device(device):
        y = weights[0]
        for i in range(1, LAYERS):
            y = tf.tanh(tf.matmul(y, weights[i], name=f"y{i}"), name=f"t{i}")
    return x, y


def parts_of(x, y, delays):
    subgraph = prune([y], [], [x])
    placement = {n: LANE if n.name[0] in "yt" else CPU for n in subgraph.nodes}
    return partition(subgraph, placement, CPU, delays=delays)


def receives(parts):
    return {
        node.name.partition("/")[0]: [control.name for control in node.control_inputs]
        for part in parts
        for node in part.subgraph.nodes
        if node.declaration.role in RECEIVES and part.device is LANE
    }


def test_each_receive_waits_for_the_node_before_its_result_is_needed():
    x, y = chain()
    without = receives(parts_of(x, y, delays=False))
    assert without == {f"w{i}": [] for i in range(LAYERS)}
    found = receives(parts_of(x, y, delays=True))
    assert found["w0"] == found["w1"] == [], "they are needed at once"
    for i in range(2, LAYERS):
        (awaited,) = found[f"w{i}"]
        assert awaited[0] in "yt" and int(awaited[1:]) < i, "a node before the product that takes it"
        assert int(awaited[1:]) >= i - 2, "and not long before"


def test_the_simulated_step_needs_less_memory_and_hardly_more_time():
    x, y = chain()
    early, late = (
        simulate_parts([(p.device, p.subgraph) for p in parts_of(x, y, delays)]) for delays in (False, True)
    )
    assert early.peak_bytes[1] >= (LAYERS - 1) * BYTES, "all matrices lie about"
    assert late.peak_bytes[1] <= 5 * BYTES
    assert late.makespan_us <= early.makespan_us * 1.05


def measured_peak(delays, monkeypatch):
    """The most that the example device held in a step."""
    monkeypatch.syspath_prepend(EXAMPLE)
    example_device = importlib.import_module("example_device")
    with tf.Graph().as_default():
        x, y = chain("/device:ARENA:0")
        monkeypatch.setattr(plan, "partition", lambda *args: partition(*args, delays=delays))
        register_device_type(example_device.Arenas())
        try:
            with tf.Session() as session:
                value = np.random.RandomState(0).randn(SIZE, SIZE).astype(np.float32) / SIZE
                result = session.run(y, {x: value})
            return memory_of("ARENA", 0).statistics().peak_bytes, result
        finally:
            unregister_device_type("ARENA")


def test_the_measured_step_needs_less_memory_and_gives_the_same(monkeypatch):
    (early, expected), (late, found) = (measured_peak(delays, monkeypatch) for delays in (False, True))
    np.testing.assert_array_equal(found, expected)
    assert late <= 5 * BYTES < 0.75 * early


def test_between_cpus_nothing_is_delayed():
    x, y = chain()
    other = SimulatedDevice(f"{TASK}/device:CPU:1")
    subgraph = prune([y], [], [x])
    parts = partition(subgraph, {n: other if n.name[0] in "yt" else CPU for n in subgraph.nodes})
    assert not any(
        node.control_inputs
        for part in parts
        for node in part.subgraph.nodes
        if node.declaration.role in RECEIVES
    )


def test_nothing_waits_for_what_may_not_run():
    """A Receive that is needed in any case does not wait for a branch or a loop."""
    x, p = tf.placeholder(tf.float32, [SIZE, SIZE], name="x"), tf.placeholder(tf.bool, [], name="p")
    w = tf.add(x, 1.0, name="w")
    first = tf.matmul(x, x, name="y1")
    y = tf.cond(p, lambda: tf.matmul(first, first, name="ya"), lambda: tf.tanh(first, name="tb"), name="c")
    z = tf.matmul(y, w, name="y2")
    subgraph = prune([z], [], [x, p])
    placement = {
        n: LANE if n.name.rpartition("/")[2][0] in "yt" else CPU for n in subgraph.nodes if n.type != "_Arg"
    }
    placement |= {n: CPU for n in subgraph.nodes if n.type == "_Arg"}
    parts = partition(subgraph, placement, CPU)
    for name, controls in receives(parts).items():
        assert set(controls) <= {"y1"}, f"{name} waits for {controls}"


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_stay_acyclic_and_the_critical_path_does_not_grow(seed):
    rng = random.Random(seed)
    x = tf.placeholder(tf.float32, [SIZE, SIZE], name="x")
    values = [x]
    for i in range(30):
        a, b = (rng.choice(values[-6:]) for _ in range(2))
        values.append(rng.choice([tf.matmul, tf.add])(a, b, name=f"n{i}"))
    lanes = [LANE, SimulatedDevice(f"{TASK}/device:LANE:1", "LANE"), CPU]
    subgraph = prune(values[-3:], [], [x])
    parts = partition(subgraph, {n: rng.choice(lanes) for n in subgraph.nodes}, CPU, delays=False)
    nodes = {part.device: part.subgraph.nodes for part in parts}
    count = sum(len(those) for those in nodes.values())
    before = windows(nodes)
    delay_receives(nodes, {n for those in nodes.values() for n in those})
    after = windows(nodes)
    assert len(after) == count, "nodes of a cycle would never be ready"
    end = max(w.asap_us + w.length_us for w in before.values())
    assert max(w.asap_us + w.length_us for w in after.values()) <= end * (1 + 1e-9)


def test_windows_are_the_longest_paths():
    x = tf.placeholder(tf.float32, [SIZE, SIZE], name="x")
    a = tf.matmul(x, x, name="ya")
    b = tf.matmul(a, tf.negative(x, name="yb"), name="yc")
    subgraph = prune([b], [], [x])
    found = {
        node.name: w for node, w in windows({CPU: subgraph.nodes}, links=lambda a, b: Link(1, 0)).items()
    }
    assert found["ya"].asap_us == found["ya"].alap_us == 0.0, "on the critical path"
    assert found["yc"].asap_us == pytest.approx(found["ya"].length_us) == found["yc"].alap_us
    assert found["yb"].asap_us == 0.0
    assert found["yb"].alap_us == pytest.approx(found["ya"].length_us - found["yb"].length_us)
