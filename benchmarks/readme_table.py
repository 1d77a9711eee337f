"""The README's table of figures, from the committed results.

    python benchmarks/readme_table.py [--write]

prints it, or puts it in the README in place of the one there. A cell has the medians over the rounds, two
digits of each, "–" where nothing was measured.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
IMPLEMENTATIONS = {"flowstone": "Flowstone", "tensorflow": "TensorFlow", "torch": "PyTorch", "jax": "JAX"}
HEADING = f"| workload (float32) | {' | '.join(IMPLEMENTATIONS.values())} |"


class Row(NamedTuple):
    """`figures`: (workload, metric) of each, in the order of the text; `notes`: said of an implementation."""

    text: str
    figures: tuple[tuple[str, str], ...]
    notes: dict[str, str] = {}


def _both(workload: str, first: str, second: str) -> tuple[tuple[str, str], ...]:
    return (workload, first), (workload, second)


_LSTM = {"torch": "best of `nn.LSTM`, cells"}
_IN_PYTHON = {"torch": "in Python or compiled"}
ROWS = (
    Row("`Session.run`, one feed, one add, one fetch", (("session_run", "add"),)),
    Row("soft-max regression, batch 100, a step of gradient descent", (("softmax_regression", "step"),)),
    Row("784-256-128-10 perceptron, batch 128, a step of Adam", (("perceptron", "step"),)),
    Row("LeNet, batch 64: forward / step", _both("lenet", "forward", "step")),
    Row("AlexNet, batch 16: forward / step", _both("alexnet", "forward", "step")),
    Row("ResNet-50, batch 4: forward / step", _both("resnet50", "forward", "step")),
    Row("a transformer block, 16 × 64 × 256: forward / step", _both("transformer_block", "forward", "step")),
    Row(
        "36,000 operations with gradients: build / first run / step",
        (("graph_building", "build"), ("graph_building", "first run"), ("graph_building", "step")),
        {"torch": "eager"},
    ),
    Row(
        "LSTM language model, 1×200, 20 steps: unrolled / `while_loop`",
        _both("language_model_small", "static step", "dynamic step"),
        _LSTM,
    ),
    Row(
        "LSTM language model, 2×650, 50 steps: unrolled / `while_loop`",
        _both("language_model_large", "static step", "dynamic step"),
        _LSTM,
    ),
    Row(
        "GRU over sequences with lengths, 128 units, 20 steps, batch 32: forward / step",
        _both("gru_cell_lengths", "forward", "step"),
    ),
    Row(
        "first values, planning and first step in a new process: ResNet-50 / the larger language model",
        _both("first_run", "resnet50", "language_model_large static"),
    ),
    Row(
        "an iteration of a small `while_loop` / with its gradient",
        _both("control_flow", "while_loop iteration", "with its gradient"),
        _IN_PYTHON,
    ),
    Row("one of a hundred `cond`s", (("control_flow", "cond"),), _IN_PYTHON),
    Row(
        "an example through a FIFOQueue / shuffled, in batches",
        _both("queues", "FIFOQueue, enqueue_many", "RandomShuffleQueue, enqueue_many"),
        {"torch": "`DataLoader`"},
    ),
)

Medians = dict[tuple[str, str, str], tuple[float, str]]  # workload, metric, implementation: value, unit


def medians(folder: Path = HERE / "results") -> Medians:
    """The figures of all committed tables."""
    found: Medians = {}
    for path in sorted(folder.glob("*.json")):
        for key, values in json.loads(path.read_text()).get("figures", {}).items():
            workload, metric, unit, implementation = key.split("|")
            found[workload, metric, implementation] = statistics.median(values), unit
    return found


def table(found: Medians) -> str:
    """The table as Markdown, without a line break at its end."""
    lines = [HEADING, "|" + " --- |" * (len(IMPLEMENTATIONS) + 1)]
    for row in ROWS:
        cells = [cell(row, implementation, found) for implementation in IMPLEMENTATIONS]
        lines.append(f"| {row.text} | {' | '.join(cells)} |")
    return "\n".join(lines)


def cell(row: Row, implementation: str, found: Medians) -> str:
    """An implementation's figures; the unit once if it is the same for all."""
    figures = [found.get((workload, metric, implementation)) for workload, metric in row.figures]
    known = [figure for figure in figures if figure is not None]
    if not known:
        return "–"
    units = {unit.split("/")[0].replace("us", "µs") for _, unit in known}
    (unit,) = units if len(units) == 1 else ("",)
    shown = [_shown(figure, not unit) for figure in figures]
    note = row.notes.get(implementation)
    return " / ".join(shown) + f" {unit}" * bool(unit) + f" ({note})" * bool(note)


def _shown(figure: tuple[float, str] | None, with_unit: bool) -> str:
    if figure is None:
        return "–"
    value, unit = figure
    digits = f"{value:.0f}" if value >= 99.5 else f"{value:#.2g}".rstrip(".")
    return f"{digits} {unit}" if with_unit else digits


def replaced(readme: str, new: str) -> str:
    """The text of the README with this table in place of its own. ValueError if it has none."""
    lines = readme.split("\n")
    begin = next((i for i, line in enumerate(lines) if line.startswith("| workload (float32) |")), None)
    if begin is None:
        raise ValueError("the README has no table of figures")
    end = next(i for i in range(begin, len(lines)) if not lines[i].startswith("|"))
    return "\n".join([*lines[:begin], *new.split("\n"), *lines[end:]])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    made = table(medians())
    if parser.parse_args().write:
        README.write_text(replaced(README.read_text(), made))
    else:
        print(made)


if __name__ == "__main__":
    main()
