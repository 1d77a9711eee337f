"""Runs the workloads on two checkouts of Flowstone in turn and prints how the figures have changed.

python benchmarks/against.py BEFORE [AFTER] [--workloads a,b] [--rounds 5] [--seconds 1]
                             [--json FILE] [--markdown FILE]

BEFORE and AFTER are commits, or folders with a checkout; AFTER is by default the one that this file belongs
to, with what is not committed. Both run this file's workloads with this interpreter. A round is a process of
each, the first of them in turn; `after / before` is the median of the rounds' ratios (below 1 is faster),
beside it their least and greatest. A figure that only one of them has is left out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from compare import HERE, SCRIPTS, machine, markdown_table, measure

Figures = dict[str, list[list[float]]]  # 'workload|metric|unit': [before, after] of each round


@contextlib.contextmanager
def checkout(place: str) -> Iterator[Path]:
    """The folder of a commit's files, which lasts as long as the context; a folder is itself."""
    if Path(place).is_dir():
        yield Path(place).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", place], cwd=HERE.parent, stdout=subprocess.PIPE, check=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder)


def round_of(workload: str, folders: list[Path], first: int, seconds: float) -> Figures:
    """One process of each checkout."""
    measured: list[dict[tuple[str, str], float]] = [{}, {}]
    for side in (first, 1 - first):
        path = os.pathsep.join(filter(None, [str(folders[side] / "src"), os.environ.get("PYTHONPATH")]))
        measured[side] = measure(workload, "flowstone", "", seconds, PYTHONPATH=path)
    before, after = measured
    common = [key for key in before if key in after]
    return {"|".join((workload, *key)): [[before[key], after[key]]] for key in common}


def collect(workloads: list[str], folders: list[Path], rounds: int, seconds: float) -> Figures:
    """The figures of all rounds; each workload's lines are printed when it is done."""
    figures: Figures = {}
    for workload in workloads:
        own: Figures = {}
        for number in range(rounds):
            for key, pair in round_of(workload, folders, number % 2, seconds).items():
                own.setdefault(key, []).extend(pair)
        figures.update(own)
        for row in rows(own):
            print("  " + "  ".join(row), file=sys.stderr)
    return figures


def rows(figures: Figures) -> list[list[str]]:
    """The table's rows."""
    found = []
    for key, pairs in figures.items():
        ratios = [after / before for before, after in pairs if before]
        medians = [f"{statistics.median(side):.4g}" for side in zip(*pairs)]
        if ratios:
            spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
            found.append([*key.split("|"), *medians, f"{statistics.median(ratios):.3f}", spread])
    return found


def table(figures: Figures) -> str:
    """The figures as a Markdown table."""
    return markdown_table(
        [["workload", "metric", "unit", "before", "after", "after / before", "rounds"], *rows(figures)]
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before")
    parser.add_argument("after", nargs="?", default=str(HERE.parent))
    parser.add_argument("--workloads", default=",".join(SCRIPTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    with checkout(arguments.before) as before, checkout(arguments.after) as after:
        workloads = arguments.workloads.split(",")
        figures = collect(workloads, [before, after], arguments.rounds, arguments.seconds)
    heading = f"{machine()}; {time.strftime('%Y-%m-%d')}; {arguments.rounds} rounds\n"
    text = f"{heading}\n{table(figures)}\n"
    print(text)
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine(), "figures": figures}, indent=1) + "\n")
    if arguments.markdown:
        arguments.markdown.write_text(text)


if __name__ == "__main__":
    main()
