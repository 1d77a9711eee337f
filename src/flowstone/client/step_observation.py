"""Observes the steps that a program runs: counts and times them, and traces a few of each kind.

    observer = StepObserver(steps=5)
    with observer.watching():
        ...                                     # any sessions of any thread
    for kind in observer.kinds():               # the most expensive first
        print(explanation_text(kind.explanation()))

A *kind* is the steps of one session with the same fetches, feeds and, where the graph leaves them open,
shapes of feeds. Its first step is traced, in case it runs only once. After a warm-up, steps are traced at
growing distances, and only the last few traces count: the first steps are not typical, and a moment in which
the machine was busy does not spoil all traces. The other steps run untraced, and are timed. The observer runs
no steps of its own. Steps that the program itself traces or limits (RunOptions), partial runs and the steps
of queue runners are not observed. The observer keeps the planners of the sessions that it has seen.
"""

from __future__ import annotations

import contextlib
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from torch import get_num_threads

from flowstone.client.feeds_fetches import FetchStructure
from flowstone.client.planning import Planner
from flowstone.client.steps import Steps
from flowstone.framework.declarations.kernel import CPU, GPU
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import format_dims
from flowstone.runtime.code.tracing import Trace
from flowstone.runtime.execution.partitioned_program import PartitionedProgram
from flowstone.runtime.explaining.explanation import Explanation
from flowstone.runtime.explaining.floors import Floors, measured_floors
from flowstone.runtime.explaining.step_profile import profile
from flowstone.runtime.plans.plan import Plan
from flowstone.runtime.process.device import Device

WARM_UP = 3  # untraced steps after the first
_DISTANCE = 2  # steps from one trace to the next, at least; also a quarter of all steps so far

Shapes = tuple[tuple[int, ...], ...] | None
TracedStep = Callable[..., tuple[Any, Plan, Trace]]


class StepKind:
    """The steps of one kind: `fetches` and `feeds` by name, `runs`, and what was measured of them. The last
    `steps` traces count; with `spread`, their distances grow. `durations_ms` are those of untraced steps
    without the first, which includes planning. `explain` makes an explanation of the kind and its traces.
    """

    def __init__(
        self,
        fetches: Sequence[str],
        feeds: Sequence[str],
        explain: Callable[[StepKind, list[Any]], Any],
        steps: int,
        spread: bool,
    ) -> None:
        self.fetches, self.feeds, self._explain = tuple(fetches), tuple(feeds), explain
        self.runs = 0
        self.durations_ms = array("d")
        self._first: list[tuple[Any, ...]] = []
        self._later: deque[tuple[Any, ...]] = deque(maxlen=steps)
        self._next_traced, self._spread = 1 + WARM_UP, spread
        self._has_planned = False
        self._lock = threading.Lock()

    def run(self, values: Sequence[Any], plain: Callable[..., Any], traced: TracedStep) -> Any:
        """Runs a step, with a trace if one is due."""
        with self._lock:
            number = self.runs
            self.runs += 1
            is_next = number == self._next_traced
            if is_next:
                self._next_traced += max(_DISTANCE, number // 4) if self._spread else _DISTANCE
        if is_next or not number:
            result, *found = traced(*values)
            (self._later if number else self._first).append(tuple(found))
            return result
        start = time.perf_counter_ns()
        result = plain(*values)
        length = time.perf_counter_ns() - start
        with self._lock:
            if self._has_planned:
                self.durations_ms.append(length / 1e6)
            self._has_planned = True
        return result

    @property
    def total_ms(self) -> float:
        """The time of all its steps, without planning; steps that were not timed count as the median."""
        known = list(self.durations_ms) or [each[-1].duration_ms for each in self._later or self._first]
        usual = float(np.median(known or [0.0]))
        return sum(self.durations_ms) + (self.runs - len(self.durations_ms)) * usual

    @property
    def is_cold(self) -> bool:
        """Whether only its first step was traced."""
        return not self._later

    def explanation(self) -> Any:
        """The explanation of its steps: an `Explanation`, or a `ClusterExplanation` of steps on servers.
        Measures the machine if no earlier explanation has."""
        return self._explain(self, list(self._later or self._first))


def _explained(
    kind: StepKind,
    traces: Sequence[tuple[Plan, Trace]],
    plan: Plan,
    devices: Sequence[Device],
    intra_op_threads: int,
) -> Explanation:
    """The explanation of steps that run in this process."""
    measured = None
    if traces:
        machines = _machines(plan, devices, intra_op_threads or get_num_threads())
        traced_plan = traces[-1][0]
        of_this_plan = [trace for other, trace in traces if other is traced_plan]
        measured = profile(traced_plan, of_this_plan, machines, kind.durations_ms)
    return Explanation(kind.fetches, kind.feeds, kind.runs, kind.total_ms, kind.is_cold, plan, measured)


def _machines(plan: Plan, devices: Sequence[Device], intra_op_threads: int) -> dict[str, Floors]:
    """The models of the devices that the plan uses, with the threads that its step has on them."""
    used = [device for device in devices if device.name in plan.parts]
    count = 1 if plan.one_thread else intra_op_threads
    if isinstance(plan.program, PartitionedProgram):
        count = max(1, count // max(1, sum(device.device_type == CPU for device in used)))
    kinds = {CPU: ("cpu", count), GPU: ("cuda", 1)}
    return {d.name: measured_floors(*kinds[d.device_type]) for d in used if d.device_type in kinds}


class StepObserver:
    """Observes steps; `steps` and `spread` say which traces of a kind count (see `StepKind`)."""

    def __init__(self, steps: int, spread: bool = True) -> None:
        self._steps, self._spread = steps, spread
        self._kinds: dict[Any, StepKind] = {}
        self._lock = threading.Lock()

    def kinds(self) -> list[StepKind]:
        """The kinds that were observed, by the total time of their steps, longest first."""
        return sorted(self._kinds.values(), key=lambda kind: -kind.total_ms)

    def runner(
        self,
        planner: Planner,
        steps: Steps,
        structure: FetchStructure,
        feeds: Sequence[Tensor],
        by_shape: bool,
        plain: Callable[..., Any],
        traced: TracedStep,
    ) -> Callable[..., Any]:
        """Wraps `plain`, a function of the feeds' values that runs a step, so that its steps are observed.
        `traced` runs a step with a trace and returns its result, plan and finished trace. `by_shape`: each
        combination of the feeds' shapes is a kind of its own.
        """

        def plan(shapes: Shapes) -> Plan:
            try:
                return planner.plan(structure, feeds, shapes)
            except ValueError:  # the graph contradicts these shapes: the step ran the plan for all shapes
                return planner.plan(structure, feeds)

        def explain(kind: StepKind, traces: list[Any], shapes: Shapes) -> Explanation:
            return _explained(kind, traces, plan(shapes), planner.options.devices, steps.intra_op_threads)

        return self.any_runner(planner, structure, feeds, by_shape, plain, traced, explain)

    def any_runner(
        self,
        session: Any,
        structure: FetchStructure,
        feeds: Sequence[Tensor],
        by_shape: bool,
        plain: Callable[..., Any],
        traced: Callable[..., Any],
        explain: Callable[[StepKind, list[Any], Shapes], Any],
    ) -> Callable[..., Any]:
        """The same for steps that run anywhere. `session`: what tells sessions apart; `traced` returns the
        result, and what a trace is to `explain`, which explains a kind with these shapes of feeds."""
        elements = (session, tuple(structure.elements), tuple(structure.targets), tuple(feeds))

        def run(*values: Any) -> Any:
            shapes = tuple([np.shape(value) for value in values]) if by_shape else None
            kind = self._kinds.get((elements, shapes))
            if kind is None:
                kind = self._new_kind(structure, feeds, explain, elements, shapes)
            return kind.run(values, plain, traced)

        return run

    def _new_kind(
        self,
        structure: FetchStructure,
        feeds: Sequence[Tensor],
        explain: Callable[[StepKind, list[Any], Shapes], Any],
        elements: Any,
        shapes: Shapes,
    ) -> StepKind:
        names = [_name(item) for item in (*structure.elements, *structure.targets)]
        known = shapes or [tensor.dims for tensor in feeds]
        fed = [_name(x) + format_dims(dims).replace(" ", "") for x, dims in zip(feeds, known)]
        with self._lock:
            kind = StepKind(
                names,
                fed,
                lambda kind, traces: explain(kind, traces, shapes),
                self._steps,
                self._spread,
            )
            return self._kinds.setdefault((elements, shapes), kind)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Within the context, observes the steps of all sessions of the process that are first run in it."""
        global _observer
        before, _observer = _observer, self
        try:
            yield
        finally:
            _observer = before


def _name(item: Any) -> str:
    name: str = item.name
    return name.removesuffix(":0")


_observer: StepObserver | None = None


def current_observer() -> StepObserver | None:
    """The observer of this process's steps, if any."""
    return _observer
