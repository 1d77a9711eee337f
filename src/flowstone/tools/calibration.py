"""Measures the numbers of a machine's profile: runs programs in sessions with and without each choice of a
kernel.

A `Choice` (`calibration_programs.py`) names fields of a `Profile`, and programs whose speed they decide, from
the smallest up. Each program runs in two sessions: one is planned with the choice always taken, one with it
never taken. The threshold is the size from which on taking the choice speeds up these programs most, all
together. Rates, the cost of a call and of an element are measured directly; sizes of caches are read from the
system. Other fields keep the values of the processor's kind.

Programs take turns, and the fastest of many rounds counts. A round is shorter than a scheduler's slice, so
that another process that computes now and then does no harm; `others_share` tells how much others computed.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from flowstone.client.session import Session
from flowstone.framework import flags
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.machine import machine
from flowstone.framework.machine.machine_profiles import Profile
from flowstone.ops.variables.variable_collections import global_variables_initializer
from flowstone.tools.calibration_programs import CHOICES, Choice, Program, Rung

GAIN = 0.97
"""A choice gains if its time is below this share of the other way's."""
_LARGE = math.log(1.5)
_ROUNDS = 15  # at least
_SECONDS = 0.002  # length of a round of one of two programs
_IN_ALL = 0.8  # seconds of rounds of both
_LARGEST_CACHE = 32 << 20
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


_MEASURED = ("operations_per_us", "bytes_per_us", "call_us", "call_elements", "core_cache", "all_caches")


class Comparison(NamedTuple):
    """The measurement of a rung: seconds per step with and without the choice."""

    threshold: int
    taken: float
    left: float


def calibrated(name: str, show: Callable[[str], None] = print) -> Profile:
    """The profile of this machine, called `name`; `show` gets a line for each number that is found.

    Takes a minute or two on all threads that torch uses, during which nothing else should compute.
    """
    profile = machine.of_this_processor()._replace(
        features=(), name=name, processors=(), **_caches(), **_rates()
    )
    profile = profile._replace(call_elements=_call_elements())
    for field in (
        "operations_per_us",
        "bytes_per_us",
        "call_us",
        "call_elements",
        "core_cache",
        "all_caches",
    ):
        show(f"{field:28s} {getattr(profile, field):,.6g}")
    for choice in CHOICES:
        if "onednn" in choice.name and not machine.current().has_onednn:
            continue
        fields = _decided(choice, profile, show)
        profile = profile._replace(**fields)
    return profile


def _decided(choice: Choice, profile: Profile, show: Callable[[str], None]) -> dict[str, Any]:
    """The values of a choice's fields: the choice is taken from some rung on, or never."""
    seen = []
    for rung in choice.rungs:
        found = compare(rung, profile._replace(**choice.always), profile._replace(**choice.never))
        show(f"{choice.name:28s} {rung.threshold:>12,d}  {_ms(found.taken)} / {_ms(found.left)}")
        seen.append(found)
    first = first_taken(seen)
    if first == len(seen):
        show(f"{choice.name:28s}        never")
        return choice.never
    show(f"{choice.name:28s} {seen[first].threshold:>12,d}  *")
    return choice.chosen(seen[first].threshold)


def first_taken(seen: Sequence[Comparison]) -> int:
    """The index of the first rung to take the choice, so that all programs together gain most. Gains within
    the noise of measuring do not count, and of large ones only a part: where a team of threads waits for a
    processor that another process has, a kernel seems ten times as slow. The length if nothing is gained."""
    gains = [math.log(GAIN * each.left / each.taken) for each in seen]
    gains = [max(-_LARGE, min(gain, _LARGE)) for gain in gains]
    totals = [*[sum(gains[i:]) for i in range(len(gains))], 0.0]
    return max(range(len(totals) - 1, -1, -1), key=totals.__getitem__)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:9.4f} ms"


def compare(rung: Rung, taken: Profile, left: Profile) -> Comparison:
    """Runs a rung's program planned with each profile, in turns."""
    runs = [_planned(rung.program, profile) for profile in (taken, left)]
    counts = [max(1, min(1000, round(_SECONDS / max(_time(run, 3), 1e-7)))) for run in runs]
    best = [math.inf, math.inf]
    rounds, end = 0, time.perf_counter() + _IN_ALL
    while rounds < _ROUNDS or time.perf_counter() < end:
        for i, run in enumerate(runs):
            best[i] = min(best[i], _time(run, counts[i]))
        rounds += 1
    return Comparison(rung.threshold, *best)


@contextlib.contextmanager
def planning(profile: Profile) -> Iterator[None]:
    """Plans that are made within the context choose between ATen's kernels by this profile: of some choices,
    machine code would take the place of both kernels."""
    with machine.using(profile), flags.without_machine_code():
        yield


def _planned(program: Program, profile: Profile) -> Callable[[], Any]:
    """A step of a program, planned and warm."""
    with planning(profile), Graph().as_default() as graph:
        step = program()
        initializer = global_variables_initializer()
        session = Session(graph=graph)
        session.run(initializer)
        run = session.make_callable(step)
        for _ in range(30):  # constant weights are packed in these steps
            run()
    return run


def _time(run: Callable[[], Any], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - start) / count


# ---- other processes


def processor_times() -> tuple[float, float]:
    """Seconds for which this process's processors have computed, for all processes and for this one; (0, 0)
    where the system does not tell."""
    try:
        names = {f"cpu{number}" for number in _processors()}
        lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
        ticks = sum(sum(_computing(words)) for words in lines if words and words[0] in names)
        return ticks / os.sysconf("SC_CLK_TCK"), time.process_time()
    except (OSError, ValueError):
        return 0.0, 0.0


def _processors() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def _computing(words: Sequence[str]) -> Sequence[int]:
    """Of a processor's line: all that is neither idle nor waiting, and what a hypervisor gave to others. A
    guest's time is in its host's as well."""
    user, nice, system, _, _, interrupts, soft, stolen = map(int, words[1:9])
    return user, nice, system, interrupts, soft, stolen


def others_share(since: tuple[float, float], seconds: float) -> float:
    """The part of this process's processors that others took in so many seconds since `processor_times`."""
    now = processor_times()
    others = (now[0] - since[0]) - (now[1] - since[1])
    return max(others, 0.0) / (seconds * max(len(_processors()), 1))


# ---- rates, calls and caches


def _rates() -> dict[str, Any]:
    """What one core does in a microsecond."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        a, one = torch.rand(512, 512), torch.rand(1)
        large, copy = torch.rand(1 << 24), torch.empty(1 << 24)
        product = _best(lambda: torch.mm(a, a), 20)
        moved = _best(lambda: copy.copy_(large), 5)
        call = _best(lambda: torch.add(one, one), 2000)
    finally:
        torch.set_num_threads(threads)
    operations, size = 2 * 512**3 / product, 8 * large.numel() / moved
    return {"operations_per_us": operations / 1e6, "bytes_per_us": size / 1e6, "call_us": call * 1e6}


def _call_elements() -> int:
    """The number of elements, a power of two, that an elementwise kernel handles in the time of one call."""
    few, many = torch.rand(16), torch.rand(1 << 15)
    call = _best(lambda: torch.add(few, few), 2000)
    a_pass = max(_best(lambda: torch.add(many, many), 500) - call, 1e-9) / many.numel()
    # A pass of the kinds that are compared (choices, functions) costs about as much as three additions.
    return int(min(max(2 ** round(math.log2(call / (3 * a_pass))), 1 << 10), 1 << 15))


def _best(function: Callable[[], Any], count: int) -> float:
    with torch.inference_mode():
        return min(_time(function, count) for _ in range(5))


def _caches() -> dict[str, Any]:
    """The sizes of caches from the system: of all levels, and an eighth of the last one, which cores share.

    Of large caches, only a part counts: a guest is told those of the whole processor, which others use as
    well, and the far end of such a cache is no faster than memory is elsewhere.
    """
    sizes = []
    for path in _CACHES.glob("index*/size"):
        text = path.read_text().strip()
        units = {"K": 1 << 10, "M": 1 << 20}
        if text[:-1].isdigit() and text[-1] in units:
            sizes.append(int(text[:-1]) * units[text[-1]])
    if not sizes:
        return {}
    last = min(max(sizes), _LARGEST_CACHE)
    return {"all_caches": last, "core_cache": max(last // 8, 1 << 20)}
