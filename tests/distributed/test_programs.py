"""Programs of several processes: replicated training as TensorFlow's tutorials taught it, with and without
kills."""

from __future__ import annotations

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
