"""The greedy walk of the white paper (3.2.1): a simulated execution that chooses devices as it goes.

Tasks are taken in the order in which they become ready, or by their rank. Of the devices that a task may use
and that have enough memory left, it gets the one where it would finish first. It can start when its inputs
have arrived over the links and the device has finished its earlier tasks. Light tasks are placed when one of
their consumers is. Tasks that control flow ties to another task, or to a loop, go to the device of that.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from flowstone.placement.task_graph import TaskGraph


def ranks(tasks: TaskGraph) -> list[float]:
    """The rank of each task: the microseconds from its start to the end of the step on the longest path, with
    times averaged over devices and transfers over links (the upward rank of Topcuoglu, Hariri and Wu's HEFT).
    """
    width = len(tasks.devices)
    mean = [sum(each) / width for each in zip(*tasks.times)]
    ways = [link for row in tasks.links for link in row]
    latency = sum(way.latency_us for way in ways) / len(ways)
    us_per_byte = sum(way.us_per_byte for way in ways) / len(ways)
    found = [0.0] * len(mean)
    for i in range(len(mean) - 1, -1, -1):
        longest = 0.0
        for t in tasks.outputs[i]:
            over = latency + tasks.size[t] * us_per_byte
            for j in tasks.consumers[t]:
                longest = max(longest, over + found[j])
        found[i] = mean[i] + longest
    return found


class GreedyWalk:
    """One greedy walk over the tasks.

    `priority`: takes tasks in falling order of it instead of as they become ready; it must fall along edges.
    `aversion`: when a device is chosen, the transfer times of the task's inputs, times this factor, are added
    to the time at which it would finish. This avoids transfers that later ones would have to wait for,
    where links are slow.

    State: `device`: of each group, -1 while it has none; `finish`: of each task; `free`: when each device is
    done with what it was given; `arrival`: (tensor, device) -> when it is there; `channel[a][b]`: when the
    link is free; `loop_device`: of each loop; `memory`: what devices hold, None without limits.
    """

    def __init__(
        self, tasks: TaskGraph, priority: Sequence[float] | None = None, aversion: float = 0.0
    ) -> None:
        self.tasks, self.priority, self.aversion = tasks, priority, aversion
        width = len(tasks.devices)
        self.device = [each[0] if len(each) == 1 else -1 for each in tasks.feasible]
        self.finish = [0.0] * len(tasks.inputs)
        self.free = [0.0] * width
        self.arrival: dict[tuple[int, int], float] = {}
        self.channel = [[0.0] * width for _ in range(width)]
        self.loop_device: dict[int, int] = {}
        self.memory = _Memory(tasks, self.device) if tasks.has_limits else None

    def run(self) -> list[int]:
        """Walks; returns the device of each group."""
        tasks, finish = self.tasks, self.finish
        waiting = [len(inputs) for inputs in tasks.inputs]
        ready = [0.0] * len(waiting)
        order = self.priority
        heap = [(-order[i] if order else 0.0, i) for i, n in enumerate(waiting) if n == 0]
        heapq.heapify(heap)
        consumers = tasks.consumers
        while heap:
            _, i = heapq.heappop(heap)
            self._place(i)
            end = finish[i]
            for t in tasks.outputs[i]:
                for j in consumers[t]:
                    if end > ready[j]:
                        ready[j] = end
                    waiting[j] -= 1
                    if not waiting[j]:
                        heapq.heappush(heap, (-order[j] if order else ready[j], j))
        return [feasible[0] if d < 0 else d for d, feasible in zip(self.device, tasks.feasible)]

    def _place(self, i: int) -> None:
        tasks = self.tasks
        group = tasks.group[i]
        d = self.device[group]
        if d < 0:
            if tasks.light[i]:
                return  # until a consumer is placed: it takes no time on any device
            d = self._choose(i, tasks.feasible[group])
            self._decide(group, d)
        if i in tasks.frame:
            self.loop_device.setdefault(tasks.frame[i], d)
        for t in tasks.inputs[i]:
            if self._device_of(t) < 0:
                self._fetch(tasks.producer[t], d)
        start = self._start(i, d, commit=True)
        self.finish[i] = self.free[d] = start + tasks.times[d][i]
        if self.memory:
            self.memory.run(i, d)

    def _device_of(self, tensor: int) -> int:
        return self.device[self.tasks.group[self.tasks.producer[tensor]]]

    def _choose(self, i: int, feasible: tuple[int, ...]) -> int:
        tasks = self.tasks
        if i in tasks.frame:
            d = self.loop_device.get(tasks.frame[i], -1)
            if d in feasible:
                return d
        if i in tasks.follows:
            d = self.device[tasks.group[tasks.follows[i]]]
            if d in feasible:
                return d
        if self.memory:
            feasible = self.memory.roomy(i, feasible)
        best, earliest = feasible[0], float("inf")
        for d in feasible:
            end = self._start(i, d) + tasks.times[d][i]
            if self.aversion:
                end += self.aversion * self._transfers(i, d)
            if end < earliest:
                best, earliest = d, end
        return best

    def _start(self, i: int, d: int, commit: bool = False) -> float:
        """When task `i` could start on device `d`; `commit` also records the transfers of its inputs."""
        tasks, device, finish = self.tasks, self.device, self.finish
        producer, group = tasks.producer, tasks.group
        start = self.free[d]
        for t in tasks.inputs[i]:
            p = producer[t]
            at = device[group[p]]
            if at == d:
                there = finish[p]
            elif at >= 0:
                there = self._arrival(t, at, d, finish[p], commit)
            elif d in tasks.feasible[group[p]]:
                continue
            else:
                there = self._arrival(t, tasks.feasible[group[p]][0], d, finish[p], False)
            if there > start:
                start = there
        return start

    def _transfers(self, i: int, d: int) -> float:
        """Microseconds that task `i` on device `d` adds to the links: its inputs that are not there yet."""
        tasks, added = self.tasks, 0.0
        for t in tasks.inputs[i]:
            at = self._device_of(t)
            if at >= 0 and at != d and (t, d) not in self.arrival:
                added += tasks.links[at][d].time_us(tasks.size[t])
        return added

    def _arrival(self, tensor: int, source: int, target: int, made: float, commit: bool) -> float:
        arrival = self.arrival.get((tensor, target))
        if arrival is None:
            latency, us_per_byte = self.tasks.links[source][target]
            begin = self.channel[source][target]
            over = (made if made > begin else begin) + self.tasks.size[tensor] * us_per_byte
            arrival = over + latency
            if commit:
                self.channel[source][target] = over
                self.arrival[tensor, target] = arrival
        return arrival

    def _fetch(self, task: int, d: int) -> None:
        """Places a light task and those that it takes its inputs from: on `d` where they may use it."""
        tasks = self.tasks
        pending = [task]
        while pending:
            i = pending.pop()
            group = tasks.group[i]
            if self.device[group] < 0:
                feasible = tasks.feasible[group]
                self._decide(group, d if d in feasible else feasible[0])
                pending += [tasks.producer[t] for t in tasks.inputs[i]]

    def _decide(self, group: int, d: int) -> None:
        self.device[group] = d
        if self.memory:
            self.memory.held[d] += self.tasks.resident[group]


class _Memory:
    """What each device holds during a walk.

    `held`: bytes; `copies`: storage -> {device: bytes}; `uses`: storage -> how many inputs are still to come.
    """

    def __init__(self, tasks: TaskGraph, device: list[int]) -> None:
        self.tasks, self.device = tasks, device
        self.limits = [device.memory_limit for device in tasks.devices]
        self.held = [0] * len(self.limits)
        self.copies: dict[int, dict[int, int]] = {}
        self.uses = [0] * len(tasks.size)
        for t in tasks.kept:
            self.uses[tasks.storage[t]] += 1
        for inputs in tasks.inputs:
            for t in inputs:
                self.uses[tasks.storage[t]] += 1
        for size, d in zip(tasks.resident, device):
            if d >= 0:
                self.held[d] += size

    def roomy(self, i: int, feasible: tuple[int, ...]) -> tuple[int, ...]:
        """The devices that have enough memory left for a task; if none has, the one with the most."""
        room: dict[int, float] = {}
        for d in feasible:
            limit = self.limits[d]
            room[d] = float("inf") if limit is None else limit - self.held[d] - self._needs(i, d)
        found = tuple([d for d in feasible if room[d] >= 0])
        return found or (max(feasible, key=lambda d: room[d]),)

    def _needs(self, i: int, d: int) -> int:
        """Bytes that running task `i` on device `d` adds there: its outputs, copies of its inputs, and the
        state that would be placed with it.
        """
        tasks = self.tasks
        size = tasks.resident[tasks.group[i]] + sum([tasks.buffer[t] for t in tasks.outputs[i]])
        coming: set[int] = set()
        for t in tasks.inputs[i]:
            group = tasks.group[tasks.producer[t]]
            if self.device[group] < 0:
                if group not in coming:
                    coming.add(group)
                    size += tasks.resident[group]
            elif self.device[group] != d and d not in self.copies.get(tasks.storage[t], ()):
                size += tasks.size[t]
        return size

    def run(self, i: int, d: int) -> None:
        """Runs task `i` on device `d`: allocates what it makes, releases what nothing needs any more."""
        tasks = self.tasks
        for t in tasks.outputs[i]:
            if tasks.buffer[t]:
                self._add(t, d, tasks.buffer[t])
        for t in tasks.inputs[i]:
            home = tasks.storage[t]
            if self.device[tasks.group[tasks.producer[home]]] != d and tasks.size[t]:
                self._add(home, d, tasks.size[t])
            self.uses[home] -= 1
            if not self.uses[home]:
                self._release(home)
        for t in tasks.outputs[i]:
            if not self.uses[tasks.storage[t]]:
                self._release(tasks.storage[t])

    def _add(self, storage: int, d: int, size: int) -> None:
        places = self.copies.setdefault(storage, {})
        if d not in places:
            places[d] = size
            self.held[d] += size

    def _release(self, storage: int) -> None:
        for d, size in self.copies.pop(storage, {}).items():
            self.held[d] -= size
