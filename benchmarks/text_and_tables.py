"""Times operations on texts, tables, sparse tensors and boxes of 100,000 elements, beside TensorFlow.

python benchmarks/text_and_tables.py [--elements 100000] [--seconds 0.1] [--rounds 3] [--only a;b]
                                     [--json FILE] [--markdown FILE]

These are the operations that ATen has no kernels for. A round is a process of each implementation, in turn;
the least time of all rounds counts, for the machine may have other work. TF_PYTHON names the Python that has
TensorFlow. `workloads/text_and_table_cases.py` has the operations; each is timed as a whole `session.run`
that feeds and fetches NumPy arrays, and within a graph alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from compare import HERE, machine, markdown_table

WAYS = ("fed", "in the graph")
BOUNDS = (1.0, 2.0, 3.0, 5.0)
Times = dict[tuple[str, str], float]  # seconds by operation and way


def measured(python: str, name: str, arguments: argparse.Namespace) -> Times:
    """The times that a process of an implementation prints."""
    environment = os.environ | {
        "IMPLEMENTATION": name,
        "ELEMENTS": str(arguments.elements),
        "BENCHMARK_SECONDS": str(arguments.seconds),
        "ONLY": arguments.only,
        "TF_USE_LEGACY_KERAS": "1",
    }
    command = [python, str(HERE / "workloads/text_and_tables_tf1.py")]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {(line["operation"], line["way"]): line["seconds"] for line in lines}


def collected(arguments: argparse.Namespace) -> dict[str, Times]:
    """The least times of each implementation."""
    pythons = {"flowstone": sys.executable, "tensorflow": os.environ["TF_PYTHON"]}
    least: dict[str, Times] = {name: {} for name in pythons}
    for _ in range(arguments.rounds):
        for name, python in pythons.items():
            for key, seconds in measured(python, name, arguments).items():
                least[name][key] = min(seconds, least[name].get(key, seconds))
    return least


def report(least: dict[str, Times], arguments: argparse.Namespace) -> str:
    """The page: how many operations are within which ratio, and all of them, the slowest first."""
    own, other = least["flowstone"], least["tensorflow"]
    ratios = {key: own[key] / other[key] for key in own}
    summary = []
    for way in WAYS:
        of_way = [ratio for key, ratio in ratios.items() if key[1] == way]
        counts = ", ".join(
            f"{sum(ratio <= bound for ratio in of_way)} within {bound:g} x" for bound in BOUNDS
        )
        summary.append(f"{way}: of {len(of_way)} operations {counts} of TensorFlow")
    rows = [
        ["operation", *(f"{way}: {what}" for way in WAYS for what in ("flowstone", "TensorFlow", "ratio"))]
    ]
    operations = dict.fromkeys(name for name, _ in own)
    for name in sorted(operations, key=lambda each: -ratios[each, WAYS[0]]):
        cells = [
            cell
            for way in WAYS
            for cell in (
                f"{1e3 * own[name, way]:.3g}",
                f"{1e3 * other[name, way]:.3g}",
                f"{ratios[name, way]:.2f}",
            )
        ]
        rows.append([name, *cells])
    sizes = f"{arguments.elements:,} elements; milliseconds a run, least of {arguments.rounds} rounds"
    heading = f"{machine()}; {sizes}"
    return "\n\n".join([heading, *summary, markdown_table(rows)]) + "\n"


def main() -> None:
    """Reads the arguments, measures, writes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--elements", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    least = collected(arguments)
    page = report(least, arguments)
    print(page)
    if arguments.json:
        flat = {name: {"|".join(key): value for key, value in times.items()} for name, times in least.items()}
        arguments.json.write_text(json.dumps(flat, indent=1) + "\n")
    if arguments.markdown:
        arguments.markdown.write_text(f"# Texts, tables, sparse tensors and boxes\n\n{page}")


if __name__ == "__main__":
    main()
