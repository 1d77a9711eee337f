"""A program on several devices: one `UnitProgram` a device, each on a thread of its own, joined by the step's
rendezvous.

The client's thread runs the first part, threads that are kept between steps the others. CPU devices share
the intra-op threads that the client's thread has. The first failure cancels the step, which ends all parts.
"""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._C import _InferenceMode

from flowstone.framework.kernel import Environment
from flowstone.partition.subgraphs import Part
from flowstone.runtime import threads
from flowstone.runtime.executor import RECEIVE, SEND
from flowstone.runtime.step import Step
from flowstone.runtime.traced_units import unit_program
from flowstone.runtime.transfers import transfer
from flowstone.runtime.unit_program import ProgramOfUnits, UnitProgram


class PartitionedProgram(ProgramOfUnits):
    """The compiled parts of a placed subgraph, with a segment's face (see `UnitProgram`)."""

    def __init__(
        self,
        parts: Sequence[Part],
        environments: dict[str, Environment],
        fetches: int,
        watched: bool = False,
        dynamic: bool = False,
        traced: bool = False,
    ) -> None:
        self.parts = list(parts)
        self.programs = [
            unit_program(
                part.subgraph,
                environments[part.device.name],
                watched,
                dynamic,
                part.device.name if traced else "",
            )
            for part in parts
        ]
        self.copied_fetches = [True] * fetches
        for part, program in zip(parts, self.programs):
            for i, must_copy in zip(part.fetches, program.copied_fetches):
                self.copied_fetches[i] = must_copy
        self._join(environments)
        self._on_cpu = sum(part.device.device_type == "CPU" for part in parts)
        self.function = self.run

    def _join(self, environments: dict[str, Environment]) -> None:
        """Gives Sends and Receives between devices with memories of their own what moves the values."""
        device_of = {part.device.name: part.device for part in self.parts}
        for program in self.programs:
            for unit in program.graph.units:
                if unit.kind in (SEND, RECEIVE):
                    _, source, target = unit.way
                    to_host = unit.node.type in ("_HostSend", "_HostRecv")
                    way = transfer(device_of[source], device_of[target], environments, to_host)
                    unit.call = way.leave if unit.kind == SEND else way.enter

    @property
    def source(self) -> str:
        """The parts' units, each part under its device's name."""
        return "\n".join(
            f"# {part.device.name}\n{program.source}" for part, program in zip(self.parts, self.programs)
        )

    def run(self, step: Step, *feeds: Any) -> tuple[Any, ...]:
        """Runs one step on all devices; raises the first failure."""
        results: list[Any] = [None] * len(self.copied_fetches)
        ended: queue.SimpleQueue[None] = queue.SimpleQueue()

        def run_part(part: Part, program: UnitProgram) -> None:
            try:
                values = program.run(step, *[feeds[i] for i in part.feeds])
                for i, value in zip(part.fetches, values):
                    results[i] = value
            except Exception as error:
                step.cancel(error)
            finally:
                ended.put(None)

        pairs = list(zip(self.parts, self.programs))
        intra_op_threads = max(1, torch.get_num_threads() // self._on_cpu) if self._on_cpu else 0
        for part, program in pairs[1:]:
            _start(functools.partial(run_part, part, program), intra_op_threads)
        threads.run_with(intra_op_threads, functools.partial(run_part, *pairs[0]))
        for _ in pairs:
            ended.get()
        if step.error is not None:
            raise step.error
        return tuple(results)


class _Worker:
    """A thread that runs one part at a time and waits for the next."""

    idle: list[_Worker] = []
    lock = threading.Lock()

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[tuple[Callable[[], None], int]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="flowstone device", daemon=True).start()

    def give(self, task: Callable[[], None], intra_op_threads: int) -> None:
        self._tasks.put((task, intra_op_threads))

    def _run(self) -> None:
        with _InferenceMode(True):
            while True:
                task, intra_op_threads = self._tasks.get()
                threads.run_with(intra_op_threads, task)
                del task
                with _Worker.lock:
                    _Worker.idle.append(self)


def _start(task: Callable[[], None], intra_op_threads: int) -> None:
    """Runs `task` on an idle worker, or on a new one: as many as parts run at once are ever made."""
    with _Worker.lock:
        worker = _Worker.idle.pop() if _Worker.idle else None
    (worker or _Worker()).give(task, intra_op_threads)
