"""Runs a TensorFlow 1 program as `flowstone run` does, then explains the steps that took most of its time.

    flowstone explain [options] program.py [arguments]
    flowstone explain [options] -m package.module [arguments]
    flowstone explain [options] - [arguments] < program.py

A summary comes first, for the first screen. Then, for each kind of step (fetches, feeds and their shapes):
the rewrites with their reasons, the time and memory of a step by op type and by node, and how far each node
is from the machine's floor. For that a few of the program's own steps are traced; no others are run. The
explanation follows the program's own output, also where the program fails or is interrupted. See
docs/explain.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from flowstone.client.cluster_explanation import ClusterExplanation
from flowstone.client.step_observation import StepKind, StepObserver
from flowstone.runtime.explaining.explanation import (
    Explanation,
    explanation_record,
    explanation_text,
    machine_text,
)
from flowstone.runtime.explaining.explanation_summary import summary_lines
from flowstone.tools import run

NAME = "explain"
_USUAL = 2  # kinds of step that are explained by default
SUMMARY = "run a program, then explain how its steps run and where their time and memory go"


def declare(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `flowstone explain`."""
    parser.usage = "flowstone explain [options] (program.py | -m package.module | -) [arguments]"
    parser.add_argument("--top", type=_count, metavar="N", help="explain N kinds of step (2, from 1 %% on)")
    parser.add_argument("--steps", type=_count, default=5, metavar="K", help="use the last K traces (5)")
    parser.add_argument("--nodes", type=_count, default=10, metavar="N", help="list N nodes of a kind (10)")
    parser.add_argument("--graph", action="store_true", help="show the graphs after rewriting")
    parser.add_argument("--code", action="store_true", help="show the generated code")
    parser.add_argument("--json", metavar="FILE", help="also write the explanation to FILE")
    run.declare_program(parser)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def execute(options: argparse.Namespace) -> int:
    """Runs the program, then prints the explanation; returns the program's exit status, 2 if there is no
    such file, or if there is no folder for the JSON file.
    """
    problem = _problem(options)
    if problem:
        print(f"flowstone explain: {problem}", file=sys.stderr)
        return 2
    observer = StepObserver(options.steps)
    status: int | SystemExit = 0
    with observer.watching():
        try:
            status = run.execute(options)
        except SystemExit as exit_of_program:
            status = exit_of_program
    _tell(observer.kinds(), options)
    if isinstance(status, SystemExit):
        raise status
    return status


def _problem(options: argparse.Namespace) -> str:
    """What is wrong with the arguments, found before the program runs; "" if nothing is."""
    if not options.as_module and options.program != "-" and not os.path.exists(options.program):
        return f"no such file: {options.program}"
    if options.json is not None and not Path(options.json).absolute().parent.is_dir():
        return f"no such folder: {Path(options.json).absolute().parent}"
    return ""


def _tell(kinds: Sequence[StepKind], options: argparse.Namespace) -> None:
    """Prints the explanation of the first kinds, and writes the JSON file."""
    sys.stdout.flush()
    explained = [kind.explanation() for kind in chosen(kinds, options.top)]
    with contextlib.suppress(BrokenPipeError):
        print(f"\n{_overview(kinds, len(explained))}")
        if explained:
            print(f"\n{_summary(explained)}")
        for number, explanation in enumerate(explained, 1):
            if isinstance(explanation, ClusterExplanation):
                text = explanation.text(options.graph or options.code)
            else:
                text = explanation_text(explanation, options.nodes, options.graph, options.code)
            print(f"\n[{number}] {text}")
        here = [each for each in explained if isinstance(each, Explanation)]
        machine = machine_text([each.profile for each in here if each.profile is not None])
        if machine:
            print(f"\n{machine}")
    if options.json is not None:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(_record(kinds, explained), file, indent=1)
            file.write("\n")


def chosen(kinds: Sequence[StepKind], top: int | None) -> Sequence[StepKind]:
    """The first `top` kinds; if that is None, those of the first two that took at least a hundredth of the
    time."""
    if top is not None:
        return kinds[:top]
    least = sum(kind.total_ms for kind in kinds) / 100
    return [kind for kind in kinds[:_USUAL] if kind.total_ms >= least]


def _overview(kinds: Sequence[StepKind], explained: int) -> str:
    if not kinds:
        return "The program ran no steps that could be watched."
    total = sum(kind.total_ms for kind in kinds)
    shown = sum(kind.total_ms for kind in kinds[:explained])
    steps = sum(kind.runs for kind in kinds)
    share = shown / total if total else 1.0
    return (
        f"{steps} step{'s' if steps != 1 else ''} of {len(kinds)} kind{'s' if len(kinds) != 1 else ''} took "
        f"{total / 1e3:.3f} s; of these {share:.0%} are explained here"
    )


def _summary(explained: Sequence[Explanation | ClusterExplanation]) -> str:
    """A few lines for each, under the numbers of the explanations."""
    lines = ["in short"]
    for number, each in enumerate(explained, 1):
        lines += each.gist(number) if isinstance(each, ClusterExplanation) else summary_lines(number, each)
    return "\n".join(lines)


def _record(
    kinds: Sequence[StepKind], explained: Sequence[Explanation | ClusterExplanation]
) -> dict[str, object]:
    return {
        "kinds": len(kinds),
        "steps": sum(kind.runs for kind in kinds),
        "total_ms": sum(kind.total_ms for kind in kinds),
        "explanations": [
            each.record() if isinstance(each, ClusterExplanation) else explanation_record(each)
            for each in explained
        ],
    }
