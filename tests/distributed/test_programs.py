"""Programs of several processes: replicated training as TensorFlow's tutorials taught it, with and without
kills."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import time
from pathlib import Path

import killed_tasks
import pytest
import server_processes

import flowstone as tf


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


def test_killed_tasks_come_back_to_synchronous_training(tmp_path: Path) -> None:
    """Whoever comes back takes part again: nobody waits for gradients or tokens that were lost with it."""
    killed = killed_tasks.run(kills=3, seed=2, folder=str(tmp_path), steps=1000, method="sync")
    assert sum(killed.values()) >= 1


@pytest.mark.parametrize("killed", [("worker", 0), ("ps", 0), ("worker", 1)], ids=["master", "ps", "worker"])
def test_a_client_elsewhere_goes_on_when_servers_were_killed(tmp_path: Path, killed: tuple[str, int]) -> None:
    """The program is in none of the cluster's processes; its session's master is ``worker/0``."""
    with server_processes.running(ps=1, worker=2) as processes, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            step = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
        with tf.device("/job:worker/task:1"):
            loss = tf.reduce_sum(tf.square(w - [1.0, -2.0]))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        with tf.control_dependencies([train]):
            after = step + 0
        seen, losses = list[int](), list[float]()
        with tf.train.MonitoredTrainingSession(
            processes.target(), checkpoint_dir=str(tmp_path), save_checkpoint_secs=None,
            save_checkpoint_steps=10, save_summaries_steps=None, log_step_count_steps=None,
            hooks=[tf.train.StopAtStepHook(80)],
        ) as session:  # fmt: skip
            while not session.should_stop():
                if len(seen) in (25, 45):
                    processes.restart(*killed)
                value, number = session.run([loss, after])
                seen.append(int(number))
                losses.append(float(value))
        assert losses[-1] < 1e-6
        assert seen[-1] == 80
        lost = [before - after + 1 for before, after in itertools.pairwise(seen) if after != before + 1]
        assert len(lost) <= 2 and max(lost, default=0) <= 10, seen  # a chief restores the last checkpoint


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


STRATEGY = Path(__file__).parent / "programs" / "estimator_strategy.py"


def weights_of(lines: list[str]) -> list[float]:
    (found,) = [line for line in lines if "weights" in line]
    return [float(word) for word in found.partition("weights ")[2].split()]


def test_an_estimator_with_collectives_trains_as_one_process(tmp_path: Path) -> None:
    """Each of two workers has half of the examples: the mean of their gradients is that of all, in batches of
    twice the size. Their n-th batches are those of one process: every other example of twice as many."""
    lines = estimator_lines("--workers", "2", str(STRATEGY), str(tmp_path / "two"), "collective")
    assert sum("ended" in line and line.startswith("worker") for line in lines) == 2, lines
    assert sorted(path.name for path in (tmp_path / "two").glob("*.index"))[-1] == "model.ckpt-40.index"
    program = [sys.executable, "-m", "flowstone", "run", "-", str(tmp_path / "one"), "one"]
    text = STRATEGY.read_text().replace("batch(16)", "batch(32)")
    ran = subprocess.run(program, input=text, capture_output=True, text=True, timeout=120, check=True)
    assert weights_of(lines) == pytest.approx(weights_of(ran.stdout.splitlines()), abs=1e-5)
    assert abs(weights_of(lines)[1] + 2.0) > 0.05


def test_an_estimator_with_a_strategy_of_parameter_servers(tmp_path: Path) -> None:
    lines = estimator_lines("--workers", "2", "--ps", "2", str(STRATEGY), str(tmp_path), "ps")
    assert sum("ended" in line and line.startswith("worker") for line in lines) == 2, lines
    assert weights_of(lines) == pytest.approx([1.0, -2.0, 0.5, 0.0], abs=0.05)
