"""A program of units: drives an `Executor` on the thread that runs the step.

The thread runs units that are ready. If none is, it waits until the step's deadline for an asynchronous
kernel to report, from any thread. So no kernel holds a thread while it waits. The first failure cancels the
step: waiting kernels give up, no unit is started any more, and the error is raised once all have reported.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flowstone.framework.declarations.kernel import Environment
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.runtime.code.failures import explain, located
from flowstone.runtime.code.segments import dead
from flowstone.runtime.execution.executor import (
    ASYNCHRONOUS,
    DEAD,
    RECEIVE,
    Executor,
    Iteration,
    Unit,
    UnitGraph,
)
from flowstone.runtime.execution.primitives import prepared
from flowstone.runtime.execution.transfers import Move
from flowstone.runtime.execution.units import cut
from flowstone.runtime.steps.step import Step, deadline_error


class ProgramOfUnits:
    """The part of a segment's interface that is the same for all programs of several functions: they have no
    lines."""

    __slots__ = ()

    def node_at(self, line: int) -> PlanNode | None:
        """None: units name their own nodes in errors."""
        return None

    def arguments_at(self, line: int) -> list[str]:
        """An empty list: a program of units has no lines."""
        return []


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class UnitProgram(ProgramOfUnits):
    """A compiled subgraph of several units, with a segment's interface: `function(step, *feeds)` returns the
    fetches, `copied_fetches` says which of them to copy, `source` is the generated code.

    `references`: the positions of fetches that units return as variables. `traced_device`: the device's name
    if its steps are traced.
    """

    graph: UnitGraph
    copied_fetches: tuple[bool, ...]
    references: tuple[int, ...]
    traced_device: str = ""

    @classmethod
    def compiled(
        cls,
        subgraph: Subgraph,
        environment: Environment,
        watched: bool = False,
        dynamic: bool = False,
        traced_device: str = "",
        move_of: Callable[[PlanNode], Move | None] | None = None,
    ) -> UnitProgram:
        """Cuts and compiles `subgraph`, see `cut`."""
        references = tuple(i for i, x in enumerate(subgraph.fetches) if x.dtype.is_ref)
        graph, copied_fetches = cut(subgraph, environment, watched, dynamic, traced_device, move_of)
        return cls(graph, tuple(copied_fetches), references, traced_device)

    @property
    def function(self) -> Callable[..., tuple[Any, ...]]:
        """The function that runs one step."""
        return self.run

    @property
    def source(self) -> str:
        """The units in order: segments as generated code, the others by name."""
        return "\n".join(
            f"# {unit!r}\n{unit.segment.source if unit.segment is not None else ''}"
            for unit in self.graph.units
        )

    def run(self, step: Step, *feeds: Any) -> tuple[Any, ...]:
        """Runs one step. Raises the error of the first unit that failed, or the error with which the step was
        cancelled."""
        results = self.begin(step).run(feeds)
        for i in self.references:
            results[i] = results[i].tensor
        return tuple(results)

    def begin(self, step: Step) -> UnitRun:
        """A run of the units, not yet started."""
        return UnitRun(Executor(self.graph), step)


class UnitRun:
    """One run of the units of `executor`'s program."""

    def __init__(self, executor: Executor, step: Step) -> None:
        self.step, self.executor = step, executor
        self.reports: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.started = 0
        self.error: BaseException | None = None

    def run(self, feeds: Sequence[Any]) -> list[Any]:
        """Runs all units; returns the fetches."""
        step, executor = self.step, self.executor
        ready, finish = executor.ready, executor.finish
        executor.start(feeds)
        try:
            while True:
                while ready and step.error is None:
                    unit, iteration, values = ready.popleft()
                    if values is None:
                        finish(unit, iteration, None)
                    elif unit.kind >= ASYNCHRONOUS:
                        self._begin(unit, iteration, values)
                    else:
                        try:
                            if unit.call is not None:
                                values = unit.call(step, *values)
                        except Exception as error:
                            self._fail(_explained(error, unit))
                        else:
                            finish(unit, iteration, values)
                if not self.started:
                    break
                values = None  # no value is kept while this thread waits
                self._take_report()
        except BaseException as error:  # an interrupt of the waiting thread
            step.cancel(error if isinstance(error, Exception) else None)
            raise
        failure = self.error or step.error
        if failure is not None:
            raise failure
        results = executor.results()
        for value in results:
            if value is DEAD:
                dead()
        return results

    def _begin(self, unit: Unit, iteration: Iteration, arguments: list[Any]) -> None:
        """Starts a unit that will report later, or sends."""
        try:
            if unit.kind == ASYNCHRONOUS:
                self._start(unit, iteration, arguments)
            elif unit.kind == RECEIVE:
                self.started += 1
                done = self._reporter(unit, iteration)
                self.step.rendezvous.receive((unit.way, iteration.path), done)
            else:
                self._send(unit, iteration, arguments[0])
        except Exception as error:
            self._fail(_explained(error, unit))

    def _start(self, unit: Unit, iteration: Iteration, arguments: list[Any]) -> None:
        arguments = prepared(unit, arguments)
        outputs = unit.at_once(*arguments) if unit.at_once is not None else None
        if outputs:
            self.executor.finish(unit, iteration, () if outputs is True else outputs)
            return
        self.started += 1
        try:
            unit.call(self.step, self._reporter(unit, iteration), *arguments)  # type: ignore[misc]
        except Exception:
            self.started -= 1
            raise

    def _send(self, unit: Unit, iteration: Iteration, value: Any) -> None:
        if value is not DEAD:
            (value,) = prepared(unit, [value])
            if unit.call is not None:
                value = unit.call(value)
        self.step.rendezvous.send((unit.way, iteration.path), value)
        self.executor.finish(unit, iteration, ())

    def _reporter(self, unit: Unit, iteration: Iteration) -> Callable[..., None]:
        reports = self.reports

        def done(outputs: Any, error: BaseException | None = None) -> None:
            reports.put((unit, iteration, outputs, error))

        return done

    def _take_report(self) -> None:
        deadline = self.step.deadline
        try:
            if deadline is None or self.error is not None:
                report = self.reports.get()
            else:
                report = self.reports.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            self._fail(deadline_error())
            return
        unit, iteration, outputs, error = report
        self.started -= 1
        if error is not None:
            self._fail(self.step.error or _explained(error, unit))
        elif self.error is None:
            if unit.kind == RECEIVE:
                outputs = self._received(unit, outputs)
            if self.error is None:
                self.executor.finish(unit, iteration, outputs)

    def _received(self, unit: Unit, outputs: Any) -> Any:
        """The received value, on this device; None if it was dead."""
        if outputs[0] is DEAD:
            return None
        try:
            return outputs if unit.call is None else (unit.call(outputs[0]),)
        except Exception as error:
            self._fail(_explained(error, unit))
            return None

    def _fail(self, error: BaseException) -> None:
        if self.error is None:
            self.error = error
            self.step.cancel(error)


def _explained(error: BaseException, unit: Unit) -> BaseException:
    if unit.segment is not None:
        return explain(error, unit.segment)
    return located(error, unit.node) if isinstance(error, Exception) and unit.node is not None else error
