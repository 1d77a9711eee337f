"""The executor: a state machine that decides which unit of a program may run next (white paper 3.1 and 4.4).

A *unit* is a segment, an asynchronous kernel, or one of the primitives of control flow. It becomes ready once
values for all its inputs have arrived, in the same iteration of the same frame. Branches that are not taken
give dead values. A unit that gets a dead value is dead in turn, up to a Merge. A dead Send tells the other
device; a ControlTrigger runs even if its inputs are dead. `Executor` takes events in (`start`, `finish`) and
gives instructions out (`ready`); it calls nothing, waits for nothing and knows no thread. Its driver
(`unit_program.py`) pops a ready unit with its arguments, runs it, and reports its outputs.

A value that arrives is passed to its consumers at once. The plan knows each consumer and the value's place
among its arguments (`UnitGraph.arrivals`). A unit that waits for nothing else is then ready. Any other unit
has a list of arguments in the iteration's `gathered`: a copy of its `blank`, whose last element counts the
arguments still to come. No value is kept longer than its consumers need it.

Frames follow the paper: Enter makes a frame's instance in an iteration of the parent's, NextIteration opens
the next iteration (at most `parallel_iterations` at once; later ones are deferred). An iteration ends when
nothing in it is outstanding and the one before it has ended; a frame ends with its last iteration. `validate`
checks these invariants, `story` lists what happened to a unit, if a log is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

DEAD: Any = type("Dead", (), {"__repr__": lambda self: "DEAD"})()

SEGMENT, SWITCH, MERGE, HEAD, ENTER, EXIT, NEXT, TRIGGER, ASYNCHRONOUS, SEND, RECEIVE = range(11)
KINDS = (
    "segment", "switch", "merge", "head", "enter", "exit", "next", "trigger", "asynchronous", "send",
    "receive",
)  # fmt: skip


class Unit:
    """One unit of a program; immutable once its graph is made.

    `inputs`: endpoints (numbers) of the values that it takes, in the order of its arguments; `fixed`:
    constant arguments by place; `waits_for`: endpoints of units that it only waits for; `outputs`: endpoints
    of its results; `done`: the endpoint that signals that it has run, or -1; `call`: the function to run, for
    units that do not pass on their arguments unchanged; `at_once`: of an asynchronous kernel, see
    `framework/declarations/kernel.py`; `buffers`, `copies`: arguments that are a variable, whose buffer the
    unit needs, and those that it keeps, so that they are copied; `frame`, `is_constant`,
    `parallel_iterations`: of an Enter; `way`: of a Send or Receive, the tensor's name and the two devices'.
    Its graph adds: `arrivals` of its outputs; `blank`, the list in which its arguments are gathered, with the
    number of arrivals to wait for as last element, or None if it waits only for its one argument; `if_dead`,
    its arguments if it is dead; `names_place`, whether a Merge's ``value_index`` has a consumer.
    """

    __slots__ = (
        "arrivals",
        "at_once",
        "blank",
        "buffers",
        "call",
        "copies",
        "done",
        "fixed",
        "frame",
        "if_dead",
        "inputs",
        "is_constant",
        "kind",
        "name",
        "names_place",
        "node",
        "outputs",
        "parallel_iterations",
        "segment",
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
        self.at_once: Callable[..., Any] | None = None
        self.node: Any = None
        self.segment: Any = None
        self.buffers: list[int] = []
        self.copies: list[int] = []
        self.frame, self.is_constant, self.parallel_iterations = "", False, 10
        self.way: tuple[str, str, str] = ("", "", "")
        self.arrivals: list[Arrival] = []
        self.blank: list[Any] | None = None
        self.if_dead: list[Any] | None = {SEND: [DEAD], TRIGGER: []}.get(kind)
        self.names_place = False

    def __repr__(self) -> str:
        return f"<{KINDS[self.kind]} {self.name}>"


Arrival = tuple[list[tuple[Unit, int, "list[Any] | None"]], list[tuple[Unit, int, Any]]]
"""Where an endpoint's values go: the units that take it, each with the place among its arguments (-1: it only
waits) and its `blank`; and the Merges, each with the place among its inputs and the arrival of the input that
it chooses."""


class UnitGraph:
    """The units of a program and the consumers of their outputs.

    `arrivals[endpoint]`: where its values go; `enters[frame]`: how many Enter units a frame has; `feeds`,
    `fetches`: endpoints, in order; `sources`: the units that wait for nothing; `sink`: takes the fetches, and
    never becomes ready.
    """

    def __init__(self, units: list[Unit], endpoints: int, feeds: list[int], fetches: list[int]) -> None:
        self.units, self.feeds, self.fetches = units, feeds, fetches
        self.arrivals: list[Arrival] = [([], []) for _ in range(endpoints)]
        self.enters: dict[str, int] = {}
        self.sink = Unit(SEGMENT, "fetches")
        self.sink.blank = [*[DEAD] * len(fetches), len(fetches) + 1]
        for place, endpoint in enumerate(fetches):
            self.arrivals[endpoint][0].append((self.sink, place, self.sink.blank))
        taken = {*fetches, *(e for unit in units for e in (*unit.inputs, *unit.waits_for))}
        for unit in units:
            unit.names_place = unit.kind in (MERGE, HEAD) and unit.outputs[1] in taken
            if unit.done not in taken:
                unit.done = -1
            self._connect(unit)
        for unit in units:
            told = [*unit.outputs, unit.done] if unit.done >= 0 else unit.outputs
            unit.arrivals = [self.arrivals[endpoint] for endpoint in told]
        self.sources = [unit for unit in units if unit.blank is not None and not unit.blank[-1]]

    def _connect(self, unit: Unit) -> None:
        """Adds the unit to the arrivals of everything that it waits for."""
        takes_one = unit.kind in (MERGE, HEAD)  # one of its inputs, whichever comes first
        fixed = dict(unit.fixed)
        size = 1 if takes_one else len(unit.inputs) + len(fixed)
        free = [0] * len(unit.inputs) if takes_one else [i for i in range(size) if i not in fixed]
        if size != 1 or fixed or unit.waits_for:
            pending = size - len(fixed) + len(unit.waits_for)
            unit.blank = [*(fixed.get(i) for i in range(size)), pending]
        for i, (endpoint, place) in enumerate(zip(unit.inputs, free)):
            consumers, merges = self.arrivals[endpoint]
            if unit.kind == MERGE or unit.names_place:
                merges.append((unit, i, ([(unit, 0, unit.blank)], [])))
            else:
                consumers.append((unit, place, unit.blank))
        for endpoint in unit.waits_for:
            self.arrivals[endpoint][0].append((unit, -1, unit.blank))
        if unit.kind == ENTER:
            self.enters[unit.frame] = self.enters.get(unit.frame, 0) + 1


class Iteration:
    """One iteration of one frame's instance: the arguments so far of units that wait for more; how many
    inputs may still decide a Merge; which units got a dead value; how many units and inner frames are
    running."""

    __slots__ = ("dead", "frame", "gathered", "number", "outstanding", "undecided")

    def __init__(self, frame: FrameInstance | None, number: int) -> None:
        self.frame, self.number = frame, number
        self.gathered: dict[Unit, list[Any]] = {}
        self.undecided: dict[Unit, int] = {}
        self.dead: set[Unit] = set()
        self.outstanding = 0

    @property
    def path(self) -> tuple[tuple[str, int], ...]:
        """The frames and iterations that it lies in, outermost first."""
        return () if self.frame is None else (*self.frame.parent.path, (self.frame.name, self.number))

    def __repr__(self) -> str:
        return "/".join(["step", *(f"{name}[{number}]" for name, number in self.path)])


class FrameInstance:
    """A running loop, entered from `parent`: its live iterations, its constants, its deferred values."""

    __slots__ = (
        "constants", "enters_left", "iterations", "left_by", "name", "newest", "parallel", "parent",
        "put_off", "unused",
    )  # fmt: skip

    def __init__(self, name: str, parent: Iteration, enters: int, parallel: int) -> None:
        self.name, self.parent, self.enters_left, self.parallel = name, parent, enters, parallel
        self.iterations: dict[int, Iteration] = {0: Iteration(self, 0)}
        self.newest = 0
        self.constants: list[tuple[Arrival, Any]] = []
        self.put_off: list[tuple[Arrival, Any]] = []
        self.unused: set[int] = set()  # endpoints of Exits that were dead so far
        self.left_by: set[int] = set()  # endpoints of Exits that were not


class Executor:
    """One step of a program; see the module. `ready`: units that may run, with their iterations and their
    arguments; None instead of these if the unit is dead and only has to be reported finished."""

    def __init__(self, graph: UnitGraph, log: list[tuple[str, str, str]] | None = None) -> None:
        self.graph, self.log = graph, log
        self.root = Iteration(None, 0)
        self.ready: deque[tuple[Unit, Iteration, list[Any] | None]] = deque()
        self._frames: dict[tuple[str, Iteration], FrameInstance] = {}

    # ---- events

    def start(self, feeds: Sequence[Any]) -> None:
        """Begins the step: the fed values have arrived."""
        graph, root = self.graph, self.root
        for unit in graph.sources:
            assert unit.blank is not None
            root.outstanding += 1
            self.ready.append((unit, root, unit.blank[:-1]))
        self._arrive(root, zip([graph.arrivals[endpoint] for endpoint in graph.feeds], feeds))

    def finish(self, unit: Unit, iteration: Iteration, outputs: Sequence[Any] | None) -> None:
        """A unit has run and given these outputs (None: it was dead)."""
        if self.log is not None:
            self.log.append((unit.name, str(iteration), "dead" if outputs is None else "finished"))
        if ENTER <= unit.kind <= NEXT:
            self._pass_on(unit, iteration, DEAD if outputs is None else outputs[0])
        elif outputs is None:
            self._arrive(iteration, [(arrival, DEAD) for arrival in unit.arrivals])
        else:
            self._arrive(iteration, zip(unit.arrivals, outputs))
            if unit.done >= 0:
                self._arrive(iteration, [(unit.arrivals[-1], None)])
        iteration.outstanding -= 1
        if not iteration.outstanding:
            self._end_if_over(iteration)

    def results(self) -> list[Any]:
        """The fetched values, once nothing is outstanding; DEAD for one of a branch that was not taken."""
        sink = self.graph.sink
        assert sink.blank is not None
        return self.root.gathered.get(sink, sink.blank)[:-1]

    # ---- arrivals

    def _arrive(self, iteration: Iteration, arrivals: Iterable[tuple[Arrival, Any]]) -> None:
        """Passes values to their consumers, and makes ready the units that have all inputs."""
        ready, gathered = self.ready, iteration.gathered
        for (consumers, merges), value in arrivals:
            for unit, place, blank in consumers:
                if blank is None:
                    arguments = unit.if_dead if value is DEAD else [value]
                else:
                    arguments = gathered.get(unit)
                    if arguments is None:
                        arguments = gathered[unit] = blank.copy()
                    if value is DEAD:
                        iteration.dead.add(unit)
                    elif place >= 0:
                        arguments[place] = value
                    arguments[-1] -= 1
                    if arguments[-1]:
                        continue
                    del gathered[unit], arguments[-1]
                    if unit in iteration.dead:
                        arguments = unit.if_dead
                iteration.outstanding += 1
                ready.append((unit, iteration, arguments))
            for unit, place, choice in merges:
                self._offer(iteration, unit, place, choice, value)

    def _offer(self, iteration: Iteration, unit: Unit, place: int, choice: Arrival, value: Any) -> None:
        """A Merge takes the first value that is alive, or a dead one if no other can come."""
        left = iteration.undecided.get(unit, len(unit.inputs) if unit.kind == MERGE else 1)
        if not left:
            return
        left = iteration.undecided[unit] = left - 1 if value is DEAD else 0
        if not left:
            if unit.names_place and value is not DEAD:
                value = (value, place)
            self._arrive(iteration, [(choice, value)])

    # ---- frames

    def _pass_on(self, unit: Unit, iteration: Iteration, value: Any) -> None:
        """Passes a value into, out of, or round a loop; a dead one begins no further iteration."""
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
        arrived = [(unit.arrivals[0], value)]
        if unit.is_constant:
            frame.constants += arrived
            for iteration in list(frame.iterations.values()):
                self._arrive(iteration, arrived)
        else:
            self._arrive(first, arrived)
        frame.enters_left -= 1
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
            self._arrive(frame.parent, [(unit.arrivals[0], value)])

    def _next(self, unit: Unit, iteration: Iteration, value: Any) -> None:
        frame = iteration.frame
        assert frame is not None
        arrived = [(unit.arrivals[0], value)]
        number = iteration.number + 1
        if number in frame.iterations:
            self._arrive(frame.iterations[number], arrived)
        elif number > frame.newest and len(frame.iterations) < frame.parallel:
            self._open_iteration(frame, arrived)
        else:
            frame.put_off += arrived

    def _open_iteration(self, frame: FrameInstance, values: list[tuple[Arrival, Any]]) -> None:
        frame.newest += 1
        iteration = frame.iterations[frame.newest] = Iteration(frame, frame.newest)
        self._arrive(iteration, [*frame.constants, *values])

    def _end_if_over(self, iteration: Iteration) -> None:
        """Ends an iteration in which nothing is running, then its frame if that was the last one."""
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
            unused = sorted(frame.unused - frame.left_by)
            self._arrive(parent, [(self.graph.arrivals[endpoint], DEAD) for endpoint in unused])
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
            for unit, arguments in iteration.gathered.items():
                assert arguments[-1] > 0, f"{unit} in {iteration} has all that it waits for"
        for unit, iteration, _ in self.ready:
            assert iteration in under_way, f"{unit} is ready in {iteration}, which has ended"
            assert unit not in iteration.gathered, f"{unit} is ready twice in {iteration}"

    def story(self, name: str) -> list[str]:
        """What happened to the unit of this name, in order; needs a log."""
        return [f"{where}: {event}" for unit, where, event in self.log or () if unit == name]
