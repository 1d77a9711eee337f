"""The programs of `examples/`, run as a user runs them, and what they must find out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import flowstone as tf

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "examples" / "programs"
DIGITS = str(ROOT / "examples" / "data" / "mnist")


def output_of(*command: str, folder: Path) -> list[str]:
    """The lines that `python COMMAND` prints; it must succeed."""
    result = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def flowstone_run(program: str, *arguments: str, folder: Path) -> list[str]:
    return output_of("-m", "flowstone", "run", str(PROGRAMS / program), *arguments, folder=folder)


def losses_in(lines: list[str]) -> list[float]:
    return [float(line.rpartition(" ")[2]) for line in lines if line.startswith("Loss at")]


def test_the_walk_through_of_the_tour_learns(tmp_path: Path) -> None:
    losses = losses_in(flowstone_run("tour_walkthrough.py", DIGITS, folder=tmp_path))
    assert len(losses) == 1000
    assert losses[0] > 1.5
    # Batches differ: the mean of the last hundred says what was learnt.
    assert sum(losses[-100:]) / 100 < 0.45


def test_the_appendix_of_the_tour_learns(tmp_path: Path) -> None:
    lines = flowstone_run("tour_appendix1.py", DIGITS, folder=tmp_path)
    losses = losses_in(lines)
    accuracies = [float(line.rpartition(" ")[2]) for line in lines if line.startswith("Accuracy at")]
    assert len(losses) == len(accuracies) == 11
    assert losses[0] > 2
    assert sum(losses[-4:]) / 4 < 0.5
    assert sum(accuracies[-4:]) / 4 > 0.88


def test_figure_1_as_tensorflow_ran_it(tmp_path: Path) -> None:
    lines = flowstone_run("whitepaper_fig1.py", folder=tmp_path)
    assert lines[:10] == [f"{step} (100, 100)" for step in range(10)]
    assert lines[10:] == ["result (100, 100) nonneg True"]


def test_figure_1_to_the_letter(tmp_path: Path) -> None:
    lines = flowstone_run("whitepaper_fig1_literal.py", folder=tmp_path)
    assert len(lines) == 10
    for step, line in enumerate(lines):
        number, cost = re.fullmatch(r"(\d+) \[(?:np\.float32\()?([\d.]+)\)?\]", line).groups()  # type: ignore[union-attr]
        assert int(number) == step
        # The mean of 784 relus of sums of a hundred products of U(-1, 1) and U(0, 1).
        assert 0.9 < float(cost) < 2


def test_the_digits_program_trains_both_models_and_draws(tmp_path: Path) -> None:
    program = str(ROOT / "examples" / "mnist.py")
    lines = output_of(program, "--steps", "60", "--picture", "curves.png", folder=tmp_path)
    found = [re.fullmatch(r"(.+): test accuracy (\d+\.\d) %", line) for line in lines]
    accuracy = {match[1]: float(match[2]) for match in found if match}
    assert accuracy.keys() == {"soft-max regression", "convolutional network"}
    assert accuracy["soft-max regression"] > 80
    assert accuracy["convolutional network"] > 80
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert lines[-1] == f"curves: {tmp_path / 'curves.png'}"


def test_a_tour_of_tensorflows_summaries(tmp_path: Path) -> None:
    flowstone_run("tour_tensorboard.py", folder=tmp_path)
    (log,) = (tmp_path / "log").iterdir()
    values = [event.summary.value[0] for event in tf.train.summary_iterator(str(log)) if event.summary.value]
    assert len(values) == 1000 and {(value.tag, value.simple_value) for value in values} == {("z", 3.0)}
