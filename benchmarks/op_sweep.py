"""Times every op of the test tables on larger shapes, beside TensorFlow and torch, and lists the slowest.

python benchmarks/op_sweep.py [--size 1MB | --size 64MB | --bytes N] [--ops A,B] [--part 1/3]
    [--dtype float64] [--gradients] [--seconds 0.2] [--limit 15] [--memory 10] [--json FILE] [--markdown FILE]

Each implementation is a process. An op is prepared in all of them and then run by turns, in a few rounds; its
time is the least that a run took, so that other work on the machine changes the ratios little. A round
takes a fifth of `--seconds`: less than 40 ms may pass with a team's threads on one core (docs/design/008).
An op that takes longer than `--limit` seconds, or in a process of its own more than `--memory` GB, is
left out. `--part 2/3`
measures the second third of the ops; a `--json` file that is there already is added to, and the page is of
all that it has. `--ops` measures these alone; `--dtype` the cases of an element type; `--gradients` the
gradients of each op's first result, torch's together with the way there. TF_PYTHON names the Python that has
TensorFlow; without it that peer is left out. `over the best` is the time over that of the faster peer.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from compare import HERE, machine, markdown_table
from sweep_workers import Worker

sys.path.insert(0, str(HERE / "workloads"))

from scaled_cases import Subject, subjects

IMPLEMENTATIONS = {
    "flowstone": ("op_sweep_tf1.py", "PYTHON"),
    "tensorflow": ("op_sweep_tf1.py", "TF_PYTHON"),
    "torch": ("op_sweep_torch.py", "PYTHON"),
}
SIZES = {"1MB": 1_000_000, "64MB": 64_000_000}
ROUNDS = 5
WORST = 20
EXPLAINED = 1.5  # over the best peer, from which the page says why
REASONS = {
    "AsString": "No arithmetic, for which 3 x is the bound.",
    "AssignVariableOp": "TensorFlow writes nothing here: a variable takes the value's memory. Ours keeps its "
    "place, since machine code is bound to it, and the value is another variable's.",
    "CholeskyGrad": "A solution with a triangle by MKL takes 1.1 ms, as long as a product.",
    "Conv3DBackpropFilterV2": "6,944 volumes of 18 places with two channels: of 0.99 ms ATen takes 0.47 for "
    "the gradient and 0.21 to pad.",
    "DenseCountSparseOutput": "No arithmetic, for which 3 x is the bound.",
    "DenseToDenseSetOperation": "No arithmetic, for which 3 x is the bound.",
    "Eig": "LAPACK, called for each matrix: real values and conjugate pairs are exact, which a complex "
    "triangular form does not give.",
    "FFT2D": "MKL's transform, whose length has the prime 103, is all of it.",
    "FFT3D": "MKL's transforms, whose lengths have the prime 17.",
    "FusedResizeAndPadConv2D": "6,250 small images: the convolution takes 1.7 ms, the resize and the edges "
    "0.4 each.",
    "SerializeSparse": "No arithmetic, for which 3 x is the bound.",
    "StringFormat": "No arithmetic, for which 3 x is the bound.",
}  # of those that are known to be slower, by how their names begin
NO_MEMORY = ("Unable to allocate", "DefaultCPUAllocator", "bad_alloc", "start new thread")
Line = dict[str, Any]  # of an op: "way" and "seconds" by implementation, or "faults"


def workers(size: int, limit: float, memory: float, more: dict[str, str]) -> dict[str, Worker]:
    """A process an implementation that is there; `more`: variables that say what it measures."""
    found = {}
    for name, (script, variable) in IMPLEMENTATIONS.items():
        python = sys.executable if variable == "PYTHON" else os.environ.get(variable)
        if python:
            command = [python, str(HERE / "workloads" / script)]
            environment = {"IMPLEMENTATION": name, "BYTES": str(size), "TF_USE_LEGACY_KERAS": "1"}
            environment |= more
            environment["FLOWSTONE_NATIVE"] = "2"  # machine code is there in the first run
            found[name] = Worker(command, environment, limit, memory)
    return found


def measured(subject: Subject, by_name: dict[str, Worker], seconds: float) -> Line:
    """An op's line: of the first way to scale its case that all can run, or else that works here."""
    kept, faults = None, []
    for way in range(len(subject.ways)):
        for worker in by_name.values():
            worker.ask({"op": subject.name, "way": way})
        answers = {name: worker.answer() for name, worker in by_name.items()}
        for name, worker in by_name.items():
            if any(words in answers[name].get("fault", "") for words in NO_MEMORY):  # others took it before
                worker.end()
                worker.ask({"op": subject.name, "way": way})
                answers[name] = worker.answer()
        if "fault" in answers["flowstone"]:
            faults.append(answers["flowstone"]["fault"])
            continue
        ready = {name for name, answer in answers.items() if "fault" not in answer}
        if kept is None or ready > kept[1]:
            kept = (way, ready)
        if ready >= set(by_name) - {"torch"}:
            break
    if kept is None:
        return {"faults": faults}
    if kept[0] != way:
        for name in kept[1]:
            by_name[name].ask({"op": subject.name, "way": kept[0]})
        for name in kept[1]:
            by_name[name].answer()
    return {"way": kept[0], "seconds": _by_turns({name: by_name[name] for name in kept[1]}, seconds)}


def _by_turns(by_name: dict[str, Worker], seconds: float) -> dict[str, float]:
    """The least time of a run of each, over `ROUNDS` turns."""
    least: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, worker in by_name.items():
            worker.ask({"seconds": seconds / ROUNDS})
            answer = worker.answer()
            if "seconds" in answer:
                least[name] = min(answer["seconds"], least.get(name, answer["seconds"]))
    return least


def compared(lines: dict[str, Line]) -> list[tuple[float, str, list[float | None]]]:
    """(time over the best peer's, op, milliseconds of each), the slowest first."""
    rows = []
    for op, line in lines.items():
        times = [line.get("seconds", {}).get(name) for name in IMPLEMENTATIONS]
        others = [time for time in times[1:] if time is not None]
        if times[0] is not None and others:
            rows.append((times[0] / min(others), op, [time and 1e3 * time for time in times]))
    return sorted(rows, reverse=True)


def report(lines: dict[str, Line], size: int, worst: int = WORST) -> str:
    """The page: how many ops are within which ratio, the slowest, and what was not measured."""
    rows = compared(lines)
    within = {bound: sum(ratio <= bound for ratio, _, _ in rows) for bound in (1.0, 1.5, 2.0, 3.0)}
    missing = [op for op, line in lines.items() if "flowstone" not in line.get("seconds", {})]
    body = [
        [op, *("–" if time is None else f"{time:.4g}" for time in times), f"{ratio:.2f}"]
        for ratio, op, times in rows[:worst]
    ]
    counts = ", ".join(f"{count} within {bound:g} x" for bound, count in within.items())
    page = [
        f"{machine()}; largest input {size / 1e6:g} MB; milliseconds, the fastest of runs by turns",
        "",
        f"Of {len(rows)} ops that a peer has, {counts} of the faster peer. The slowest:",
        "",
        markdown_table([["op", "flowstone", "TensorFlow", "torch", "over the best"], *body]),
        "",
        *_reasons([op for ratio, op, _ in rows if ratio >= EXPLAINED]),
        f"Not measured, for their shapes do not grow together: {', '.join(sorted(missing)) or 'none'}.",
    ]
    return "\n".join(page) + "\n"


def _reasons(ops: list[str]) -> list[str]:
    """Why ops are slow, a line an explanation; what stays unexplained is named as well."""
    found: dict[str, list[str]] = {}
    for op in ops:
        begins = [name for name in REASONS if op.removeprefix("I").startswith(name) or op.startswith(name)]
        reason = REASONS[max(begins, key=len)] if begins else "Not looked into."
        found.setdefault(reason, []).append(f"`{op}`")
    lines = [f"- {', '.join(names)}: {reason}" for reason, names in found.items()]
    return [f"From {EXPLAINED:g} x on:", "", *lines, ""] if lines else []


def arguments_given() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, default="1MB")
    parser.add_argument("--bytes", type=int, help="instead of a size")
    parser.add_argument("--ops", help="names, with commas")
    parser.add_argument("--dtype", default="")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--limit", type=float, default=15.0)
    parser.add_argument("--memory", type=float, default=10.0)
    parser.add_argument("--worst", type=int, default=WORST)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    return parser.parse_args()


def main() -> None:
    """Reads the arguments, measures, writes."""
    arguments = arguments_given()
    size = arguments.bytes or SIZES[arguments.size]
    chosen = list(subjects(size, arguments.dtype))
    part, parts = map(int, arguments.part.split("/"))
    chosen = chosen[(part - 1) * len(chosen) // parts : part * len(chosen) // parts]
    if arguments.ops:
        chosen = [subject for subject in chosen if subject.op in arguments.ops.split(",")]
    lines: dict[str, Line] = {}
    if arguments.json and arguments.json.exists():
        lines = json.loads(arguments.json.read_text())
    more = {"DTYPE": arguments.dtype, "GRADIENTS": "1" if arguments.gradients else ""}
    by_name = workers(size, arguments.limit, arguments.memory, more)
    for subject in chosen:
        lines[subject.name] = measured(subject, by_name, arguments.seconds)
        if arguments.json:
            arguments.json.write_text(json.dumps(lines, indent=1))
    for worker in by_name.values():
        worker.end()
    page = report(lines, size, arguments.worst)
    print(page)
    if arguments.markdown:
        arguments.markdown.write_text(page)


if __name__ == "__main__":
    main()
