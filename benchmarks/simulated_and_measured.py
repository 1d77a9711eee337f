"""What the simulation of a placement says, and what its steps take, on two CPU devices of this machine.

Each model runs with every second step measured (`docs/tracing.md`); the steps in between are not traced, and
timed as a whole. The fastest tenth of both counts, because other programs share the machine: the mean of the
untraced steps, and each node's mean in the traced ones. These times go into the simulation of the placement
that the steps had; what is no node any more at run time (merged, or read in place) costs nothing there.
Two models have kernels that only sleep, and so compare placements without a fight for cores.
`placement.py --measured` prints the table.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.placement.cluster_simulator import simulate
from flowstone.placement.cost_model import CostModel
from flowstone.placement.task_graph import placed_task_graph
from flowstone.runtime.plans.plan import placed_subgraph
from flowstone.runtime.plans.plan_options import PlanOptions
from flowstone.runtime.process.device import Device, local_devices

Model = tuple[list[Any], list[Any], dict[tf.Tensor, np.ndarray]]  # fetches, targets, feeds

# ---- models


def random_floats(*shape: int) -> np.ndarray:
    """Small numbers of both signs."""
    return (np.random.default_rng(0).random(shape, np.float32) - 0.5) / 10


def towers() -> Model:
    """Two chains of products, one a device, that meet at the end."""
    x = tf.placeholder(tf.float32, [256, 512])
    ends = []
    for i in range(2):
        with tf.device(f"/cpu:{i}"):
            y = x
            for _ in range(6):
                y = tf.tanh(tf.matmul(y, tf.constant(random_floats(512, 512))))
            ends.append(y)
    with tf.device("/cpu:0"):
        return [tf.reduce_sum(tf.add_n(ends))], [], {x: random_floats(256, 512)}


def stacked_lstm(steps: int = 12, batch: int = 64, width: int = 192) -> Model:
    """A training step of two LSTM layers, a device each (Figure 7 of the white paper)."""
    x = tf.placeholder(tf.float32, [steps, batch, width])
    inputs = tf.unstack(x)
    for layer in range(2):
        with tf.device(f"/cpu:{layer}"):
            w = tf.get_variable(f"w{layer}", [2 * width, 4 * width])
            h = c = tf.zeros([batch, width])
            outputs = []
            for value in inputs:
                i, j, f, o = tf.split(tf.matmul(tf.concat([value, h], 1), w), 4, 1)
                c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
                h = tf.tanh(c) * tf.sigmoid(o)
                outputs.append(h)
            inputs = outputs
    with tf.device("/cpu:1"):
        loss = tf.reduce_mean(tf.square(tf.stack(inputs)))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    train = optimizer.minimize(loss, colocate_gradients_with_ops=True)
    return [loss], [train], {x: random_floats(steps, batch, width)}


def data_parallel(batch: int = 32) -> Model:
    """A training step of a convolutional network on two halves of the batch, gradients averaged."""
    x = tf.placeholder(tf.float32, [2 * batch, 28, 28, 1])
    halves = tf.split(x, 2)
    optimizer, gradients, losses = tf.train.GradientDescentOptimizer(0.1), [], []
    for i, half in enumerate(halves):
        with tf.device(f"/cpu:{i}"), tf.variable_scope("net", reuse=i > 0):
            y = half
            for layer, channels in enumerate((16, 32)):
                with tf.device("/cpu:0"):
                    w = tf.get_variable(f"w{layer}", [5, 5, y.dims[3], channels])
                y = tf.nn.relu(tf.nn.conv2d(y, w, [1, 1, 1, 1], "SAME"))
                y = tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
            losses.append(tf.reduce_mean(tf.square(y)))
            variables = tf.trainable_variables()
            gradients.append(tf.gradients(losses[-1], variables, colocate_gradients_with_ops=True))
    with tf.device("/cpu:0"):
        means = [(a + b) / 2.0 for a, b in zip(*gradients)]
        train = optimizer.apply_gradients(zip(means, tf.trainable_variables()))
        return [tf.add_n(losses)], [train], {x: random_floats(2 * batch, 28, 28, 1)}


def inception_modules(batch: int = 8, modules: int = 3) -> Model:
    """Branches of convolutions of several sizes, placed by flowstone, with the costs of the first steps."""
    x = tf.placeholder(tf.float32, [batch, 28, 28, 64])
    y = x
    for _ in range(modules):
        branches = []
        for size, channels in ((1, 16), (3, 24), (5, 16), (3, 8)):
            w = tf.constant(random_floats(size, size, y.dims[3], channels))
            branches.append(tf.nn.relu(tf.nn.conv2d(y, w, [1, 1, 1, 1], "SAME")))
        y = tf.concat(branches, 3)
    return [tf.reduce_mean(y)], [], {x: random_floats(batch, 28, 28, 64)}


def sleep(milliseconds: float, *inputs: tf.Tensor) -> tf.Tensor:
    """The first input, a while later."""

    def kernel(*values: np.ndarray) -> np.ndarray:
        time.sleep(milliseconds / 1e3)
        return values[0]

    output = tf.py_func(kernel, inputs, tf.float32, stateful=False)
    output.set_shape(inputs[0].shape)
    return output


def sleeping_modules(modules: int = 3) -> Model:
    """Branches of two kernels each, placed by flowstone with the costs of the first steps."""
    x = y = tf.placeholder(tf.float32, [4])
    for _ in range(modules):
        y = tf.add_n([sleep(b, sleep(a, y)) for a, b in ((2, 1), (10, 1), (8, 2), (5, 1))])
    return [y], [], {x: random_floats(4)}


def sleeping_recurrence(steps: int = 8) -> Model:
    """Two layers of a recurrence, a device each: the second follows a step behind the first."""
    x = tf.placeholder(tf.float32, [4])
    inputs = [x] * steps
    for layer in range(2):
        with tf.device(f"/cpu:{layer}"):
            outputs = [sleep(4, inputs[0])]
            for value in inputs[1:]:
                outputs.append(sleep(4, value, outputs[-1]))
            inputs = outputs
    return [inputs[-1]], [], {x: random_floats(4)}


MODELS: dict[str, Callable[[], Model]] = {
    "two towers": towers,
    "stacked LSTM, a layer a device": stacked_lstm,
    "convolutions, data-parallel": data_parallel,
    "inception modules, placed by measured costs": inception_modules,
    "sleeping modules, placed by measured costs": sleeping_modules,
    "sleeping recurrence, a layer a device": sleeping_recurrence,
}

# ---- measuring


def run(model: Model, pairs: int) -> tuple[CostModel, dict[str, str], float]:
    """The nodes' costs, their devices by name, and the microseconds of a step that is not traced."""
    fetches, targets, feeds = model
    config = tf.ConfigProto(device_count={"CPU": 2, "GPU": 0})
    config.graph_options.build_cost_model = 2
    steps: list[float] = []
    traces: list[tuple[float, Any]] = []
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        for _ in range(WARM_UP + pairs):
            steps.append(microseconds(lambda: session.run([*fetches, *targets], feeds)))
            metadata = tf.RunMetadata()
            session.run([*fetches, *targets], feeds, run_metadata=metadata)
            traces.append((span(metadata.step_stats), metadata.step_stats))
    fastest = sorted(traces[WARM_UP:], key=lambda each: each[0])[: max(3, pairs // 10)]
    costs, devices = CostModel(), {}
    for _, stats in fastest:
        for device in stats.dev_stats:
            for node in device.node_stats:
                costs.record(node.node_name, device.device, node.all_end_rel_nanos / 1e3)
                devices[node.node_name] = device.device
    return costs, devices, statistics.fmean(sorted(steps[WARM_UP:])[: max(3, pairs // 10)])


WARM_UP = 5  # pairs of steps


def microseconds(function: Callable[[], object]) -> float:
    """Of one call."""
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) * 1e6


def span(stats: Any) -> float:
    """Microseconds from the begin of a traced step's first node to the end of its last."""
    nodes = [node for device in stats.dev_stats for node in device.node_stats]
    end = max(node.all_start_nanos + node.all_end_rel_nanos for node in nodes)
    return (end - min(node.all_start_nanos for node in nodes)) / 1e3


def simulated_us(model: Model, costs: CostModel, devices: dict[str, str]) -> float:
    """The makespan on the placement that the steps had, by their costs."""
    fetches, targets, feeds = model
    local = local_devices({"CPU": 2, "GPU": 0})
    subgraph, _ = placed_subgraph(fetches, targets, list(feeds), PlanOptions(local))
    by_name = {device.name: device for device in local}
    placement = placed(subgraph, {name: by_name[device] for name, device in devices.items()})
    for node in subgraph.nodes:
        if costs.measured_us(node.name, placement[node].name) is None:
            costs.record(node.name, placement[node].name, 0.0)
    return simulate(*placed_task_graph(subgraph, placement, costs)).makespan_us


def placed(subgraph: Subgraph, devices: dict[str, Device]) -> dict[PlanNode, Device]:
    """Each node's device; what did not run is where its value was wanted."""
    placement: dict[PlanNode, Device] = {}
    for node in reversed(subgraph.nodes):
        found = devices.get(node.name) or placement.get(node) or next(iter(devices.values()))
        placement[node] = found
        for source in (*(x.op for x in node.inputs), *node.control_inputs):
            placement.setdefault(source, found)
    return placement


def rows(pairs: int) -> Iterator[str]:
    """The table."""
    yield "| model | nodes | simulated ms | measured ms | measured / simulated |"
    yield "| --- | --- | --- | --- | --- |"
    for name, build in MODELS.items():
        with tf.Graph().as_default() as graph:
            model = build()
            costs, devices, measured = run(model, pairs)
            simulated = simulated_us(model, costs, devices)
            yield (
                f"| {name} | {len(graph.get_operations())} | {simulated / 1e3:.2f} | {measured / 1e3:.2f} | "
                f"{measured / simulated:.2f} |"
            )


if __name__ == "__main__":
    for line in rows(30):
        print(line, flush=True)
