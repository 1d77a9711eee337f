"""A cluster as actors of Ray, one a task; Ray places them on its machines and keeps resources for them.

`run_on_ray` drives `Supervision`, as `local_processes` does. Each `TaskActor` finds an address on its own
machine, of the loopback interface if Ray has one machine, and runs the task's program as a process there;
what it writes comes back and is shown under the task's name. A program that has failed is started again by
its actor, at the same address. Where an actor or its machine is lost, another actor takes its place: the
cluster has a new address, so the other tasks that run start again as well, with that, and go on from their
last checkpoint.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from flowstone.distributed.launchers.cluster_description import ClusterDescription, Task
from flowstone.distributed.launchers.interrupts import Interrupts
from flowstone.distributed.launchers.outcome import ClusterOutcome, TaskOutcome, failure_text
from flowstone.distributed.launchers.ray_actor import TaskActor
from flowstone.distributed.launchers.supervision import End, Instruction, Start, Supervision, exit_status_of
from flowstone.distributed.launchers.task_environment import security_variables, share_of_threads
from flowstone.distributed.launchers.task_output import TaskOutput
from flowstone.framework.flags import environment

__all__ = ["RaySettings", "run_on_ray"]

_LOOKS_S = 0.1
_PATIENCE_S = 5.0  # until it says what Ray is asked for
_LOST = -signal.SIGKILL  # the status of a process of which nobody will hear


@dataclass(frozen=True)
class RaySettings:
    """How to use Ray.

    Args:
        address: of the Ray cluster; None for one that runs on this machine, else a new one.
        folder: copied to the machines of the tasks, which run in it; None if they have the current folder.
        cpus, gpus: what Ray keeps for each task, 0 to place them wherever there are machines.
        grace_s: how long a task may take to end after SIGTERM, before SIGKILL.
        placement_s: how long Ray may take to find a place for the tasks.
    """

    address: str | None = None
    folder: str | None = None
    cpus: float = 0.0
    gpus: float = 0.0
    grace_s: float = 10.0
    placement_s: float = 300.0


def run_on_ray(description: ClusterDescription, output: TaskOutput, settings: RaySettings) -> ClusterOutcome:
    """Runs the cluster to its end on Ray, to which it connects if this process has not yet.

    Returns how it ended. ConnectionError if there is no Ray at the address or it is lost, TimeoutError if it
    has no place for the tasks, ValueError for arguments that name the hosts of a job that is not there,
    FileNotFoundError if a machine does not have the current folder, KeyboardInterrupt if it is interrupted
    before the tasks have their places.
    """
    was_connected = ray.is_initialized()
    if not was_connected:
        shipped = {} if settings.folder is None else {"working_dir": settings.folder}
        ray.init(settings.address, runtime_env=shipped, log_to_driver=False, logging_level="warning")
    try:
        with Interrupts() as interrupts:
            return _RayCluster(description, output, settings, interrupts).run()
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None  # what the actor has raised
    except ray.exceptions.RayError as error:
        raise ConnectionError(f"Ray: {error}") from error
    finally:
        if not was_connected:
            ray.shutdown()


@dataclass
class _Run:
    """What is known of a task: its actor with its address, the process there, and the answer under way."""

    actor: Any = None
    address: str = ""
    cores: int = 1
    pid: int | None = None
    status: int | None = None
    was_ended: bool = False
    started_s: float = 0.0
    ended_s: float = 0.0
    news: Any = None


class _RayCluster:
    """The cluster's actors, followed from here."""

    def __init__(
        self,
        description: ClusterDescription,
        output: TaskOutput,
        settings: RaySettings,
        interrupts: Interrupts,
    ) -> None:
        self._description = description
        self._output = output
        self._settings = settings
        self._interrupts = interrupts
        self._supervision = Supervision(description)
        self._runs = {task: _Run() for task in description.tasks}
        self._security = security_variables(description.program, environment())
        nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
        self._only_node = nodes[0] if len(nodes) == 1 else None

    def run(self) -> ClusterOutcome:
        """Runs it to its end."""
        try:
            self._place(list(self._runs))
            self._follow(self._supervision.begin())
            while not self._supervision.is_over:
                self._attend_to_interrupts()
                self._hear()
        finally:
            for run in self._runs.values():
                if run.actor is not None:
                    ray.kill(run.actor)  # whose guard ends the process
        return ClusterOutcome(self._supervision.exit_status, [self._outcome(task) for task in self._runs])

    # ---- places

    def _place(self, tasks: Sequence[Task]) -> None:
        """Makes new actors for the tasks and learns their addresses."""
        is_alone = self._only_node is not None
        kind = ray.remote(TaskActor).options(
            num_cpus=self._settings.cpus,
            num_gpus=self._settings.gpus,
            # Addresses of the loopback interface mean the same only on one machine.
            scheduling_strategy=NodeAffinitySchedulingStrategy(self._only_node, soft=False)
            if is_alone
            else "SPREAD",
        )
        waiting = {}
        for task in tasks:
            self._runs[task].actor = actor = kind.remote(self._settings.grace_s)
            waiting[actor.find_address.remote(is_alone)] = task
        self._wait_for_places(waiting)
        for answer, task in waiting.items():
            run = self._runs[task]
            try:
                run.address, run.cores = ray.get(answer)
            except ray.exceptions.ActorUnschedulableError:
                raise TimeoutError(f"Ray has no place for {task}; it has {_resources()}") from None

    def _wait_for_places(self, waiting: dict[Any, Task]) -> None:
        began, has_spoken = time.monotonic(), False
        while left := ray.wait(list(waiting), num_returns=len(waiting), timeout=_LOOKS_S)[1]:
            if self._interrupts.take():
                raise KeyboardInterrupt
            waited_s = time.monotonic() - began
            names = ", ".join(str(waiting[answer]) for answer in left)
            if waited_s > self._settings.placement_s:
                raise TimeoutError(
                    f"Ray found no place for {names} in {waited_s:.0f} s; it has {_resources()}"
                )
            if waited_s > _PATIENCE_S and not has_spoken:
                has_spoken = True
                self._output.say(f"waits for Ray to find a place for {names}; it has {_resources()}")

    # ---- instructions

    def _follow(self, instructions: Sequence[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Start(task):
                    self._start(task)
                case End(task):
                    run = self._runs[task]
                    run.was_ended = True
                    run.actor.end.remote()

    def _start(self, task: Task) -> None:
        run = self._runs[task]
        cluster = self._description.addresses_by_job({t: each.address for t, each in self._runs.items()})
        host = _host(run)
        beside = sum(_host(each) == host for each in self._runs.values())
        threads = share_of_threads(self._description.threads, run.cores, beside)
        folder = os.getcwd() if self._settings.folder is None else None
        program = self._description.program
        try:
            if run.news is not None:  # of the process before
                self._output.show(task, ray.get(run.news)[0])
            run.pid = ray.get(run.actor.start.remote(program, task, cluster, threads, folder, self._security))
        except ray.exceptions.RayActorError:
            self._ended(task, _LOST, is_lost=True)
            return
        run.started_s = run.started_s or time.monotonic()
        run.news = run.actor.news.remote()
        self._output.say(f"{task} is process {run.pid} at {run.address}")

    # ---- events

    def _hear(self) -> None:
        """Sees what the actors have to tell."""
        waiting = {self._runs[task].news: task for task in self._supervision.running}
        for answer in ray.wait(list(waiting), num_returns=len(waiting), timeout=_LOOKS_S)[0]:
            task = waiting[answer]
            run = self._runs[task]
            if run.news is not answer:  # it was started again while others were heard
                continue
            try:
                lines, status = ray.get(answer)
            except ray.exceptions.RayActorError:
                self._ended(task, _LOST, is_lost=True)
                continue
            self._output.show(task, lines)
            if status is None:
                run.news = run.actor.news.remote()
            else:
                self._ended(task, status)

    def _ended(self, task: Task, status: int, is_lost: bool = False) -> None:
        run = self._runs[task]
        run.news, run.ended_s, run.status = None, time.monotonic(), status
        was_ending = self._supervision.is_ending
        if is_lost and not was_ending:
            self._output.say(f"{task} is lost with its actor at {run.address}")
        instructions = self._supervision.ended(task, status)
        if status != 0 and not was_ending:
            self._output.say(failure_text(task, status, run.ended_s - run.started_s, self._supervision))
        if is_lost and Start(task) in instructions:
            self._replace(task)
        else:
            self._follow(instructions)

    def _replace(self, task: Task) -> None:
        """Finds another place for the task; the others that run start again with its address."""
        self._place([task])
        others = [other for other in self._supervision.running if other != task]
        if others:
            self._output.say(f"{task} has moved to {self._runs[task].address}: all start again")
        for each in [task, *others]:
            if each in self._supervision.running and not self._supervision.is_ending:
                self._start(each)

    def _attend_to_interrupts(self) -> None:
        for number in self._interrupts.take():
            if self._supervision.is_ending:
                for run in self._runs.values():
                    run.actor.kill.remote()
            else:
                self._output.say(f"{number.name}: the tasks are ended; once more kills them")
                self._follow(self._supervision.interrupt(exit_status_of(-number)))

    def _outcome(self, task: Task) -> TaskOutcome:
        run, restarts = self._runs[task], self._supervision.restarts[task]
        return TaskOutcome(task, run.pid, run.status, run.was_ended, run.ended_s - run.started_s, restarts)


def _host(run: _Run) -> str:
    return run.address.rpartition(":")[0]


def _resources() -> str:
    everything: Callable[[], dict[str, float]] = ray.cluster_resources
    kinds = [f"{count:g} {name}" for name, count in everything().items() if name in ("CPU", "GPU")]
    return ", ".join(kinds) or "neither CPU nor GPU"
