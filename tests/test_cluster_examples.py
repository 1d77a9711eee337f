"""The examples of parallel training on the tasks of a cluster, each process of which is real."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
Example = Callable[[str], ModuleType]


def printed(program: str, *arguments: str, workers: int = 2, ps: int = 1) -> list[str]:
    """What the workers of ``flowstone cluster up PROGRAM --cluster ARGUMENTS`` print, without their progress;
    it must succeed."""
    command = [sys.executable, "-m", "flowstone", "cluster", "up", "--workers", str(workers), "--ps", str(ps)]
    result = subprocess.run(
        [*command, str(EXAMPLES / program), "--cluster", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    lines = re.findall(r"^worker/\d \| (.*)$", result.stdout, re.MULTILINE)
    return [line for line in lines if not re.search(r"step \d+ of \d+", line)]


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Example:
    """Imports an example by its name."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


def test_synchronous_towers_on_workers(example: Example) -> None:
    """The loss is that of two devices of one process."""
    here = example("places").on_cpus(2)
    losses, _ = example("synchronous_towers").train_towers(here, 60, batch=64)
    (line,) = printed("synchronous_towers.py", "--steps", "60", "--batch", "64")
    match = re.fullmatch(r"2 towers: loss (.+), test accuracy (.+)%, 60 steps in .+ s", line)
    assert match and float(match[1]) == pytest.approx(losses[-1], abs=0.002) and float(match[2]) > 80


def test_a_model_parallel_lstm_on_workers(example: Example) -> None:
    """The loss is that of two devices of one process; no parameter server is needed."""
    here = example("places").on_cpus(2)
    losses, _ = example("model_parallel_lstm").train_layers(2, here, 10, units=24)
    (line,) = printed("model_parallel_lstm.py", "--steps", "10", "--units", "24", ps=0)
    match = re.fullmatch(r"2 layers on 2 devices: loss (.+) of .+ at random, 10 steps in .+ s", line)
    assert match and float(match[1]) == pytest.approx(losses[-1], abs=0.01)


def test_concurrent_steps_over_tasks() -> None:
    (line,) = printed("concurrent_steps.py", "--steps", "60", "--clients", "2")
    match = re.fullmatch(
        r"60 steps: 1 client .+ s, 2 clients .+ s, .+ times as fast, test accuracy (.+)%", line
    )
    assert match and float(match[1]) > 60


def test_asynchronous_replicas_on_workers() -> None:
    """Each updates the variables at its own pace; together they make all updates, and few more."""
    found = {}
    for line in printed("asynchronous_towers.py", "--steps", "200"):
        match = re.fullmatch(r"replica (\d): (\d+) updates in .+ s(?:, test accuracy (.+)%)?", line)
        assert match
        found[int(match[1])] = int(match[2])
        assert match[1] == "1" or float(match[3]) > 70
    assert found.keys() == {0, 1}
    assert 200 <= sum(found.values()) <= 205


def test_synchronous_replicas_on_workers() -> None:
    """With a backup, updates take two gradients of the three that come; all workers end."""
    lines = printed("synchronous_replicas.py", "--steps", "40", "--backups", "1", workers=3)
    steps = {match[1]: int(match[2]) for match in re.finditer(r"worker (\d): (\d+) steps", "\n".join(lines))}
    assert steps.keys() == {"0", "1", "2"}
    assert sum(steps.values()) >= 2 * 40
    (line,) = (line for line in lines if "updates" in line)
    match = re.fullmatch(
        r"3 workers, 1 of them a backup: 40 updates in .+ a second\), test accuracy (.+)%", line
    )
    assert match and float(match[1]) > 60


def test_a_slow_replica_is_not_waited_for(example: Example) -> None:
    """Its gradients come too late for most updates, which the other two make without it."""
    replicas = example("synchronous_replicas")
    made, accuracy = replicas.train_in_threads(3, 1, 40, slow_s=0.2)
    assert made[2] < 20
    assert made[0] + made[1] + made[2] >= 80
    assert accuracy > 0.6


def test_without_a_cluster_the_program_says_how_to_start_one(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "synchronous_towers.py"), "--cluster"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 1
    assert "flowstone cluster up --workers N" in result.stderr
