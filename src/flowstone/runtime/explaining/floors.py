"""Floors: a model of the machine in five measured numbers, which no kernel can beat.

    product       flop/s of a large matrix product in float32, by the best kernel there is convolution
    flop/s of a large 3x3 convolution in float32 bandwidths    bytes/s of a copy, for working sets that fit a
    core's cache, the last cache, and no cache call          seconds of one call of a kernel that has nothing
    to do

They hold for one device and a number of intra-op threads (or fewer, if that is faster). They are the best
results of measuring for a second: other work on the machine may make the floors too high. `floor` is the
least time of a kernel with so many operations and bytes: the longest of arithmetic, memory traffic and a
call, since it has to do each.

>>> floors = Floors("cpu", 1, 50e9, 40e9, ((1 << 18, 40e9), (1 << 26, 10e9)), 1e-6)
>>> floors.floor(2e6, 1000)
Floor(seconds=4e-05, bound='compute')
>>> floors.floor(1e3, 1 << 24)
Floor(seconds=0.0016777216, bound='memory')
>>> floors.floor(0, 8)
Floor(seconds=1e-06, bound='call')
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import NamedTuple

import torch

from flowstone.framework.machine import onednn
from flowstone.runtime.process import threads

_SECONDS = 0.08  # for the timed runs of each number; there are at least three
_CPU_WORKING_SETS = (1 << 18, 1 << 22, 1 << 26)  # bytes
_GPU_WORKING_SETS = (1 << 22, 1 << 25, 1 << 30)


class Floor(NamedTuple):
    """The least `seconds`, and the `bound` that determines them: compute, memory or call."""

    seconds: float
    bound: str


class Floors(NamedTuple):
    """A device (torch's type of it) with so many intra-op threads; see the module for the rest."""

    device: str
    threads: int
    product: float
    convolution: float
    bandwidths: tuple[tuple[int, float], ...]
    call: float

    def bandwidth(self, size: int) -> float:
        """Bytes/s of a kernel that reads and writes `size` bytes in total."""
        for working_set, rate in self.bandwidths:
            if size <= working_set:
                return rate
        return self.bandwidths[-1][1]

    def floor(self, operations: float, size: int, convolves: bool = False) -> Floor:
        """The least time of a kernel with this many floating-point operations and bytes of traffic."""
        compute = operations / (self.convolution if convolves else self.product)
        memory = size / self.bandwidth(size)
        return max(
            Floor(self.call, "call"), Floor(memory, "memory"), Floor(compute, "compute"),
            key=lambda floor: floor.seconds,
        )  # fmt: skip


@functools.cache
def measured_floors(device_type: str, intra_op_threads: int) -> Floors:
    """The model of torch's device of this type, `cpu` or `cuda`: measured in a second, once in each
    process."""
    with torch.inference_mode():
        floors: Floors = threads.run_with(intra_op_threads, lambda: _measure(device_type, intra_op_threads))
    if device_type == "cpu" and intra_op_threads > 1:
        return _better(floors, measured_floors(device_type, 1))
    return floors


def _better(floors: Floors, other: Floors) -> Floors:
    """The better of the two models, number by number."""
    rates = tuple((size, max(rate, r)) for (size, rate), (_, r) in zip(floors.bandwidths, other.bandwidths))
    return floors._replace(
        product=max(floors.product, other.product),
        convolution=max(floors.convolution, other.convolution),
        bandwidths=rates,
        call=min(floors.call, other.call),
    )


def _measure(device: str, intra_op_threads: int) -> Floors:
    on_gpu = device == "cuda"
    # On a host, some of many short runs fall into moments without other work; few long ones may not.
    size, batch = (4096, 64) if on_gpu else (512, 1)
    a = torch.ones(size, size, device=device)
    seconds = _best_time(device, lambda: torch.mm(a, a))
    # MKL is fastest on the processors of one maker only.
    if not on_gpu and onednn.is_available():
        linear = onednn.product
        seconds = min(seconds, _best_time(device, lambda: linear(a, a, None, "none", (), "")))
    product = 2.0 * size**3 / seconds
    images = torch.ones(batch, 64, 56, 56, device=device)
    filters = torch.ones(64, 64, 3, 3, device=device)
    operations = 2.0 * images.numel() * 64 * 9
    convolve: Callable[[], object] = lambda: torch.conv2d(images, filters, padding=1)  # noqa: E731
    convolution = operations / _best_time(device, convolve)
    working_sets = _GPU_WORKING_SETS if on_gpu else _CPU_WORKING_SETS
    bandwidths = tuple((size, _bandwidth(device, size)) for size in working_sets)
    call = _call_time(device)
    return Floors(device, intra_op_threads, product, convolution, bandwidths, call)


def _bandwidth(device: str, working_set: int) -> float:
    """Bytes/s, read and written, of a copy between two halves of the working set."""
    source = torch.ones(working_set // 8, device=device)
    target = torch.empty_like(source)
    repetitions = max(1, (1 << 24) // working_set)

    def copy() -> None:
        for _ in range(repetitions):
            target.copy_(source)

    return working_set * repetitions / _best_time(device, copy)


def _call_time(device: str) -> float:
    x = torch.ones(1, device=device)

    def call() -> None:
        for _ in range(100):
            torch.add(x, x)

    return _best_time(device, call) / 100


def _best_time(device: str, function: Callable[[], object]) -> float:
    """Seconds of the fastest of several calls, the first of which does not count.

    With one thread they are taken from the thread's own clock, which stops while other threads use its core.
    """
    clock = time.thread_time if device == "cpu" and torch.get_num_threads() == 1 else time.perf_counter
    synchronize: Callable[[], object] = torch.cuda.synchronize if device == "cuda" else int
    function()
    synchronize()
    best, end, runs = float("inf"), time.perf_counter() + _SECONDS, 0
    while runs < 3 or (time.perf_counter() < end and runs < 200):
        start = clock()
        function()
        synchronize()
        best = min(best, clock() - start)
        runs += 1
    return best
