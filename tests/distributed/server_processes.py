"""Clusters for tests whose tasks are processes of their own, each with the command `flowstone server`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import clusters
from forked import Process


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
        server.stdout.close()

    def _started(self, job: str, task: int) -> Process:
        cluster = ";".join(f"{name}={','.join(each)}" for name, each in self.cluster.items())
        return Process(["server", "--cluster", cluster, "--job", job, "--task", str(task)])


def _await(server: Process) -> None:
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
