"""A simulated cluster: how long a step takes on a placement, and how much memory it needs.

Each device runs one task at a time, in the order in which tasks become ready (ties: in graph order). A tensor
that tasks on another device need is sent there once, when it is made. A link between two devices carries one
tensor at a time, which occupies it for `Link.us_per_byte` a byte. A buffer lives from the start of its task
(or transfer) to the end of the last task on that device that uses it.

The module also makes the placements that a good one is compared with: random, round-robin, all on the best
single device, and the best of all (exhaustive; for small graphs).
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Sequence
from typing import NamedTuple

from flowstone.placement.task_graph import TaskGraph

_MOST_PLACEMENTS = 2_000_000  # that an exhaustive search tries


class Simulation(NamedTuple):
    """What happened: `start_us` and `finish_us` of each task; `busy_us` and `peak_bytes` of each device;
    `transfers` between devices and the bytes they `moved`; `makespan_us` of the step.
    """

    makespan_us: float
    start_us: list[float]
    finish_us: list[float]
    busy_us: list[float]
    peak_bytes: list[int]
    transfers: int
    moved_bytes: int


def simulate(tasks: TaskGraph, device_of_group: Sequence[int]) -> Simulation:
    """Runs one step on the placement; `device_of_group`: an index into ``tasks.devices`` a group."""
    return _Run(tasks, device_of_group).simulation()


class _Run:
    """One simulated step. A heap orders tasks by the time at which they became ready. No task ends before
    that time, so times only grow and one pass is enough.
    """

    def __init__(self, tasks: TaskGraph, device_of_group: Sequence[int]) -> None:
        self.tasks, self.device = tasks, tasks.expand(device_of_group)
        self.groups = device_of_group
        count, width = len(tasks.inputs), len(tasks.devices)
        self.start, self.finish = [0.0] * count, [0.0] * count
        self.free = [0.0] * width
        self.channel = [[0.0] * width for _ in range(width)]
        self.sent: dict[tuple[int, int], tuple[float, float]] = {}  # (tensor, target) -> begin, arrival
        self._run()

    def _run(self) -> None:
        tasks, device, finish, start, free = self.tasks, self.device, self.finish, self.start, self.free
        consumers, outputs, times = tasks.consumers, tasks.outputs, tasks.times
        waiting = [len(inputs) for inputs in tasks.inputs]
        ready = [0.0] * len(waiting)
        heap = [(0.0, i) for i, n in enumerate(waiting) if n == 0]
        while heap:
            at, i = heapq.heappop(heap)
            d = device[i]
            begin = free[d]
            if at > begin:
                begin = at
            end = begin + times[d][i]
            free[d] = finish[i] = end
            start[i] = begin
            for t in outputs[i]:
                for j in consumers[t]:
                    target = device[j]
                    arrival = end if target == d else self._arrival(t, d, target, end)
                    if arrival > ready[j]:
                        ready[j] = arrival
                    waiting[j] -= 1
                    if not waiting[j]:
                        heapq.heappush(heap, (ready[j], j))

    def _arrival(self, tensor: int, source: int, target: int, made: float) -> float:
        sent = self.sent.get((tensor, target))
        if sent is None:
            link, size = self.tasks.links[source][target], self.tasks.size[tensor]
            begin = max(made, self.channel[source][target])
            over = begin + size * link.us_per_byte
            self.channel[source][target] = over
            sent = self.sent[tensor, target] = (begin, over + link.latency_us)
        return sent[1]

    def simulation(self) -> Simulation:
        tasks = self.tasks
        busy = [0.0] * len(tasks.devices)
        for d, begin, end in zip(self.device, self.start, self.finish):
            busy[d] += end - begin
        return Simulation(
            max(self.finish, default=0.0), self.start, self.finish, busy, self.peak_bytes(),
            len(self.sent), sum(tasks.size[tensor] for tensor, _ in self.sent),
        )  # fmt: skip

    def peak_bytes(self) -> list[int]:
        """The most memory that each device held at a time, resident memory included."""
        tasks = self.tasks
        peaks = [0] * len(tasks.devices)
        for size, d in zip(tasks.resident, self.groups):
            peaks[d] += size
        events: list[list[tuple[float, int]]] = [[] for _ in peaks]
        for (_, d), (size, begin, end) in self._buffers().items():
            events[d] += ((begin, size), (end, -size))
        for d, changes in enumerate(events):
            changes.sort()  # at one time, what is released counts first
            peaks[d] += max(itertools.accumulate((size for _, size in changes), initial=0))
        return peaks

    def _buffers(self) -> dict[tuple[int, int], tuple[int, float, float]]:
        """(storage, device) -> the buffer's size, when it is allocated, when its last use ends."""
        tasks, device, finish = self.tasks, self.device, self.finish
        storage, size, kept = tasks.storage, tasks.size, tasks.kept
        end_of_step = max(finish, default=0.0)
        found: dict[tuple[int, int], tuple[int, float, float]] = {}

        def use(tensor: int, d: int, begin: float, end: float) -> None:
            home = storage[tensor]
            before = found.get((home, d))
            if before is not None:
                found[home, d] = (before[0], min(begin, before[1]), max(end, before[2]))
            else:
                made_here = device[tasks.producer[home]] == d
                found[home, d] = (tasks.buffer[home] if made_here else size[tensor], begin, end)

        for i, d in enumerate(device):
            for t in tasks.outputs[i]:
                if size[t]:
                    use(t, d, self.start[i], end_of_step if t in kept else finish[i])
            for t in tasks.inputs[i]:
                if size[t]:
                    use(t, d, self.sent.get((t, d), (self.start[i],))[0], finish[i])
        return found


def excess_bytes(tasks: TaskGraph, peak_bytes: Sequence[int]) -> int:
    """By how many bytes the peaks exceed the devices' limits in total; 0 if the placement fits."""
    limits = [device.memory_limit for device in tasks.devices]
    return sum(max(0, peak - limit) for peak, limit in zip(peak_bytes, limits) if limit is not None)


Cost = tuple[int, float, int]


def cost(tasks: TaskGraph, device_of_group: Sequence[int]) -> Cost:
    """(bytes over the memory limits, makespan in us, bytes moved): what placements are compared by."""
    run = _Run(tasks, device_of_group)
    excess = excess_bytes(tasks, run.peak_bytes()) if tasks.has_limits else 0
    moved = sum([tasks.size[tensor] for tensor, _ in run.sent])
    return excess, round(max(run.finish, default=0.0), 6), moved  # rounded: sums in another order are equal


# ---- placements to compare with


def on_device(tasks: TaskGraph, device: int) -> list[int]:
    """Puts each group that may use `device` there, each other one on the device that it prefers."""
    return [device if device in feasible else feasible[0] for feasible in tasks.feasible]


def best_single_device(tasks: TaskGraph) -> list[int]:
    """The best placement of those that put all they can on one device.

    If any device has enough memory, only such devices count. The busiest device's time is a lower bound of
    the makespan, so placements whose bound is too high are not simulated.
    """

    def bound(groups: list[int]) -> float:
        busy = [0.0] * len(tasks.devices)
        for i, g in enumerate(tasks.group):
            busy[groups[g]] += tasks.times[groups[g]][i]
        return max(busy)

    found: tuple[Cost, list[int]] | None = None
    candidates = [on_device(tasks, d) for d in range(len(tasks.devices))]
    for least, groups in sorted((bound(groups), groups) for groups in candidates):
        if found is None or found[0] > (0, least, 0):
            this = cost(tasks, groups)
            if found is None or this < found[0]:
                found = this, groups
    assert found is not None
    return found[1]


def random_placement(tasks: TaskGraph, seed: int) -> list[int]:
    """Each group on any device that it may use."""
    choose = random.Random(seed).choice
    return [choose(feasible) for feasible in tasks.feasible]


def round_robin(tasks: TaskGraph) -> list[int]:
    """The groups in graph order, each on the next device of those that it may use."""
    turn = itertools.count()
    return [
        feasible[0] if len(feasible) == 1 else sorted(feasible)[next(turn) % len(feasible)]
        for feasible in tasks.feasible
    ]


def exhaustive(tasks: TaskGraph) -> list[int]:
    """The best of all placements. ValueError if there are more than two million."""
    count = 1
    for feasible in tasks.feasible:
        count *= len(feasible)
    if count > _MOST_PLACEMENTS:
        raise ValueError(f"there are {count} placements, too many to try all")
    placements = map(list, itertools.product(*tasks.feasible))
    return min(placements, key=lambda groups: cost(tasks, groups))
