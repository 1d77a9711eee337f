"""`tf.test.create_local_cluster`: the tasks of a small cluster as servers of this process."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

from flowstone.training.sessions.server import Server

__all__ = ["create_local_cluster"]


def _free_addresses(count: int) -> list[str]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [f"localhost:{each.getsockname()[1]}" for each in sockets]


def create_local_cluster(
    num_workers: int,
    num_ps: int,
    protocol: str = "grpc",
    worker_config: Any = None,
    ps_config: Any = None,
) -> tuple[list[Server], list[Server]]:
    """Starts the servers of the jobs "worker" and "ps", each on a free port of the loopback.

    Args:
        num_workers, num_ps: how many tasks the two jobs have.
        protocol: as of `tf.train.Server`.
        worker_config, ps_config: the ConfigProto of the tasks of each job.

    Returns the servers of the workers and those of the parameter servers; `servers[i].target` is what a
    session connects to.
    """
    addresses = _free_addresses(num_workers + num_ps)
    cluster = {"worker": addresses[:num_workers], "ps": addresses[num_workers:]}

    def servers(job: str, config: Any) -> list[Server]:
        return [Server(cluster, job, task, protocol, config) for task in range(len(cluster[job]))]

    return servers("worker", worker_config), servers("ps", ps_config)
