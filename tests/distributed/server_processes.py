"""Clusters for tests whose tasks are processes of their own, started as a user starts them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import clusters

SOURCES = str(Path(__file__).parents[2] / "src")


class Processes:
    """Running servers by (job, task); `cluster`: their addresses."""

    def __init__(self, cluster: dict[str, list[str]]) -> None:
        self.cluster = cluster
        tasks = [(job, i) for job, addresses in cluster.items() for i in range(len(addresses))]
        self.servers = {task: self._started(*task) for task in tasks}
        for server in self.servers.values():
            _await(server)

    def target(self, job: str = "worker", task: int = 0) -> str:
        """What sessions connect to."""
        return f"grpc://{self.cluster[job][task]}"

    def restart(self, job: str, task: int) -> None:
        """Kills a task, and starts it again."""
        self.end(job, task)
        server = self.servers[job, task] = self._started(job, task)
        _await(server)

    def end(self, job: str, task: int) -> None:
        """Kills a task."""
        server = self.servers[job, task]
        server.kill()
        server.wait()
        assert server.stdout is not None
        server.stdout.close()

    def _started(self, job: str, task: int) -> subprocess.Popen[str]:
        cluster = ";".join(f"{name}={','.join(each)}" for name, each in self.cluster.items())
        command = ["server", "--cluster", cluster, "--job", job, "--task", str(task)]
        return subprocess.Popen(
            [sys.executable, "-m", "flowstone", *command],
            env=os.environ | {"PYTHONPATH": SOURCES, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )


def _await(server: subprocess.Popen[str]) -> None:
    assert server.stdout is not None
    line = server.stdout.readline()
    assert " at grpc://" in line, line


@contextlib.contextmanager
def running(**jobs: int) -> Iterator[Processes]:
    """A cluster of processes within the context."""
    found = Processes(clusters.cluster_of(**jobs))
    try:
        yield found
    finally:
        for task in found.servers:
            found.end(*task)
