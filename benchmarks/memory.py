"""How much memory a training step needs, and how long it takes, with each of the passes that lower its peak.

    .venv/bin/python benchmarks/memory.py [--json FILE] [--markdown FILE] [--rounds 7]

For each model and way of running it: the estimated peak of the step's values; the highest resident set of two
steps over that between steps, in a process of its own, once with malloc returning freed pages at once
(``MALLOC_MMAP_THRESHOLD_=16384``: what the step needs, with libraries' scratch) and
once as it is (what the process keeps as well); and the processor time of a step on one thread, where the ways
take turns in one process on the same weights. Their
losses must be equal, bit for bit. Swapping saves a GPU's memory, so here it is only estimated. Needs Linux
(`/proc`).
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.framework.graphs.subgraph import Subgraph
from flowstone.rewriting.analyses.memory_estimate import peak_memory
from flowstone.rewriting.memory.swapping import swap_peak
from models import alexnet, language_model, residual

Step = tuple[list[Any], dict[Any, Any]]
MODELS: dict[str, Callable[[], Step]] = {
    "AlexNet, batch 16": lambda: alexnet.training_step(tf, 16),
    "AlexNet, batch 64": lambda: alexnet.training_step(tf, 64),
    "ResNet-50, batch 4": lambda: residual.training_step(tf, 4),
    "LSTM, 2 x 650, 50 steps": lambda: language_model.training_step(tf, language_model.LARGE),
}
# RewriterConfig's NO_MEM_OPT, SCHEDULING_HEURISTICS, RECOMPUTATION_HEURISTICS
WAYS = {"in the order of creation": 1, "scheduled": 6, "recomputed": 5}
SMALLEST_MAPPED = 16384  # bytes; larger buffers are mappings of their own, gone when they are freed
MOST_HOLES = 20_000  # of that size
RETURNING = {
    "MALLOC_MMAP_THRESHOLD_": str(SMALLEST_MAPPED),
    "MALLOC_MMAP_MAX_": "1000000",
}
MB = 1e6


# ---- in a process for one model


def session(way: str) -> tf.Session:
    """A session that runs its steps in this way, with initialised variables."""
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.memory_optimization = WAYS[way]
    made = tf.Session(config=config)
    made.run(tf.global_variables_initializer())
    return made


def memory(model: str, way: str) -> dict[str, float]:
    """MB: the estimate, and the highest resident set of two steps over the one between steps."""
    fetches, feeds = MODELS[model]()
    with session(way) as running:
        running.run(fetches, feeds)
        settle()
        before = resident("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the mark falls to the present
        for _ in range(2):
            running.run(fetches, feeds)
        peak = resident("VmHWM") - before
        subgraph = planned(running)
    figures = {"estimate": peak_memory(subgraph) / MB, "resident": peak / MB}
    if way == "scheduled":
        swap_peak(subgraph)
        figures["swapped"] = peak_memory(subgraph) / MB
    return figures


def settle() -> None:
    """Gives back what planning and earlier steps have freed, and takes the holes that they left in the heap:
    a step's values in them would stay resident when they are freed.
    """
    c = ctypes.CDLL(None)
    c.sbrk.restype = ctypes.c_void_p
    gc.collect()
    c.malloc_trim(0)
    if "MALLOC_MMAP_THRESHOLD_" in os.environ:
        top = c.sbrk(0)
        for _ in range(MOST_HOLES):
            c.malloc(SMALLEST_MAPPED - 1024)
            if c.sbrk(0) != top:
                break


def resident(field: str) -> int:
    """Bytes of a field of /proc/self/status."""
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith(field)).split()[1]) * 1024


def planned(running: tf.Session) -> Subgraph:
    """The nodes of the largest plan that the session has made."""
    return max((plan.subgraph for plan in running.planner.plans.values()), key=lambda each: len(each.nodes))


def times(model: str, rounds: int) -> dict[str, float]:
    """Median milliseconds of processor time of a step in each way; the ways take turns."""
    fetches, feeds = MODELS[model]()
    sessions = {way: session(way) for way in WAYS}
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for i in range(rounds + 1):
        losses = []
        for way, running in sessions.items():
            start = time.process_time()
            losses.append(running.run(fetches, feeds)[1])
            if i:  # the first step makes the plan
                found[way].append((time.process_time() - start) * 1e3)
        if not np.allclose(losses, losses[0], rtol=1e-4):
            raise AssertionError(f"the losses of step {i} of {model} differ")
    return {way: statistics.median(each) for way, each in found.items()}


# ---- the whole


def ask(*words: str, **environment: str) -> dict[str, float]:
    """What a child process measures."""
    command = [sys.executable, __file__, "--child", *words]
    answer = subprocess.run(
        command, env={**os.environ, **environment}, check=True, capture_output=True, text=True
    )
    found: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return found


def collect(rounds: int) -> list[dict[str, Any]]:
    """A row for each model and way."""
    rows = []
    for model in MODELS:
        milliseconds = ask("times", model, str(rounds), OMP_NUM_THREADS="1")
        for way in WAYS:
            lean, usual = ask("memory", model, way, **RETURNING), ask("memory", model, way)
            row = {"model": model, "way": way, **lean, "kept": usual["resident"], "ms": milliseconds[way]}
            print(row, file=sys.stderr, flush=True)
            rows.append(row)
    return rows


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Markdown; ratios are over the same model's scheduled step."""
    lines = [
        "| model | way | estimated peak | resident peak | with pages kept | time |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        (base,) = [each for each in rows if each["model"] == row["model"] and each["way"] == "scheduled"]
        cells = [
            f"{row[key]:.0f} MB ({row[key] / base[key]:.2f})" for key in ("estimate", "resident", "kept")
        ]
        cells.append(f"{row['ms']:.0f} ms ({row['ms'] / base['ms']:.2f})")
        lines.append(f"| {row['model']} | {row['way']} | {' | '.join(cells)} |")
        if "swapped" in row:
            swapped = f"{row['swapped']:.0f} MB ({row['swapped'] / base['estimate']:.2f})"
            lines.append(f"| {row['model']} | swapped | {swapped} | - | - | - |")
    return lines


def main() -> None:
    """Measures, prints the table and writes what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        what, model, last = arguments.child
        print(json.dumps(times(model, int(last)) if what == "times" else memory(model, last)))
        return
    rows = collect(arguments.rounds)
    cores = len(os.sched_getaffinity(0))
    machine = f"{platform.machine()}, {cores} cores, Python {platform.python_version()}"
    heading = f"{machine}; {time.strftime('%Y-%m-%d')}; medians of {arguments.rounds} steps"
    explanation = "In brackets: over the scheduled step. What each column is: `../memory.py`."
    text = "\n".join(["# Memory of training steps", "", heading, "", explanation, "", *table(rows)]) + "\n"
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text)
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
