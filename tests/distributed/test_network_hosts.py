"""Clusters over several hosts (network namespaces): addresses that are not loopback, cut and slow links."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from network_hosts import Hosts, joined_hosts, why_not

PROGRAMS = Path(__file__).parent / "programs"
_REASON = why_not()
pytestmark = pytest.mark.skipif(bool(_REASON), reason=_REASON or "network namespaces work here")


class Tasks:
    """Processes on hosts, whose lines go to files."""

    def __init__(self, hosts: Hosts, folder: Path) -> None:
        self.hosts, self.folder = hosts, folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, host: int, program: str, *arguments: str) -> None:
        """Starts a program on a host, as `flowstone run` does."""
        command = [sys.executable, "-m", "flowstone", "run", str(PROGRAMS / program), *arguments]
        with open(self.folder / f"{name}.txt", "w") as lines:
            self.processes[name] = subprocess.Popen(
                self.hosts.command(host, *command), stdout=lines, stderr=subprocess.STDOUT
            )

    def text(self, name: str) -> str:
        """What it has written."""
        return (self.folder / f"{name}.txt").read_text()

    def wait_for(self, name: str, pattern: str, limit_s: float) -> re.Match[str]:
        """The first match in what it writes. AssertionError if there is none in time, or it has ended."""
        end = time.monotonic() + limit_s
        while True:
            has_ended = self.processes[name].poll() is not None
            found = re.search(pattern, self.text(name))
            if found:
                return found
            everything = "\n".join(f"== {each}\n{self.text(each)}" for each in self.processes)
            assert not has_ended and time.monotonic() < end, f"{name} wrote no {pattern!r}:\n{everything}"
            time.sleep(0.05)

    def end(self) -> None:
        """Ends all."""
        for process in self.processes.values():
            process.kill()
            process.wait()


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with joined_hosts(3) as found:
        yield found


@pytest.fixture
def tasks(hosts: Hosts, tmp_path: Path) -> Iterator[Tasks]:
    found = Tasks(hosts, tmp_path)
    yield found
    found.end()


def start_replicas(tasks: Tasks, method: str, steps: int) -> None:
    """A parameter server and two workers, each on its host."""
    ps, *workers = [f"{address}:2222" for address in tasks.hosts.addresses]
    given = [
        f"--ps_hosts={ps}",
        f"--worker_hosts={','.join(workers)}",
        f"--method={method}",
        f"--steps={steps}",
    ]
    for host, (job, task) in enumerate([("ps", 0), ("worker", 0), ("worker", 1)]):
        tasks.start(f"{job}{task}", host, "replica.py", *given, f"--job_name={job}", f"--task_index={task}")


@pytest.mark.parametrize("method", ["async", "sync"])
def test_hosts_train_together(tasks: Tasks, method: str) -> None:
    start_replicas(tasks, method, 300)
    for worker in ("worker0", "worker1"):
        loss = tasks.wait_for(worker, r"loss (\S+) at step", 120)
        assert float(loss[1]) < 0.1


def test_hosts_far_from_each_other_train_together(tasks: Tasks) -> None:
    """10 ms on the way to the parameter server and back: slower, but the same."""
    try:
        tasks.hosts.delay(0, 10)
    except OSError as error:
        pytest.skip(f"links cannot be slowed down here: {error}")
    start_replicas(tasks, "async", 100)
    for worker in ("worker0", "worker1"):
        loss = tasks.wait_for(worker, r"loss (\S+) at step", 120)
        assert float(loss[1]) < 1.0


def start_steps(tasks: Tasks) -> None:
    """A parameter server and a worker on hosts of their own, the worker amid steps."""
    ps, worker, _ = [f"{address}:2222" for address in tasks.hosts.addresses]
    for host, job in enumerate(("ps", "worker")):
        tasks.start(job, host, "steps.py", ps, worker, job, str(tasks.folder / "checkpoints"))
    tasks.wait_for("worker", "steps begin", 60)
    time.sleep(0.5)


def test_a_cut_link_ends_the_step_and_the_training_goes_on_when_it_is_mended(tasks: Tasks) -> None:
    """The step fails within 30 seconds; a monitored session recovers."""
    start_steps(tasks)
    tasks.hosts.cut(0)
    failure = tasks.wait_for("worker", r"(\w+Error) after (\S+) s", 45)
    assert failure[1] in ("UnavailableError", "AbortedError")
    assert float(failure[2]) < 30
    tasks.hosts.mend(0)
    trained = tasks.wait_for("worker", r"trained to (\S+)", 90)
    assert float(trained[1]) == pytest.approx(3.0, abs=1e-3)


def test_a_link_cut_for_a_moment_is_no_failure(tasks: Tasks) -> None:
    """Packets that are lost for two seconds are sent again."""
    start_steps(tasks)
    tasks.hosts.cut(1)
    time.sleep(2)
    tasks.hosts.mend(1)
    time.sleep(3)
    assert "Error" not in tasks.text("worker")
    tasks.processes["ps"].kill()
    failure = tasks.wait_for("worker", r"(\w+Error) after (\S+) s", 45)
    assert failure[1] in ("UnavailableError", "AbortedError")
