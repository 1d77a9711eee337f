"""Traced programs of units: records what happens between the segments of a step.

Asynchronous kernels, Send and Receive and the executor's control flow are events of their own, from the start
of their unit to its report; dead units have none. A segment records its nodes itself; here it gets the time
at which its unit became ready.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from flowstone.framework.declarations.kernel import Environment
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.runtime.code.tracing import Trace, TracedStep, now
from flowstone.runtime.execution.executor import DEAD, SEGMENT, Executor, Iteration, Unit, UnitGraph
from flowstone.runtime.execution.transfers import Move
from flowstone.runtime.execution.unit_program import UnitProgram, UnitRun
from flowstone.runtime.steps.step import Step


class TracedUnitProgram(UnitProgram):
    """A `UnitProgram` for steps with a trace, on the device `traced_device`."""

    __slots__ = ()

    def begin(self, step: Step) -> UnitRun:
        """A run of the units that records a trace."""
        assert isinstance(step, TracedStep)
        for unit in self.graph.units:
            for place, value in unit.fixed:
                step.trace.record_constant(self.traced_device, unit.node.inputs[place].op, [value])
        return _TracedRun(_TracedExecutor(self.graph, step.trace, self.traced_device), step)


def unit_program(
    subgraph: Subgraph,
    environment: Environment,
    watched: bool,
    dynamic: bool,
    traced_device: str,
    move_of: Callable[[PlanNode], Move | None] | None = None,
) -> UnitProgram:
    """A program of units, for steps with a trace if `traced_device` is the name of its device."""
    kind = TracedUnitProgram if traced_device else UnitProgram
    return kind.compiled(subgraph, environment, watched, dynamic, traced_device, move_of)


class _TracedRun(UnitRun):
    def _reporter(self, unit: Unit, iteration: Iteration) -> Callable[..., None]:
        done, executor = super()._reporter(unit, iteration), self.executor
        assert isinstance(executor, _TracedExecutor)
        ends = executor.ends

        def done_now(outputs: Any, error: BaseException | None = None) -> None:
            ends[unit, iteration] = now()
            done(outputs, error)

        return done_now


class _TracedExecutor(Executor):
    """Records of each running unit when it became ready, when it was started and when it reported."""

    def __init__(self, graph: UnitGraph, trace: Trace, device: str) -> None:
        super().__init__(graph)
        self.ready = _TracedQueue(trace, device)
        self.ends: dict[tuple[Unit, Iteration], int] = {}
        self._trace, self._device = trace, device
        self._times = self.ready.times

    def finish(self, unit: Unit, iteration: Iteration, outputs: Sequence[Any] | None) -> None:
        """A unit has run: adds an event, unless it was dead or a segment."""
        key = (unit, iteration)
        end = self.ends.pop(key, 0) or now()
        ready, start = self._times.pop(key)
        if outputs is not None and unit.node is not None:
            if unit.kind == SEGMENT:
                self._trace.record_constant(self._device, unit.node, outputs)
            else:
                values = [None if value is DEAD else value for value in outputs]
                self._trace.record(self._device, unit.node, ready, start, end, values)
        super().finish(unit, iteration, outputs)


class _TracedQueue(deque[tuple[Unit, Iteration, "list[Any] | None"]]):
    """Ready units; `times`: when each became ready, and when it was started."""

    def __init__(self, trace: Trace, device: str) -> None:
        super().__init__()
        self.times: dict[tuple[Unit, Iteration], tuple[int, int]] = {}
        self._trace, self._device = trace, device

    def append(self, item: tuple[Unit, Iteration, list[Any] | None]) -> None:
        """Adds a unit that has become ready."""
        self.times[item[:2]] = (now(), 0)
        super().append(item)

    def popleft(self) -> tuple[Unit, Iteration, list[Any] | None]:
        """Removes the next unit, which is then started."""
        item = super().popleft()
        ready, _ = self.times[item[:2]]
        self.times[item[:2]] = (ready, now())
        if item[0].kind == SEGMENT:
            self._trace.units_ready[self._device] = ready
        return item
