"""A program on several devices: a `UnitProgram` for each device, each on a thread of its own; they exchange
values at the step's rendezvous.

The client's thread runs the first part; threads that are kept between steps run the others. CPU devices share
the intra-op threads that the client's thread has. The first failure cancels the step, which ends all parts.
"""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._C import _InferenceMode

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.partition.send_receive import SENDS
from flowstone.partition.subgraphs import Part
from flowstone.runtime.execution.traced_units import unit_program
from flowstone.runtime.execution.transfers import Move, transfer
from flowstone.runtime.execution.unit_program import ProgramOfUnits, UnitProgram
from flowstone.runtime.process import threads
from flowstone.runtime.process.device import Device
from flowstone.runtime.steps.step import Step


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class PartitionedProgram(ProgramOfUnits):
    """The compiled parts of a placed subgraph, with a segment's interface (see `UnitProgram`).

    `programs`: that of each part. `on_cpu`: how many of them run on CPUs.
    """

    parts: tuple[Part, ...]
    programs: tuple[UnitProgram, ...]
    copied_fetches: tuple[bool, ...]
    on_cpu: int

    @classmethod
    def compiled(
        cls,
        parts: Sequence[Part],
        environments: Mapping[str, Environment],
        fetches: int,
        watched: bool = False,
        dynamic: bool = False,
        traced: bool = False,
    ) -> PartitionedProgram:
        """Compiles each of `parts` for its device; `fetches`: how many the whole program has."""
        move_of = _moves_between([part.device for part in parts], environments)
        programs = []
        copied_fetches = [True] * fetches
        for part in parts:
            name = part.device.name
            program = unit_program(
                part.subgraph, environments[name], watched, dynamic, name if traced else "", move_of
            )
            programs.append(program)
            for i, must_copy in zip(part.fetches, program.copied_fetches):
                copied_fetches[i] = must_copy
        on_cpu = sum(part.device.device_type == CPU for part in parts)
        return cls(tuple(parts), tuple(programs), tuple(copied_fetches), on_cpu)

    @property
    def function(self) -> Callable[..., tuple[Any, ...]]:
        """The function that runs one step."""
        return self.run

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
        intra_op_threads = max(1, torch.get_num_threads() // self.on_cpu) if self.on_cpu else 0
        for part, program in pairs[1:]:
            _start(functools.partial(run_part, part, program), intra_op_threads)
        threads.run_with(intra_op_threads, functools.partial(run_part, *pairs[0]))
        for _ in pairs:
            ended.get()
        if step.error is not None:
            raise step.error
        return tuple(results)


def _moves_between(
    devices: Iterable[Device], environments: Mapping[str, Environment]
) -> Callable[[PlanNode], Move | None]:
    """A function that gives the `Move` of a Send or Receive, between devices with memories of their own."""
    device_of = {device.name: device for device in devices}

    def move_of(node: PlanNode) -> Move | None:
        source, target = (device_of[node.attributes[end]] for end in ("send_device", "recv_device"))
        role = node.declaration.role
        way = transfer(source, target, environments, role in ("host_send", "host_receive"))
        return way.leave if role in SENDS else way.enter

    return move_of


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
    """Runs `task` on an idle worker, or on a new one if none is idle."""
    with _Worker.lock:
        worker = _Worker.idle.pop() if _Worker.idle else None
    (worker or _Worker()).give(task, intra_op_threads)
