"""Collective operations over real processes, some of which are killed and begun again."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import clusters
from forked import Process

PROGRAM = Path(__file__).parent / "programs" / "collective_member.py"
ENOUGH = 100_000  # steps; the tests end the processes before


class Members:
    """The processes of a cluster of workers, and the lines that they have printed."""

    def __init__(self, count: int, elements: int) -> None:
        self._cluster = json.dumps(clusters.cluster_of(worker=count))
        self._elements = elements
        self.lines: list[list[str]] = [[] for _ in range(count)]
        self.processes: list[Process] = []
        for task in range(count):
            self.processes.append(self._begun(task))

    def _begun(self, task: int) -> Process:
        words = [self._cluster, str(task), str(ENOUGH), str(self._elements)]
        process = Process(words, str(PROGRAM), joins=True)
        threading.Thread(target=self._read, args=(task, process), daemon=True).start()
        return process

    def _read(self, task: int, process: Process) -> None:
        for line in process.stdout:
            self.lines[task].append(line.strip())

    def kill(self, task: int) -> None:
        self.processes[task].kill()
        self.processes[task].wait()

    def begin_again(self, task: int) -> None:
        self.processes[task] = self._begun(task)

    def wait_for(self, task: int, word: str, count: int, after: int = 0) -> None:
        """Until the task has printed so many lines that begin with the word."""
        deadline = time.monotonic() + 120
        while sum(line.startswith(word) for line in self.lines[task][after:]) < count:
            assert time.monotonic() < deadline, "\n".join(f"{i}: {each}" for i, each in enumerate(self.lines))
            time.sleep(0.02)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def members(request: pytest.FixtureRequest) -> Iterator[Members]:
    found = Members(*request.param)
    yield found
    found.end()


@pytest.mark.parametrize(
    ("members", "victim"),
    [((3, 10), 2), ((3, 200_000), 0)],
    indirect=["members"],
    ids=["small values, a member", "large values, the leader"],
)
def test_members_go_on_when_a_killed_one_has_come_back(members: Members, victim: int) -> None:
    for task in range(3):
        members.wait_for(task, "sum", 5)
    before = [len(lines) for lines in members.lines]
    members.kill(victim)
    others = [task for task in range(3) if task != victim]
    for task in others:
        members.wait_for(task, "error", 1, before[task])
    told = [len(lines) for lines in members.lines]
    members.begin_again(victim)
    for task in range(3):
        members.wait_for(task, "sum", 5, told[task])
    for task in range(3):
        for line in members.lines[task]:
            word, *rest = line.split()
            if word == "sum":
                assert rest == ["6.0", "6.0"], line
            else:
                assert word == "error", line
                assert rest[0] in ("UnavailableError", "AbortedError"), line
    assert any("CollectiveReduce" in line for task in others for line in members.lines[task])
