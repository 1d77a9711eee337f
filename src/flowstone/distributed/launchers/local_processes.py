"""A cluster as processes of this machine, at free ports of the loopback interface.

`run_locally` drives `Supervision`: it starts the tasks, shows and keeps what they write, and tells the
state machine how they end. Ctrl-C and SIGTERM end the cluster, a second one at once; a launcher that is
killed has its `OrphanGuard`. If a task fails and somebody else listens on its port, the cluster starts once
more at other ports, a few times.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from flowstone.distributed.launchers.cluster_description import EVALUATOR, ClusterDescription, Task
from flowstone.distributed.launchers.interrupts import Interrupts
from flowstone.distributed.launchers.loopback_ports import HeldPort, hold_ports, is_taken
from flowstone.distributed.launchers.orphan_guard import OrphanGuard
from flowstone.distributed.launchers.outcome import ClusterOutcome, TaskOutcome, failure_text
from flowstone.distributed.launchers.supervision import End, Instruction, Start, Supervision, exit_status_of
from flowstone.distributed.launchers.task_environment import (
    security_variables,
    share_of_threads,
    task_command,
    task_variables,
)
from flowstone.distributed.launchers.task_output import TaskOutput
from flowstone.distributed.launchers.task_process import TaskProcess
from flowstone.framework.flags import environment
from flowstone.framework.process.cores import usable_cores

__all__ = ["run_locally"]

_HOST = "127.0.0.1"
_LOOKS_S = 0.05  # between looks for ended processes
_PORT_ATTEMPTS = 4


class _PortTaken(Exception):
    """Somebody else listens on a task's port."""


def run_locally(description: ClusterDescription, output: TaskOutput, grace_s: float = 10.0) -> ClusterOutcome:
    """Runs the cluster to its end.

    Args:
        description: the cluster.
        output: where the tasks' lines go.
        grace_s: how long a task may take to end after SIGTERM, before SIGKILL.

    Returns how it ended. OSError if there are no free ports or no process can be started, ValueError for
    arguments that name the hosts of a job that is not there.
    """
    with ExitStack() as stack:
        guard = OrphanGuard()
        stack.callback(guard.close)
        interrupts = stack.enter_context(Interrupts())
        for attempt in range(_PORT_ATTEMPTS):
            cluster = _LocalCluster(description, output, guard, grace_s, interrupts)
            try:
                return cluster.run(is_last=attempt + 1 == _PORT_ATTEMPTS)
            except _PortTaken as error:
                output.say(f"{error}: all tasks start again at other ports")
    raise AssertionError


@dataclass
class _Run:
    """What is known of a task: its process, if one was started, and its times."""

    port: HeldPort
    process: TaskProcess | None = None
    started_s: float = 0.0
    ended_s: float = 0.0


class _LocalCluster:
    """One attempt to run the cluster."""

    def __init__(
        self,
        description: ClusterDescription,
        output: TaskOutput,
        guard: OrphanGuard,
        grace_s: float,
        interrupts: Interrupts,
    ) -> None:
        self._description = description
        self._output = output
        self._guard = guard
        self._grace_s = grace_s
        self._interrupts = interrupts
        self._supervision = Supervision(description)
        self._selector = selectors.DefaultSelector()
        self._runs: dict[Task, _Run] = {}
        self._security = security_variables(description.program, environment())

    def run(self, is_last: bool) -> ClusterOutcome:
        """Runs it to its end; raises _PortTaken instead of a failure, unless it `is_last`."""
        tasks = self._description.tasks
        try:
            self._runs = {task: _Run(port) for task, port in zip(tasks, hold_ports(len(tasks), _HOST))}
            self._follow(self._supervision.begin())
            while not self._supervision.is_over:
                self._attend_to_interrupts()
                for key, _ in self._selector.select(_LOOKS_S):
                    self._hear(key.data)
                for task in list(self._supervision.running):
                    self._look_at(task, is_last)
        finally:
            self._clear_up()
        return ClusterOutcome(self._supervision.exit_status, [self._outcome(task) for task in tasks])

    def _follow(self, instructions: Sequence[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Start(task):
                    self._start(task)
                case End(task):
                    process = self._runs[task].process
                    if process is not None:
                        process.end()

    def _start(self, task: Task) -> None:
        run = self._runs[task]
        addresses = {other: f"{_HOST}:{each.port.port}" for other, each in self._runs.items()}
        cluster = self._description.addresses_by_job(addresses)
        threads = share_of_threads(self._description.threads, usable_cores(), len(self._runs))
        given = environment()
        others = given if self._description.threads is None else {}  # who says how many means it
        variables = given | self._security | task_variables(cluster, task, threads, others)
        command = task_command(self._description.program, task, cluster)
        run.port.release()
        run.process = TaskProcess(command, variables, self._guard, self._grace_s)
        run.started_s = run.started_s or time.monotonic()
        self._selector.register(run.process, selectors.EVENT_READ, task)
        place = "" if task.job == EVALUATOR else f" at {addresses[task]}"
        self._output.say(f"{task} is process {run.process.pid}{place}")

    def _hear(self, task: Task) -> None:
        process = self._runs[task].process
        assert process is not None
        self._output.show(task, process.read_lines())
        if process.is_silent:
            self._selector.unregister(process)

    def _look_at(self, task: Task, is_last: bool) -> None:
        """Sees whether the task has ended."""
        run = self._runs[task]
        process = run.process
        assert process is not None
        status = process.poll()
        if status is None:
            return
        if not process.is_silent:
            self._selector.unregister(process)
        self._output.show(task, process.read_rest())
        process.close()
        run.ended_s = time.monotonic()
        was_ending = self._supervision.is_ending
        restarts = self._supervision.restarts[task]
        if status != 0 and not was_ending and not restarts and not is_last and is_taken(run.port.port, _HOST):
            raise _PortTaken(f"{task} failed, and somebody else listens on its port {run.port.port}")
        instructions = self._supervision.ended(task, status)
        if status != 0 and not was_ending:
            self._output.say(failure_text(task, status, run.ended_s - run.started_s, self._supervision))
        self._follow(instructions)

    def _attend_to_interrupts(self) -> None:
        for number in self._interrupts.take():
            if self._supervision.is_ending:
                for run in self._runs.values():
                    if run.process is not None:
                        run.process.kill()
            else:
                self._output.say(f"{number.name}: the tasks are ended; once more kills them")
                self._follow(self._supervision.interrupt(exit_status_of(-number)))

    def _clear_up(self) -> None:
        for run in self._runs.values():
            if run.process is not None:
                run.process.kill()
                run.process.close()
            run.port.close()
        self._selector.close()

    def _outcome(self, task: Task) -> TaskOutcome:
        run = self._runs[task]
        process = run.process
        if process is None:
            return TaskOutcome(task, None, None, False, 0.0, 0)
        restarts = self._supervision.restarts[task]
        duration_s = run.ended_s - run.started_s
        return TaskOutcome(task, process.pid, process.status, process.was_ended, duration_s, restarts)
