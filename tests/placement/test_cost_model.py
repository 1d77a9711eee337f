"""Costs: estimates by device, measurements, and their way through CostGraphDef."""

from __future__ import annotations

import doctest

import pytest

import flowstone as tf
from flowstone.placement import cost_model
from flowstone.placement.cost_model import CostModel, Rates
from flowstone.placement.devices import SimulatedDevice
from flowstone.rewriting.simplification.partial_execution import prune

pytestmark = pytest.mark.usefixtures("graph")

CPU = SimulatedDevice("/job:localhost/replica:0/task:0/device:CPU:0")
FAST = SimulatedDevice("/job:localhost/replica:0/task:0/device:CPU:1", relative_speed=2.0)
GPU = SimulatedDevice("/job:localhost/replica:0/task:0/device:GPU:0", "GPU")


@pytest.mark.parametrize("module", [cost_model])
def test_examples_in_the_modules(module):
    results = doctest.testmod(module)
    assert results.failed == 0 and results.attempted > 0


def zeros(*shape, dtype=tf.float32):
    return tf.placeholder(dtype, shape)


# ---- estimates


def time_us(costs, build, device, others=()):
    subgraph = prune([build], [], [])
    return costs.time_us(subgraph.nodes[-1], device, others)


def test_an_estimate_is_a_launch_and_the_longer_of_arithmetic_and_traffic():
    costs = CostModel({"XPU": Rates(2.0, 100.0, 10.0), "CPU": Rates(1.0, 10.0, 1000.0)})
    product = tf.matmul(zeros(10, 10), zeros(10, 10))  # 2000 operations, 1200 bytes
    assert time_us(costs, product, CPU) == pytest.approx(1 + 200)
    assert time_us(costs, product, FAST) == pytest.approx(100.5)
    assert time_us(costs, product, SimulatedDevice("/device:XPU:0", "XPU")) == pytest.approx(2 + 120)
    assert time_us(costs, tf.identity(product), CPU) == 0


def test_small_operations_are_for_cpus_and_large_ones_for_gpus():
    costs = CostModel()
    small, large = tf.matmul(zeros(2, 2), zeros(2, 2)), tf.matmul(zeros(1024, 1024), zeros(1024, 1024))
    assert time_us(costs, small, CPU) < time_us(costs, small, GPU)
    assert time_us(costs, large, CPU) > time_us(costs, large, GPU)


# ---- measurements


def test_measurements_are_averaged_and_scaled_to_devices_of_the_type():
    costs, x = CostModel(), tf.negative(zeros(10), name="x")
    estimate = time_us(costs, x, GPU)
    for measured in (8.0, 12.0, 16.0):
        costs.record("x", CPU.name, measured)
    devices_ = [CPU, FAST, GPU]
    assert time_us(costs, x, CPU, devices_) == pytest.approx(12.0)
    assert time_us(costs, x, FAST, devices_) == pytest.approx(6.0)
    assert time_us(costs, x, GPU, devices_) == pytest.approx(estimate)
    costs.record("x", FAST.name, 100.0)
    assert time_us(costs, x, FAST, devices_) == pytest.approx(100.0)
    assert costs.measured_us("x", GPU.name) is None


def test_measured_sizes_replace_assumed_ones():
    costs, x = CostModel(), tf.negative(tf.placeholder(tf.float32), name="x")
    assert costs.output_size(x) == 4096
    costs.record("x", CPU.name, 1.0, {0: 100})
    costs.record("x", CPU.name, 1.0, {0: 300})
    assert costs.output_size(x) == 200


@pytest.mark.parametrize(("us", "sizes"), [(-1.0, None), (1.0, {0: -5})])
def test_a_negative_measurement_is_an_error(us, sizes):
    with pytest.raises(ValueError, match="a cost of node x is negative"):
        CostModel().record("x", CPU.name, us, sizes)


# ---- CostGraphDef


def test_a_cost_graph_tells_nodes_edges_sizes_and_what_was_measured():
    v = tf.get_variable("v", [3, 2], use_resource=False)
    x = zeros(None, 3)
    with tf.control_dependencies([tf.no_op(name="first")]):
        y = tf.matmul(x, v, name="y")
    subgraph = prune([y], [], [])
    costs = CostModel()
    costs.record("y", GPU.name, 41.6, {0: 64})
    message = costs.cost_graph(subgraph, dict.fromkeys(subgraph.nodes, GPU))
    nodes = {node.name: node for node in message.node}
    assert [node.id for node in message.node] == list(range(len(subgraph.nodes)))
    entry = nodes["y"]
    assert (entry.device, entry.compute_cost, entry.inaccurate, entry.is_final) == (GPU.name, 42, False, True)
    assert [(i.preceding_node, i.preceding_port) for i in entry.input_info] == [
        (nodes[x.op.name].id, 0) for x in y.op.inputs
    ]
    assert list(entry.control_input) == [nodes["first"].id]
    assert entry.output_info[0].size == 64 and [d.size for d in entry.output_info[0].shape.dim] == [-1, 2]
    assert entry.output_info[0].dtype == tf.float32.as_datatype_enum
    assert nodes["v"].persistent_memory_size == 24 and nodes["v"].inaccurate


def test_measurements_travel_in_a_cost_graph_and_estimates_do_not():
    y = tf.negative(zeros(4, dtype=tf.float32), name="y")
    subgraph = prune([y], [], [])
    sender, receiver = CostModel(), CostModel()
    sender.record("y", CPU.name, 7.0, {0: 16})
    message = sender.cost_graph(subgraph, dict.fromkeys(subgraph.nodes, CPU))
    again = type(message).FromString(message.SerializeToString())
    receiver.add_cost_graph(again)
    again.node[-1].compute_cost = 9
    receiver.add_cost_graph(again)
    assert receiver.measured_us("y", CPU.name) == 8.0
    assert receiver.measured_us(subgraph.nodes[0].name, CPU.name) is None
    assert receiver.output_size(y) == 16
