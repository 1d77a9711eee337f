"""Times every op of the test tables on larger shapes, beside TensorFlow and torch, and lists the slowest.

python benchmarks/op_sweep.py [--size 1MB | --size 64MB | --bytes N] [--seconds 0.05] [--limit 30]
    [--memory 10] [--json FILE] [--markdown FILE]

Each implementation runs in a process of its own, one op after another; an op that takes longer than `--limit`
seconds or more memory than `--memory` GB is left out, and the others go on. TF_PYTHON names the Python that
has TensorFlow; without it that peer is left out. `over the best` is the time over that of the faster peer.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from compare import HERE, machine, markdown_table

IMPLEMENTATIONS = {
    "flowstone": ("op_sweep_tf1.py", "PYTHON"),
    "tensorflow": ("op_sweep_tf1.py", "TF_PYTHON"),
    "torch": ("op_sweep_torch.py", "PYTHON"),
}
SIZES = {"1MB": 1_000_000, "64MB": 64_000_000}
WORST = 20


def lines_of(process: subprocess.Popen[str], limit: float) -> tuple[list[dict[str, object]], bool]:
    """What a process prints, and whether it ended by itself; no line is waited for longer than `limit`."""
    read: queue.SimpleQueue[str] = queue.SimpleQueue()
    stdout = process.stdout
    assert stdout is not None

    def pass_on() -> None:
        for line in stdout:
            read.put(line)
        read.put("")

    threading.Thread(target=pass_on, daemon=True).start()
    found: list[dict[str, object]] = []
    try:
        while line := read.get(timeout=limit):
            if line.startswith("{"):
                found.append(json.loads(line))
    except queue.Empty:
        process.kill()
        return found, False
    return found, True


def bounded_memory(gigabytes: float) -> Callable[[], None]:
    """What a process does before it starts, so that it cannot take more: allocations fail instead."""
    most = int(gigabytes * 1e9)
    return lambda: resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def measured(
    name: str, size: int, seconds: float, limit: float, memory: float
) -> dict[str, dict[str, object]]:
    """The lines of all ops of an implementation, by op; one that was too slow has `faults`."""
    script, variable = IMPLEMENTATIONS[name]
    python = sys.executable if variable == "PYTHON" else os.environ.get(variable)
    results: dict[str, dict[str, object]] = {}
    while python:
        environment = os.environ | {
            "IMPLEMENTATION": name,
            "BYTES": str(size),
            "OPS": " ".join(results),
            "BENCHMARK_SECONDS": str(seconds),
            "TF_USE_LEGACY_KERAS": "1",
        }
        command = [python, str(HERE / "workloads" / script)]
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            preexec_fn=bounded_memory(memory),
        )
        lines, ended = lines_of(process, limit)
        process.wait()
        results |= {str(line["op"]): line for line in lines if "op" in line}
        begun = [str(line["begins"]) for line in lines if "begins" in line]
        if not begun or begun[-1] in results:
            if ended or not begun:
                return results
            continue
        how = "ended the process" if ended else f"took longer than {limit:g} s"
        results[begun[-1]] = {"op": begun[-1], "faults": [how]}
    return results


def compared(results: dict[str, dict[str, dict[str, object]]]) -> list[tuple[float, str, list[float | None]]]:
    """(time over the best peer's, op, milliseconds of each), the slowest first."""
    rows = []
    for op, own in results["flowstone"].items():
        if "seconds" not in own:
            continue
        times: list[float | None] = [1e3 * float(str(own["seconds"]))]
        for peer in ("tensorflow", "torch"):
            line = results[peer].get(op, {})
            same = line.get("way") == own["way"]  # of equal shapes
            times.append(1e3 * float(str(line["seconds"])) if "seconds" in line and same else None)
        others = [time for time in times[1:] if time is not None]
        if others and times[0] is not None:
            rows.append((times[0] / min(others), op, times))
    return sorted(rows, reverse=True)


def report(results: dict[str, dict[str, dict[str, object]]], size: int) -> str:
    """The page: how many ops are within which ratio, the slowest, and what was not measured."""
    rows = compared(results)
    within = {bound: sum(ratio <= bound for ratio, _, _ in rows) for bound in (1.0, 1.5, 2.0, 3.0)}
    missing = [op for op, line in results["flowstone"].items() if "seconds" not in line]
    body = [
        [op, *("–" if time is None else f"{time:.4g}" for time in times), f"{ratio:.2f}"]
        for ratio, op, times in rows[:WORST]
    ]
    counts = ", ".join(f"{count} within {bound:g} x" for bound, count in within.items())
    lines = [
        f"{machine()}; largest input {size / 1e6:g} MB; milliseconds a run",
        "",
        f"Of {len(rows)} ops that a peer has, {counts} of the faster peer. The slowest:",
        "",
        markdown_table([["op", "flowstone", "TensorFlow", "torch", "over the best"], *body]),
        "",
        f"Not measured, for their shapes do not grow together: {', '.join(sorted(missing)) or 'none'}.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Reads the arguments, measures, writes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, default="1MB")
    parser.add_argument("--bytes", type=int, help="instead of a size")
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--limit", type=float, default=30.0)
    parser.add_argument("--memory", type=float, default=10.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    size = arguments.bytes or SIZES[arguments.size]
    results = {
        name: measured(name, size, arguments.seconds, arguments.limit, arguments.memory)
        for name in IMPLEMENTATIONS
    }
    page = report(results, size)
    print(page)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    if arguments.markdown:
        arguments.markdown.write_text(page)


if __name__ == "__main__":
    main()
