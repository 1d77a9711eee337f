"""How good placements are, on simulated clusters: prints what `results/placement.md` holds.

    .venv/bin/python benchmarks/placement.py [--markdown FILE] [--seeds 30] [--measured [STEPS]]

First table: a training step of an Inception-sized and of an LSTM-sized graph, simulated on clusters of tens
of devices, placed by the greedy simulation, wholly on the best device, in turn (round robin) and at random.
Second table: small random graphs, the greedy placement's time over that of the best of all placements.
Times are simulated, so that they are the same on every machine; only "to place" is measured.
With `--measured` there is a third table: what the simulation says with measured costs, and what steps take
on two CPU devices of this machine (`simulated_and_measured.py`).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import flowstone as tf
import simulated_and_measured
from flowstone.framework.graphs.subgraph import Subgraph
from flowstone.placement.cluster_simulator import (
    best_single_device,
    cost,
    exhaustive,
    random_placement,
    round_robin,
)
from flowstone.placement.cost_model import CostModel
from flowstone.placement.device_constraints import find_constraints
from flowstone.placement.devices import Link, SimulatedDevice
from flowstone.placement.node_placement import place, place_tasks
from flowstone.placement.synthetic_graphs import random_cluster, random_tasks
from flowstone.placement.task_graph import task_graph
from flowstone.rewriting.simplification.partial_execution import prune

# ---- graphs

# GoogLeNet's nine modules: channels of the 1x1, 3x3 (reduced, full), 5x5 (reduced, full) and pool branches.
MODULES = [
    (64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), (192, 96, 208, 16, 48, 64),
    (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64),
    (256, 160, 320, 32, 128, 128), (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128),
]  # fmt: skip
SHRINKING = (1, 6)  # modules after which the picture is halved


def convolution(x: tf.Tensor, channels: int, size: int, stride: int = 1) -> tf.Tensor:
    """A rectified convolution with bias; NHWC."""
    number = len(tf.global_variables())
    w = tf.get_variable(f"w{number}", [size, size, x.dims[3], channels])
    b = tf.get_variable(f"b{number}", [channels], initializer=tf.zeros_initializer())
    return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1, stride, stride, 1], "SAME"), b))


def pool(x: tf.Tensor, stride: int) -> tf.Tensor:
    """The largest of 3 x 3."""
    return tf.nn.max_pool(x, [1, 3, 3, 1], [1, stride, stride, 1], "SAME")


def inception(batch: int = 32) -> Subgraph:
    """A training step of GoogLeNet on 224 x 224 pictures."""
    x = tf.placeholder(tf.float32, [batch, 224, 224, 3])
    labels = tf.placeholder(tf.int32, [batch])
    y = pool(convolution(x, 64, 7, 2), 2)
    y = pool(convolution(convolution(y, 64, 1), 192, 3), 2)
    for i, (a, b_reduced, b, c_reduced, c, d) in enumerate(MODULES):
        branches = [
            convolution(y, a, 1),
            convolution(convolution(y, b_reduced, 1), b, 3),
            convolution(convolution(y, c_reduced, 1), c, 5),
            convolution(pool(y, 1), d, 1),
        ]
        y = tf.concat(branches, 3)
        if i in SHRINKING:
            y = pool(y, 2)
    features = tf.reduce_mean(y, [1, 2])
    logits = tf.matmul(features, tf.get_variable("softmax", [features.dims[1], 1000]))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    return prune([loss], [tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)], [x, labels])


def lstm(
    batch: int = 64, steps: int = 20, layers: int = 4, width: int = 1024, words: int = 10_000
) -> Subgraph:
    """A training step of a language model of stacked LSTMs, unrolled."""
    x = tf.placeholder(tf.int32, [steps, batch])
    labels = tf.placeholder(tf.int32, [steps * batch])
    inputs = tf.unstack(tf.nn.embedding_lookup(tf.get_variable("embedding", [words, width]), x))
    for layer in range(layers):
        w = tf.get_variable(f"w{layer}", [2 * width, 4 * width])
        h = c = tf.zeros([batch, width])
        outputs = []
        for value in inputs:
            i, j, f, o = tf.split(tf.matmul(tf.concat([value, h], 1), w), 4, 1)
            c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
            h = tf.tanh(c) * tf.sigmoid(o)
            outputs.append(h)
        inputs = outputs
    softmax = tf.get_variable("softmax", [width, words])
    logits = tf.concat([tf.matmul(h, softmax) for h in inputs], 0)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    return prune([loss], [tf.train.GradientDescentOptimizer(0.1).minimize(loss)], [x, labels])


GRAPHS: dict[str, Callable[[], Subgraph]] = {"Inception": inception, "LSTM": lstm}

# ---- clusters


def cpus() -> list[SimulatedDevice]:
    """One machine: 16 CPU devices of three speeds."""
    names = [f"/job:localhost/replica:0/task:0/device:CPU:{i}" for i in range(16)]
    return [SimulatedDevice(name, "CPU", None, (0.5, 1.0, 2.0)[i % 3]) for i, name in enumerate(names)]


def gpus() -> list[SimulatedDevice]:
    """One machine: a CPU and 8 GPUs of 2 GiB, of three speeds."""
    task = "/job:localhost/replica:0/task:0/device:"
    own = [SimulatedDevice(f"{task}GPU:{i}", "GPU", 2 << 30, (0.5, 1.0, 2.0)[i % 3]) for i in range(8)]
    return [SimulatedDevice(f"{task}CPU:0"), *own]


def machines() -> list[SimulatedDevice]:
    """Four machines on a network: each a CPU and 8 GPUs of 2 GiB, of three speeds."""
    return [
        device._replace(
            name=device.name.replace("/job:localhost/replica:0/task:0", f"/job:worker/replica:0/task:{i}")
        )
        for i in range(4)
        for device in gpus()
    ]


CLUSTERS = {"16 CPUs": cpus, "1 CPU, 8 GPUs": gpus, "4 x (1 CPU, 8 GPUs)": machines}


def large() -> Iterator[str]:
    """The first table's rows."""
    yield "| graph | nodes | cluster | greedy ms | best single | round robin | random, mean of 5 | to place |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for graph, build in GRAPHS.items():
        with tf.Graph().as_default():
            subgraph = build()
        for cluster, make in CLUSTERS.items():
            devices = make()
            tasks = task_graph(subgraph, devices, find_constraints(subgraph.nodes, devices), CostModel())
            greedy = cost(tasks, place_tasks(tasks))
            start = time.perf_counter()
            place(subgraph, devices)
            seconds = time.perf_counter() - start
            others = (
                [best_single_device(tasks)],
                [round_robin(tasks)],
                [random_placement(tasks, i) for i in range(5)],
            )
            cells = [ratio(greedy, [cost(tasks, groups) for groups in each]) for each in others]
            yield (
                f"| {graph} | {len(subgraph.nodes)} | {cluster} | {greedy[1] / 1e3:.2f} | "
                f"{' | '.join(cells)} | {seconds:.2f} s |"
            )


def ratio(greedy: tuple[int, float, int], others: list[tuple[int, float, int]]) -> str:
    """How much longer the others take, and whether they have the memory."""
    mean = statistics.fmean(us for _, us, _ in others)
    note = "" if not any(excess for excess, _, _ in others) else " (too little memory)"
    return f"{mean / greedy[1]:.2f} x{note}"


LINKS = {"shared memory": Link(5.0, 0.0), "bus": Link(5.0, 1e-3), "network": Link(50.0, 1e-2)}


def small(seeds: int) -> Iterator[str]:
    """The second table's rows."""
    yield "| nodes | devices | link | graphs | mean | 95 % | worst | best single, mean |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for count, width in ((12, 2), (8, 3), (6, 4)):
        for name, link in LINKS.items():
            found, single = [], []
            for seed in range(seeds):
                options = {"pinned": 0.1 * (seed % 3), "colocated": 0.1 * (seed % 2)}
                devices = random_cluster(width, seed)
                tasks = random_tasks(count, devices, seed, links=lambda a, b, link=link: link, **options)
                best = cost(tasks, exhaustive(tasks))[1]
                found.append(cost(tasks, place_tasks(tasks))[1] / best)
                single.append(cost(tasks, best_single_device(tasks))[1] / best)
            found.sort()
            yield (
                f"| {count} | {width} | {name} | {seeds} | {statistics.fmean(found):.3f} | "
                f"{found[int(0.95 * seeds)]:.3f} | {found[-1]:.3f} | {statistics.fmean(single):.3f} |"
            )


def main() -> None:
    """Prints both tables and, if asked, writes them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--measured", type=int, nargs="?", const=30, default=0, metavar="STEPS")
    arguments = parser.parse_args()
    lines = [
        "# Placement on simulated clusters",
        "",
        "A training step, simulated; the other placements' times over the greedy one's.",
        "",
        *large(),
        "",
        "Small random graphs: times over those of the best of all placements.",
        "",
        *small(arguments.seeds),
        "",
    ]
    if arguments.measured:
        lines += [
            f"Simulated with measured costs, and measured: two CPU devices, {arguments.measured} steps each.",
            "What else runs on the machine lengthens steps more than it lengthens their nodes.",
            "",
            *simulated_and_measured.rows(arguments.measured),
            "",
        ]
    text = "\n".join(lines)
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
