"""Clusters for tests: servers of this process on free ports of the loopback."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import flowstone as tf
from flowstone.distributed.launchers.loopback_ports import hold_ports
from flowstone.distributed.masters.own_servers import masters
from flowstone.distributed.servers.server import TaskServer
from flowstone.io.proto import tensorflow_server_pb2


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody uses, nor gets from the system when it asks for any."""
    with contextlib.ExitStack() as stack:
        return [stack.enter_context(each).port for each in hold_ports(count)]


def cluster_of(**jobs: int) -> dict[str, list[str]]:
    """The addresses of a cluster with so many tasks of each job."""
    ports = iter(free_ports(sum(jobs.values())))
    return {job: [f"localhost:{next(ports)}" for _ in range(count)] for job, count in jobs.items()}


def server_def(cluster: dict[str, list[str]], job: str, task: int, config: Any = None) -> Any:
    """The ServerDef of one task."""
    message = tensorflow_server_pb2.ServerDef(job_name=job, task_index=task, protocol="grpc")
    message.cluster.CopyFrom(tf.train.ClusterSpec(cluster).as_cluster_def())
    if config is not None:
        message.default_session_config.CopyFrom(config)
    return message


class Cluster:
    """Running servers; `target(job, task)` is what sessions connect to."""

    def __init__(self, cluster: dict[str, list[str]]) -> None:
        self.cluster = cluster
        self.servers = {
            (job, i): TaskServer(server_def(cluster, job, i))
            for job, each in cluster.items()
            for i in range(len(each))
        }
        for server in self.servers.values():
            server.start()

    def target(self, job: str = "worker", task: int = 0) -> str:
        """The task's target."""
        return self.servers[job, task].target

    def stop(self, job: str, task: int) -> None:
        """Ends one task."""
        self.servers[job, task].stop()

    def restart(self, job: str, task: int) -> None:
        """Begins a task anew at its address, with nothing in its containers."""
        server = self.servers[job, task] = TaskServer(server_def(self.cluster, job, task))
        server.start()


@contextlib.contextmanager
def running(**jobs: int) -> Iterator[Cluster]:
    """A cluster within the context."""
    cluster = Cluster(cluster_of(**jobs))
    try:
        yield cluster
    finally:
        for server in cluster.servers.values():
            server.stop()


@contextlib.contextmanager
def by_messages() -> Iterator[None]:
    """Within the context, sessions speak gRPC even to servers of this process."""
    hidden = dict(masters)
    masters.clear()
    try:
        yield
    finally:
        masters.update(hidden)
