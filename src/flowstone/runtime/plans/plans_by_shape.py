"""Plans by shape: chooses the plan of a step by the shapes of its feeds.

All runners of the same fetches and feeds share one `PlansByShape`. It holds *special* plans, each for one
combination of shapes, and *wide* ones for all others:

===================================  =======================================================================
shapes that come                     their step has
===================================  =======================================================================
as the first `AT_ONCE`               a special plan, made at once
for which there is a special plan    that
anew                                 the wide plan; it leaves open the sizes that have differed so far, and is
                                     made anew, wider, when another differs (`MOST_WIDENINGS` times)
again                                the wide plan, until its steps have lost what a special plan costs
                                     (`planning_costs.py`), or these have come as often as there are shapes;
                                     then one is made in the background, with its machine code, unless
                                     another is being made
after that                           the wide plan for as many steps, of whatever shapes, as making the
                                     special one takes; then that, which is waited for: no step's plan
                                     depends on time
such that the plan is impossible     the plan for all shapes, whose step says which node contradicts
===================================  =======================================================================

Sizes of 0 and 1 are not like the others: they broadcast, and leave nothing to do. So the first `MOST_WIDE`
patterns of where shapes have them (a batch of one, say) have a wide plan each, in which these sizes are known
and all others at least 2. One more plan serves all other patterns; nothing is known in it of a size that has
been 0 or 1.

There are at most `MOST_PLANS` special plans, which hold at most `MOST_BYTES`; the least recently used one is
dropped. If more shapes than that keep coming, planning for one after the other would gain nothing. So shapes
displace a plan only if as many steps as would pay for theirs have had them since that plan was last used.

Values that are sizes count as shapes (`fed_sizes.py`). Where they alone have differed `MOST_VALUES` times,
plans hold for all values: such a number may be another in every step.

Choosing is one look-up in a dictionary, without a lock. Everything else takes a lock. So does planning at
once, so that threads whose first steps have the same shapes plan only once.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from flowstone.framework import errors
from flowstone.framework.process.logging import warning
from flowstone.framework.types.shape import Dims, is_compatible, num_elements
from flowstone.runtime.code.planning_costs import LEAST_USES, PlanCosts
from flowstone.runtime.plans.common_shapes import Hull, Shapes, growth, is_within, small_sizes

AT_ONCE = 2  # a program's only shape, or full batches and the last one
MOST_WIDENINGS = 3  # of each wide plan
MOST_WIDE = 4  # wide plans with known sizes of 0 and 1
MOST_PLANS = 64
MOST_BYTES = 256 << 20
MOST_VALUES = 8  # of fed sizes, beside the first with the same shapes
_MOST_MET = 1024  # shapes without a plan that are remembered
_MOST_RUNNERS = 8  # functions of one plan that are remembered, by the form of their results


class Holding(Protocol):
    """A plan of any kind."""

    def held_bytes(self) -> int:
        """About how much memory it takes."""

    def costs(self) -> PlanCosts:
        """What it takes to make, and its steps."""

    def growth_on_one_thread(self) -> float:
        """How many times as much its steps may do until they gain from a team of threads; 0: they do."""


P = TypeVar("P", bound=Holding)


class PlanForShapes(Generic[P]):
    """A plan, and the shapes that it is for, in part or all known (None: for all that the graph allows).

    `runners`: functions that run it, by the form of their results. `used`: when, as a number that grows.
    `costs`: the plan's, once somebody has asked for them.
    """

    __slots__ = ("bytes", "costs", "plan", "runners", "shapes", "used")

    def __init__(self, plan: P, shapes: Shapes | None, used: int) -> None:
        self.plan, self.shapes, self.used, self.bytes = plan, shapes, used, plan.held_bytes()
        self.runners: dict[Any, Callable[..., Any]] = {}
        self.costs: PlanCosts | None = None

    def covers(self, shapes: Shapes) -> bool:
        """Whether the plan holds for these shapes."""
        return self.shapes is None or is_within(shapes, self.shapes)

    def runner(self, structure: Any, make: Callable[[PlanForShapes[P]], Callable[..., Any]]) -> Any:
        """The function that returns results in this structure, made on first use."""
        found = self.runners.get(structure)
        if found is None:
            if len(self.runners) == _MOST_RUNNERS:
                self.runners = {}
            found = self.runners[structure] = make(self)
        return found


class _Wide(Generic[P]):
    """A wide `plan`, None before it is made, and how often it was made (`widenings`)."""

    __slots__ = ("plan", "widenings")

    def __init__(self) -> None:
        self.plan: PlanForShapes[P] | None = None
        self.widenings = 0


class _Met:
    """`uses`: how many steps have had some shapes since the step number `since`."""

    __slots__ = ("since", "uses")

    def __init__(self, number: int) -> None:
        self.since, self.uses = number, 1


class _Task(Generic[P]):
    """The planning for `shapes` that came again as number `used`, for steps from the number `due` on: done by
    who calls `run` first, or else asks for the `plan`, which is None if the graph contradicts the shapes."""

    def __init__(self, make: Callable[[], P | None], shapes: Shapes, used: int, due: int) -> None:
        self._make, self._lock = make, threading.Lock()
        self.shapes, self.used, self.due = shapes, used, due
        self._is_done = False
        self._plan: P | None = None

    def run(self) -> None:
        with self._lock:
            if not self._is_done:
                self._plan, self._is_done = self._make(), True

    def plan(self) -> P | None:
        self.run()
        return self._plan


class PlansByShape(Generic[P]):
    """The plans of one set of fetches and feeds.

    `plan(shapes, code_first)` makes one (None: for all shapes; ValueError if the graph contradicts these);
    `code_first`: see `PlanOptions`. `forget` is called with plans that are dropped, `submit` has a task run
    in the background. `open_dims`: the feeds' static shapes. `values`: how many fed values, after them, are
    sizes; once it no longer `looks_at_values`, these are to be None.
    """

    def __init__(
        self,
        plan: Callable[[Shapes | None, bool], P],
        forget: Callable[[PlanForShapes[P]], None],
        submit: Callable[[Callable[[], None]], None],
        open_dims: Sequence[Dims],
        values: int = 0,
    ) -> None:
        self._plan, self._forget, self._submit = plan, forget, submit
        self._open_dims: Shapes = (*open_dims, *[None] * values)
        self._feeds, self.looks_at_values = len(open_dims), values > 0
        self._values: dict[Shapes, set[Shapes]] = {}  # which came with the same shapes
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._special: dict[Shapes, PlanForShapes[P]] = {}
        self._wide: dict[Shapes | None, _Wide[P]] = {}  # by the sizes of 0 and 1; None: for all others
        self._for_all: PlanForShapes[P] | None = None
        self._hull = Hull()
        self._planned_at_once = 0
        self._model: tuple[PlanCosts, int] | None = None  # a special plan's, and how much that is fed
        self._at_once: list[tuple[P, Shapes]] = []  # until there is a wide plan
        self._growths: list[tuple[float, Shapes]] = []  # on one thread, of these plans
        self._met: dict[Shapes, _Met] = {}  # shapes without a plan, the least recent first
        self._pending: _Task[P] | None = None
        self._impossible: dict[Shapes, None] = {}
        self._has_failed = False

    def choose(self, shapes: Shapes) -> PlanForShapes[P]:
        """The plan of a step with these shapes."""
        found = self._special.get(shapes)
        if found is None:
            return self._chosen_anew(shapes)
        found.used = next(self._numbers)
        return found

    def for_all(self) -> PlanForShapes[P]:
        """The plan for all shapes that the graph allows."""
        with self._lock:
            return self._made_for_all()

    def last(self) -> PlanForShapes[P]:
        """The special plan that was used last; without one, the plan for all shapes."""
        with self._lock:
            if self._special:
                return max(self._special.values(), key=lambda each: each.used)
            return self._made_for_all()

    def is_special(self, shapes: Shapes) -> bool:
        """Whether there is a special plan for these, or will be for the next step that has them."""
        return shapes in self._special or (self._pending is not None and self._pending.shapes == shapes)

    def wants_one_thread(self, shapes: Shapes) -> bool:
        """Whether a step with these shapes, of whose sizes its plan knows too little to say so, wants one
        thread: steps of one of the first special plans would, if they did as much more as there is to do."""
        return any([growth(shapes, known) <= most for most, known in self._growths])

    # ---- what follows is called with the lock held

    def _chosen_anew(self, shapes: Shapes) -> PlanForShapes[P]:
        with self._lock:
            found = self._special.get(shapes)
            if found is not None:
                return found
            if shapes in self._impossible or not all(map(is_compatible, shapes, self._open_dims)):
                return self._made_for_all()
            if self.looks_at_values:
                self._note_values(shapes)
            if self._planned_at_once < AT_ONCE:
                self._hull.add(shapes, is_small_known=True)
                return self._made_at_once(shapes)
            number, pending = next(self._numbers), self._pending
            if pending is not None and number >= pending.due:
                self._take(pending)
                if shapes in self._impossible:
                    return self._made_for_all()
                if shapes in self._special:
                    self._hull.add(shapes, is_small_known=True)
                    self._special[shapes].used = number
                    return self._special[shapes]
            wide = self._made_wide(shapes)
            if self._is_wanted(shapes, wide, number) and self._pending is None:
                due = number + self._steps_meanwhile(shapes, wide)
                self._pending = _Task(lambda: self._make_later(shapes), shapes, number, due)
                self._submit(self._pending.run)
            return wide

    def _note_values(self, shapes: Shapes) -> None:
        if len(self._values) > _MOST_MET:
            del self._values[next(iter(self._values))]
        self._values.setdefault(shapes[: self._feeds], set()).add(shapes[self._feeds :])
        if sum([len(met) - 1 for met in self._values.values()]) > MOST_VALUES:
            self.looks_at_values, self._values = False, {}

    def _made_at_once(self, shapes: Shapes) -> PlanForShapes[P]:
        try:
            plan = self._plan(shapes, False)
        except ValueError:
            self._note_impossible(shapes)
            return self._made_for_all()
        self._planned_at_once += 1
        costs = plan.costs()
        costs = costs if self._model is None else costs.after(self._model[0])
        self._model = costs, _fed_elements(shapes[: self._feeds])
        self._at_once.append((plan, shapes[: self._feeds]))
        return self._added(plan, shapes, next(self._numbers))

    def _made_wide(self, shapes: Shapes) -> PlanForShapes[P]:
        self._growths += [(plan.growth_on_one_thread(), known) for plan, known in self._at_once]
        self._at_once = []
        pattern: Shapes | None = small_sizes(shapes)
        if pattern not in self._wide and len(self._wide) >= MOST_WIDE:
            pattern = None
        self._hull.add(shapes, is_small_known=pattern is not None)
        wide = self._wide.setdefault(pattern, _Wide())
        if wide.plan is None or not wide.plan.covers(shapes):
            if wide.plan is not None:
                self._forget(wide.plan)
            wide.widenings += 1
            wide.plan = self._made_for_hull(pattern, wide.widenings)
        return wide.plan

    def _made_for_hull(self, pattern: Shapes | None, widenings: int) -> PlanForShapes[P]:
        hull = self._hull.shapes(pattern)
        values = [dims if any([n is not None for n in dims or ()]) else None for dims in hull[self._feeds :]]
        hull = (*hull[: self._feeds], *values)
        if widenings > MOST_WIDENINGS or hull == self._open_dims:
            return self._made_for_all()
        try:
            return PlanForShapes(self._plan(hull, False), hull, 0)
        except ValueError:
            return self._made_for_all()

    def _made_for_all(self) -> PlanForShapes[P]:
        if self._for_all is None:
            self._for_all = PlanForShapes(self._plan(None, False), None, 0)
        return self._for_all

    def _is_wanted(self, shapes: Shapes, wide: PlanForShapes[P], number: int) -> bool:
        """Notes that these shapes have come as this number; returns whether they are worth a plan."""
        met = self._met.pop(shapes, None)
        if met is None:
            met = _Met(number)
        else:
            met.uses += 1
        self._met[shapes] = met
        if len(self._met) > _MOST_MET:
            del self._met[next(iter(self._met))]
        if met.uses < LEAST_USES:
            return False
        has_paid = met.uses >= self._worthwhile_uses(shapes, wide)
        if not self._is_full():
            return has_paid or met.uses >= len(self._met) + len(self._special)
        if not has_paid:
            return False
        if met.since > self._least_recently_used().used:
            return True
        self._met[shapes] = _Met(number)  # the plan that would go is in use
        return False

    def _worthwhile_uses(self, shapes: Shapes, wide: PlanForShapes[P]) -> int:
        """How many steps of these shapes a plan of their own is worth."""
        own, other = self._costs(wide)
        return own.worthwhile_uses(other, self._size(shapes))

    def _steps_meanwhile(self, shapes: Shapes, wide: PlanForShapes[P]) -> int:
        """How many steps are made while one for these shapes is planned, and its code is made."""
        own, other = self._costs(wide)
        return own.steps_meanwhile(other, self._size(shapes))

    def _costs(self, wide: PlanForShapes[P]) -> tuple[PlanCosts, PlanCosts]:
        """Those of a special plan and of the wide one."""
        if wide.costs is None:
            wide.costs = wide.plan.costs()
        return (wide.costs if self._model is None else self._model[0]), wide.costs

    def _size(self, shapes: Shapes) -> float:
        """How much is fed, as a multiple of what the special plan is for whose costs are known."""
        return 1.0 if self._model is None else _fed_elements(shapes[: self._feeds]) / self._model[1]

    def _is_full(self) -> bool:
        held = self._special.values()
        if len(held) + (self._pending is not None) >= MOST_PLANS:
            return True
        sizes = [each.bytes for each in held]
        return sum(sizes) + max(sizes, default=0) > MOST_BYTES

    def _least_recently_used(self) -> PlanForShapes[P]:
        return min(self._special.values(), key=lambda each: each.used)

    def _added(self, plan: P, shapes: Shapes, used: int) -> PlanForShapes[P]:
        added = PlanForShapes(plan, shapes, used)
        self._special[shapes] = added
        self._met.pop(shapes, None)
        while len(self._special) > 1 and (
            len(self._special) > MOST_PLANS or sum([e.bytes for e in self._special.values()]) > MOST_BYTES
        ):
            oldest = self._least_recently_used()
            del self._special[oldest.shapes]  # type: ignore[arg-type]
            self._forget(oldest)
        return added

    def _note_impossible(self, shapes: Shapes) -> None:
        self._impossible[shapes] = None
        if len(self._impossible) > _MOST_MET:
            del self._impossible[next(iter(self._impossible))]

    def _take(self, task: _Task[P]) -> None:
        """Has the plan of a task for the steps that follow."""
        plan, self._pending = task.plan(), None
        if plan is None:
            self._note_impossible(task.shapes)
        else:
            self._added(plan, task.shapes, task.used)

    # ---- in the background

    def _make_later(self, shapes: Shapes) -> P | None:
        """Plans without the lock."""
        try:
            return self._plan(shapes, True)
        except ValueError:  # the graph contradicts these shapes: the plan for all shapes will say where
            return None
        except Exception as error:
            self._report(error)
            return None

    def _report(self, error: Exception) -> None:
        is_gone = isinstance(error, (errors.AbortedError, errors.CancelledError, errors.UnavailableError))
        if not self._has_failed and not is_gone:  # of a task or session that is gone steps tell
            self._has_failed = True
            warning(
                "Planning for other shapes failed; their steps go on with a general plan.", exc_info=error
            )


def _fed_elements(shapes: Shapes) -> int:
    """About how many elements values of these shapes have together, those of unknown shape left out."""
    return sum([num_elements(dims) or 0 for dims in shapes]) + 1
