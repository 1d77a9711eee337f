"""Task graphs and clusters made up for judging placements: random ones, the same for the same seed.

>>> cluster = random_cluster(3, seed=1)
>>> tasks = random_tasks(5, cluster, seed=1)
>>> len(tasks.inputs), len(tasks.times), tasks.inputs[0]
(5, 3, ())
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from flowstone.placement.devices import Link, Links, PlacementDevice, SimulatedDevice
from flowstone.placement.task_graph import TaskGraph, link_table


def random_cluster(count: int, seed: int, memory_limit: int | None = None) -> list[SimulatedDevice]:
    """`count` CPU devices of one process, 0.5 to 4 times as fast as a usual one."""
    draw = random.Random(seed)
    return [
        SimulatedDevice(
            f"/job:localhost/replica:0/task:0/device:CPU:{i}",
            "CPU",
            memory_limit,
            draw.choice([0.5, 1.0, 2.0, 4.0]),
        )
        for i in range(count)
    ]


def random_tasks(
    count: int,
    devices: Sequence[PlacementDevice],
    seed: int,
    *,
    links: Links = lambda source, target: Link(5.0, 1e-3),
    pinned: float = 0.0,
    colocated: float = 0.0,
) -> TaskGraph:
    """A random acyclic graph of `count` tasks that take 1 to 100 us on a device of speed 1.

    Each task takes up to three tensors, of 1 to 100,000 bytes, of the twelve tasks before it. A task is on a
    given device with probability `pinned`, and in the group of an earlier one with probability `colocated`.
    """
    draw = random.Random(seed)
    work = [draw.uniform(1, 100) for _ in range(count)]
    inputs = []
    for i in range(count):
        earlier = range(max(0, i - 12), i)
        sources = draw.sample(earlier, min(len(earlier), draw.randint(0, 3)))
        inputs.append(tuple([2 * source for source in sorted(sources)]))
    size = [s for _ in range(count) for s in (round(10 ** draw.uniform(0, 5)), 0)]
    group, feasible = _groups(count, len(devices), draw, pinned, colocated)
    return TaskGraph(
        devices,
        link_table(devices, links),
        [[us / device.relative_speed for us in work] for device in devices],
        inputs,
        [range(2 * i, 2 * i + 2) for i in range(count)],
        [i for i in range(count) for _ in range(2)],
        size,
        list(range(2 * count)),
        list(size),
        group,
        feasible,
        [0] * len(feasible),
    )


def _groups(
    count: int, width: int, draw: random.Random, pinned: float, colocated: float
) -> tuple[list[int], list[tuple[int, ...]]]:
    group: list[int] = []
    feasible: list[tuple[int, ...]] = []
    for i in range(count):
        if i and draw.random() < colocated:
            group.append(group[draw.randrange(i)])
        else:
            group.append(len(feasible))
            feasible.append((draw.randrange(width),) if draw.random() < pinned else tuple(range(width)))
    return group, feasible
