"""`TaskActor`: a task of a cluster on the machine that Ray has chosen; see `ray_cluster`."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

import ray

from flowstone.distributed.launchers.cluster_description import Program, Task
from flowstone.distributed.launchers.loopback_ports import HeldPort, hold_ports
from flowstone.distributed.launchers.orphan_guard import OrphanGuard
from flowstone.distributed.launchers.task_environment import task_command, task_variables
from flowstone.distributed.launchers.task_process import TaskProcess
from flowstone.framework.flags import environment

__all__ = ["TaskActor"]

_LOOKS_S = 0.05
_ANSWERS_S = 0.2


class TaskActor:
    """Runs one task's program as a process. Calls are answered one after the other, each soon.

    Its guard ends the process when Ray ends the actor.
    """

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._guard = OrphanGuard()
        self._port: HeldPort | None = None
        self._process: TaskProcess | None = None
        self._unheard: list[str] = []  # of processes before this one

    def find_address(self, is_alone: bool) -> tuple[str, int]:
        """Holds a free port of this machine, of its loopback interface if no other machine has tasks; returns
        the address and the number of the machine's cores."""
        host = "127.0.0.1" if is_alone else _own_address()
        self._port = hold_ports(1, host)[0]
        return f"{host}:{self._port.port}", os.cpu_count() or 1

    def start(
        self,
        program: Program,
        task: Task,
        cluster: Mapping[str, Sequence[str]],
        threads: int,
        folder: str | None,
        security: Mapping[str, str],
    ) -> int:
        """Starts the program, in `folder` or where Ray has put this actor, with the variables `security`
        (`security_variables`); ends the process before it.

        Returns the process's number. ValueError for arguments that name the hosts of a job that is not there,
        FileNotFoundError for a folder that this machine does not have.
        """
        command = task_command(program, task, cluster)
        if self._process is not None:
            self._process.kill()
            self._unheard += self._process.read_rest()
            self._process.close()
        # What Ray has set for the number of threads is no wish of anybody's.
        variables = {**environment(), **security, **task_variables(cluster, task, threads, given={})}
        assert self._port is not None
        self._port.release()
        self._process = TaskProcess(command, variables, self._guard, self._grace_s, folder)
        return self._process.pid

    def news(self) -> tuple[list[str], int | None]:
        """The lines that the process has written since the last call, and its exit status once it has ended;
        waits for them for a moment."""
        process = self._process
        assert process is not None
        until = time.monotonic() + _ANSWERS_S
        while True:
            status = process.poll()
            lines = self._unheard + (process.read_lines() if status is None else process.read_rest())
            self._unheard = []
            if lines or status is not None or time.monotonic() > until:
                return lines, status
            time.sleep(_LOOKS_S)

    def end(self) -> None:
        """Asks the process to end."""
        if self._process is not None:
            self._process.end()

    def kill(self) -> None:
        """Ends the process at once."""
        if self._process is not None:
            self._process.kill()


def _own_address() -> str:
    """The address by which Ray reaches this machine."""
    own = ray.get_runtime_context().get_node_id()
    addresses: list[str] = [node["NodeManagerAddress"] for node in ray.nodes() if node["NodeID"] == own]
    return addresses[0]
