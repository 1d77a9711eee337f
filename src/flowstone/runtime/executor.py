"""The executor: which unit of a program may run next (white paper 3.1 and 4.4), as a state machine.

A *unit* is a segment, an asynchronous kernel, or one of the primitives of control flow. It becomes ready once
values for all its inputs have arrived, in the same iteration of the same frame. Dead values, of branches that
are not taken, make every unit that gets one dead in turn, up to a Merge; a Send tells the other device, and a
ControlTrigger runs all the same.
`Executor` takes events in (`start`, `finish`) and gives instructions out (`ready`); it calls nothing, waits
for nothing and knows no thread. Who drives it (`unit_program.py`) pops a ready unit, runs it, and reports
what came out.

Frames follow the paper: Enter makes a frame's instance in an iteration of the parent's, NextIteration opens
the next iteration (no more than `parallel_iterations` at once; more are put off), an iteration ends when
nothing in it is outstanding and the one before it has ended, and a frame with its last iteration. `validate`
checks these invariants, `story` tells what happened to a unit, if a log is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

DEAD: Any = type("Dead", (), {"__repr__": lambda self: "DEAD"})()

SEGMENT, ASYNCHRONOUS, SWITCH, MERGE, HEAD, ENTER, EXIT, NEXT, SEND, RECEIVE, TRIGGER = range(11)
KINDS = (
    "segment", "asynchronous", "switch", "merge", "head", "enter", "exit", "next", "send", "receive",
    "trigger",
)  # fmt: skip


class Unit:
    """One unit of a program; immutable.

    `inputs`: endpoints (numbers) of the values that it takes, in the order of its arguments; `fixed`:
    constant arguments by place; `waits_for`: endpoints of units that it only waits for; `outputs`: endpoints
    of its results; `done`: the endpoint that says that it has run; `buffers`, `copies`: arguments that are a
    variable, of which the unit wants the buffer, and those that it keeps, and must have for itself; `frame`,
    `is_constant`, `parallel_iterations`: of an Enter; `way`: of a Send or Receive, the tensor's name and the
    two devices'. Its graph adds `pending`, how many endpoints it waits for, and `takes_all`: nobody else uses
    its inputs, and no argument is fixed.
    """

    __slots__ = (
        "buffers",
        "call",
        "copies",
        "done",
        "fixed",
        "frame",
        "inputs",
        "is_constant",
        "kind",
        "name",
        "node",
        "outputs",
        "parallel_iterations",
        "pending",
        "segment",
        "takes_all",
        "waits_for",
        "way",
    )

    def __init__(self, kind: int, name: str) -> None:
        self.kind, self.name = kind, name
        self.inputs: list[int] = []
        self.fixed: list[tuple[int, Any]] = []
        self.waits_for: list[int] = []
        self.outputs: list[int] = []
        self.done = -1
        self.call: Callable[..., Any] | None = None
        self.node: Any = None
        self.segment: Any = None
        self.buffers: list[int] = []
        self.copies: list[int] = []
        self.frame, self.is_constant, self.parallel_iterations = "", False, 10
        self.way: tuple[str, str, str] = ("", "", "")
        self.pending, self.takes_all = 0, False

    def __repr__(self) -> str:
        return f"<{KINDS[self.kind]} {self.name}>"


class UnitGraph:
    """The units of a program and who takes what.

    `takers[endpoint]`: units that wait for it, but for Merges, which are in `merges[endpoint]`;
    `uses[endpoint]`: how often it is an argument or fetched; `enters[frame]`: how many Enter units a frame
    has; `feeds`, `fetches`: endpoints, in order; `sources`: the units that wait for nothing;
    `arrivals[endpoint]`: whether it is used, its takers and its Merges.
    """

    def __init__(self, units: list[Unit], endpoints: int, feeds: list[int], fetches: list[int]) -> None:
        self.units, self.feeds, self.fetches = units, feeds, fetches
        self.takers: list[list[Unit]] = [[] for _ in range(endpoints)]
        self.merges: list[list[Unit]] = [[] for _ in range(endpoints)]
        self.uses = [0] * endpoints
        self.enters: dict[str, int] = {}
        for unit in units:
            awaited = dict.fromkeys([*unit.inputs, *unit.waits_for])
            unit.pending = len(awaited)
            waiting = self.merges if unit.kind in (MERGE, HEAD) else self.takers
            for endpoint in awaited:
                waiting[endpoint].append(unit)
            for endpoint in unit.inputs if unit.kind not in (MERGE, HEAD) else ():
                self.uses[endpoint] += 1
            if unit.kind == ENTER:
                self.enters[unit.frame] = self.enters.get(unit.frame, 0) + 1
        for endpoint in fetches:
            self.uses[endpoint] += 1
        for unit in units:
            unit.takes_all = not unit.fixed and all(self.uses[endpoint] == 1 for endpoint in unit.inputs)
            unit.takes_all &= unit.kind not in (MERGE, HEAD)
            if unit.done >= 0 and not self.takers[unit.done] and not self.merges[unit.done]:
                unit.done = -1
        self.arrivals = list(zip(map(bool, self.uses), self.takers, self.merges))
        self.sources = [unit for unit in units if not unit.pending]


class Iteration:
    """One iteration of one frame's instance: values by endpoint, how much each unit still waits for, which
    units got a dead value, how many units and inner frames are under way."""

    __slots__ = ("dead", "frame", "left", "merges", "number", "outstanding", "values", "waiting")

    def __init__(self, frame: FrameInstance | None, number: int) -> None:
        self.frame, self.number = frame, number
        self.values: dict[int, Any] = {}
        self.left: dict[int, int] = {}
        self.waiting: dict[Unit, int] = {}
        self.merges: dict[Unit, _Merging] = {}
        self.dead: set[Unit] = set()
        self.outstanding = 0

    @property
    def path(self) -> tuple[tuple[str, int], ...]:
        """The frames and iterations that it lies in, outermost first."""
        return () if self.frame is None else (*self.frame.parent.path, (self.frame.name, self.number))

    def __repr__(self) -> str:
        return "/".join(["step", *(f"{name}[{number}]" for name, number in self.path)])


class FrameInstance:
    """A loop that is running, entered from `parent`: its live iterations, its constants, what is put off."""

    __slots__ = (
        "constants", "enters_left", "iterations", "left_by", "name", "newest", "parallel", "parent",
        "put_off", "unused",
    )  # fmt: skip

    def __init__(self, name: str, parent: Iteration, enters: int, parallel: int) -> None:
        self.name, self.parent, self.enters_left, self.parallel = name, parent, enters, parallel
        self.iterations: dict[int, Iteration] = {0: Iteration(self, 0)}
        self.newest = 0
        self.constants: list[tuple[int, Any]] = []
        self.put_off: list[tuple[int, Any]] = []
        self.unused: set[int] = set()  # endpoints of Exits that were dead so far
        self.left_by: set[int] = set()  # endpoints of Exits that were not


class _Merging:
    __slots__ = ("chosen", "controls", "data", "fired")

    def __init__(self, unit: Unit) -> None:
        self.data = 1 if unit.kind == HEAD else len(unit.inputs)
        self.controls = len(unit.waits_for)
        self.chosen: tuple[Any, int] | None = None
        self.fired = False


class Executor:
    """One step of a program; see the module. `ready`: units that may run, with their iterations."""

    def __init__(self, graph: UnitGraph, log: list[tuple[str, str, str]] | None = None) -> None:
        self.graph, self.log = graph, log
        self.root = Iteration(None, 0)
        self.ready: deque[tuple[Unit, Iteration]] = deque()
        self._frames: dict[tuple[str, Iteration], FrameInstance] = {}

    # ---- events

    def start(self, feeds: Sequence[Any]) -> None:
        """Begins the step: the fed values have arrived."""
        root = self.root
        root.outstanding = 1
        for unit in self.graph.sources:
            self._make_ready(unit, root)
        for endpoint, value in zip(self.graph.feeds, feeds):
            self._arrive(root, endpoint, value)
        root.outstanding -= 1

    def arguments(self, unit: Unit, iteration: Iteration) -> list[Any] | None:
        """The values that a ready unit takes; None if it is dead, and only to be reported finished."""
        if unit.takes_all and not (iteration.dead and unit in iteration.dead):
            return list(map(iteration.values.pop, unit.inputs))
        if unit.kind in (MERGE, HEAD):
            merging = iteration.merges[unit]
            return None if merging.chosen is None or unit in iteration.dead else list(merging.chosen)
        dead = unit in iteration.dead
        values, left, uses = iteration.values, iteration.left, self.graph.uses
        taken = []
        for endpoint in unit.inputs:
            taken.append(values[endpoint])
            rest = left.get(endpoint, uses[endpoint]) - 1
            left[endpoint] = rest
            if not rest:
                del values[endpoint]
        if dead and unit.kind != TRIGGER:
            return [DEAD] if unit.kind == SEND else None
        for place, value in unit.fixed:
            taken.insert(place, value)
        return taken

    def finish(self, unit: Unit, iteration: Iteration, outputs: Sequence[Any] | None) -> None:
        """A unit has run and given these outputs (None: it was dead)."""
        if self.log is not None:
            self.log.append((unit.name, str(iteration), "dead" if outputs is None else "finished"))
        kind = unit.kind
        if ENTER <= kind <= NEXT:
            self._pass_on(unit, iteration, DEAD if outputs is None else outputs[0])
        elif outputs is None or (kind == RECEIVE and outputs[0] is DEAD):
            for endpoint in unit.outputs:
                self._arrive(iteration, endpoint, DEAD)
            if unit.done >= 0:
                self._arrive(iteration, unit.done, DEAD)
        else:
            for endpoint, value in zip(unit.outputs, outputs):
                self._arrive(iteration, endpoint, value)
            if unit.done >= 0:
                self._arrive(iteration, unit.done, None)
        iteration.outstanding -= 1
        if not iteration.outstanding:
            self._end_if_over(iteration)

    def results(self) -> list[Any]:
        """The fetched values, once nothing is outstanding; DEAD for one of a branch that was not taken."""
        return [self.root.values.get(endpoint, DEAD) for endpoint in self.graph.fetches]

    # ---- arrivals

    def _make_ready(self, unit: Unit, iteration: Iteration) -> None:
        iteration.outstanding += 1
        self.ready.append((unit, iteration))

    def _arrive(self, iteration: Iteration, endpoint: int, value: Any) -> None:
        is_used, takers, merges = self.graph.arrivals[endpoint]
        if is_used:
            iteration.values[endpoint] = value
        if value is DEAD:
            iteration.dead.update(takers)
        for unit in takers:
            if unit.pending > 1:
                waiting = iteration.waiting
                waiting[unit] = rest = waiting.get(unit, unit.pending) - 1
                if rest:
                    continue
            iteration.outstanding += 1
            self.ready.append((unit, iteration))
        for unit in merges:
            self._arrive_at_merge(unit, iteration, endpoint, value)

    def _arrive_at_merge(self, unit: Unit, iteration: Iteration, endpoint: int, value: Any) -> None:
        merging = iteration.merges.get(unit)
        if merging is None:
            merging = iteration.merges[unit] = _Merging(unit)
        if endpoint in unit.waits_for:
            merging.controls -= 1
            if value is DEAD:
                iteration.dead.add(unit)
        else:
            inputs = unit.inputs
            merging.data -= inputs.count(endpoint) if unit.kind == MERGE else 1
            if value is not DEAD and merging.chosen is None:
                merging.chosen = (value, inputs.index(endpoint))
        decided = merging.chosen is not None or not merging.data
        if decided and not merging.controls and not merging.fired:
            merging.fired = True
            self._make_ready(unit, iteration)

    # ---- frames

    def _pass_on(self, unit: Unit, iteration: Iteration, value: Any) -> None:
        """The value goes into, out of, or round a loop; a dead one begins no further iteration."""
        if unit.kind == ENTER:
            self._enter(unit, iteration, value)
        elif unit.kind == EXIT:
            self._exit(unit, iteration, value)
        elif value is not DEAD:
            self._next(unit, iteration, value)

    def _enter(self, unit: Unit, parent: Iteration, value: Any) -> None:
        key = (unit.frame, parent)
        frame = self._frames.get(key)
        if frame is None:
            enters = self.graph.enters[unit.frame]
            frame = self._frames[key] = FrameInstance(unit.frame, parent, enters, unit.parallel_iterations)
            parent.outstanding += 1
        first = frame.iterations[0]
        first.outstanding += 1  # so that it does not end while values are arriving
        (endpoint,) = unit.outputs
        if unit.is_constant:
            frame.constants.append((endpoint, value))
            for iteration in list(frame.iterations.values()):
                self._arrive(iteration, endpoint, value)
        else:
            self._arrive(first, endpoint, value)
        frame.enters_left -= 1
        first.outstanding -= 1
        if not first.outstanding:
            self._end_if_over(first)

    def _exit(self, unit: Unit, iteration: Iteration, value: Any) -> None:
        frame = iteration.frame
        assert frame is not None
        (endpoint,) = unit.outputs
        if value is DEAD:
            frame.unused.add(endpoint)
        else:
            frame.left_by.add(endpoint)
            self._arrive(frame.parent, endpoint, value)

    def _next(self, unit: Unit, iteration: Iteration, value: Any) -> None:
        frame = iteration.frame
        assert frame is not None
        (endpoint,) = unit.outputs
        number = iteration.number + 1
        if number in frame.iterations:
            self._arrive(frame.iterations[number], endpoint, value)
        elif number > frame.newest and len(frame.iterations) < frame.parallel:
            self._open_iteration(frame, [(endpoint, value)])
        else:
            frame.put_off.append((endpoint, value))

    def _open_iteration(self, frame: FrameInstance, values: list[tuple[int, Any]]) -> None:
        frame.newest += 1
        iteration = frame.iterations[frame.newest] = Iteration(frame, frame.newest)
        iteration.outstanding = 1
        for endpoint, value in [*frame.constants, *values]:
            self._arrive(iteration, endpoint, value)
        iteration.outstanding -= 1

    def _end_if_over(self, iteration: Iteration) -> None:
        """Ends an iteration in which nothing is under way, then its frame if that was the last."""
        frame = iteration.frame
        if frame is None:
            return
        while True:
            number = iteration.number
            if iteration.outstanding or number - 1 in frame.iterations or (number == 0 and frame.enters_left):
                return
            del frame.iterations[number]
            if frame.put_off:
                values, frame.put_off = frame.put_off, []
                self._open_iteration(frame, values)
            following = frame.iterations.get(number + 1)
            if following is None:
                break
            iteration = following
        if not frame.iterations:
            parent = frame.parent
            del self._frames[frame.name, parent]
            for endpoint in sorted(frame.unused - frame.left_by):
                self._arrive(parent, endpoint, DEAD)
            parent.outstanding -= 1
            if not parent.outstanding:
                self._end_if_over(parent)

    # ---- questions

    def validate(self) -> None:
        """Raises AssertionError if the state contradicts itself."""
        for (name, parent), frame in self._frames.items():
            assert frame.name == name and frame.parent is parent and frame.iterations, f"{name} is empty"
            assert len(frame.iterations) <= max(frame.parallel, 1), f"{name}: too many iterations"
            assert max(frame.iterations) == frame.newest or not frame.iterations
            assert parent.outstanding > 0, f"{parent} has ended before {name}"
        under_way = [self.root, *(i for f in self._frames.values() for i in f.iterations.values())]
        for iteration in under_way:
            assert iteration.outstanding >= 0
        for unit, iteration in self.ready:
            assert iteration in under_way, f"{unit} is ready in {iteration}, which has ended"

    def story(self, name: str) -> list[str]:
        """What happened to the unit of this name, in order; needs a log."""
        return [f"{where}: {event}" for unit, where, event in self.log or () if unit == name]
