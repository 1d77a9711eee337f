"""Timing, for every workload script: warm up, repeat for a while, report the median (of queues the mean) as a
line of JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable

SECONDS = float(os.environ.get("BENCHMARK_SECONDS", "2"))


def once(function: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def median_seconds(function: Callable[[], object], warm_up: int = 5, at_least: int = 5) -> float:
    """Median seconds of a call, over about BENCHMARK_SECONDS."""
    for _ in range(warm_up):
        function()
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(times) < at_least or time.perf_counter() < end:
        times.append(once(function))
    return statistics.median(times)


def settled_seconds(function: Callable[[], object]) -> float:
    """Median seconds of a call after a warm-up by time, in which compilers beside the steps get ready;
    shorter for neighbours, of which a process measures many.
    """
    is_one_of_many = os.environ["WORKLOAD"].endswith("_neighbours")
    calls, end = 0, time.perf_counter() + SECONDS / (2 if is_one_of_many else 1)
    while calls < 5 or time.perf_counter() < end:
        function()
        calls += 1
    times: list[float] = []
    end = time.perf_counter() + SECONDS / (8 if is_one_of_many else 2)
    while len(times) < 5 or time.perf_counter() < end:
        times.append(once(function))
    return statistics.median(times)


def median_of_many(function: Callable[[], object], calls: int = 500) -> float:
    """Median seconds of a call too short to time alone."""

    def many() -> None:
        for _ in range(calls):
            function()

    return median_seconds(many, warm_up=2) / calls


def sustained_seconds(function: Callable[[], object], warm_up: int = 20) -> float:
    """Mean seconds of a call over twice BENCHMARK_SECONDS: what a pipeline gives, its refills included."""
    for _ in range(warm_up):
        function()
    calls, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < 2 * SECONDS:
        function()
        calls += 1
    return passed / calls


def report(metric: str, value: float, unit: str) -> None:
    """Prints one figure for `compare.py`."""
    print(json.dumps({"metric": metric, "value": value, "unit": unit}), flush=True)
