"""Programs of several processes: replicated training as TensorFlow's tutorials taught it, with and without
kills."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import killed_tasks
import pytest


@pytest.mark.parametrize("method", ["async", "supervisor"])
def test_replicas_train_together(tmp_path: Path, method: str) -> None:
    training = killed_tasks.Training(str(tmp_path), steps=200, pause=0.0, method=method)
    try:
        deadline = time.monotonic() + 60
        while not training.is_over() and time.monotonic() < deadline:
            time.sleep(0.05)
        if method == "async":
            training.check([0])
        text = "\n".join(training.lines)
        for task in range(2):
            assert f"worker {task}: loss 0.00" in text, text
    finally:
        training.end()


def test_replicas_that_wait_for_each_other_train_together(tmp_path: Path) -> None:
    """The chief's own thread of the queues ends long after its training, as in TensorFlow; it is not
    awaited."""
    training = killed_tasks.Training(str(tmp_path), steps=60, pause=0.0, method="sync")
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and sum(": loss" in line for line in list(training.lines)) < 2:
            time.sleep(0.05)
        ended = [line for line in training.lines if ": loss" in line]
        assert len(ended) == 2, "\n".join(training.lines)
        for line in ended:  # two gradients are averaged in each of 60 steps
            assert float(line.split("loss ")[1].split()[0]) < 0.1
    finally:
        training.end()


@pytest.mark.parametrize("seed", range(3))
def test_killed_tasks_come_back_and_the_training_ends_as_undisturbed(tmp_path: Path, seed: int) -> None:
    killed = killed_tasks.run(kills=4, seed=seed, folder=str(tmp_path), steps=1500)
    assert sum(killed.values()) >= 2


ESTIMATOR = Path(__file__).parent / "programs" / "estimator.py"


def estimator_lines(*arguments: str) -> list[str]:
    """What a cluster prints that trains the Estimator; AssertionError unless it ends well."""
    command = [sys.executable, "-m", "flowstone", "cluster", "up", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return (ran.stdout + ran.stderr).splitlines()


def test_an_estimator_is_trained_by_a_chief_a_worker_and_an_evaluator(tmp_path: Path) -> None:
    tasks = ["--chief", "--workers", "1", "--ps", "1", "--evaluator"]
    text = "\n".join(estimator_lines(*tasks, str(ESTIMATOR), str(tmp_path)))
    loss = re.search(r"loss (\S+)", text)
    assert loss, text
    assert float(loss[1]) < 1e-3, text  # 5.25 before the first step
    assert list(tmp_path.glob("model.ckpt-30?.index")), text
    assert list((tmp_path / "eval").glob("events.*"))
