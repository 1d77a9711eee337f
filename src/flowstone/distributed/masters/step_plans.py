"""`StepPlans`: a master's plans of the steps of one session.

Steps with the same feeds, fetches and targets are of one *kind*. A kind whose feeds all have known shapes has
one plan. Where the graph leaves shapes open, there are plans for the shapes that are fed, as in a local
session (`runtime/plans/plans_by_shape.py`, docs/design/025): the master divides the graph with these shapes,
so that all parts, and the tensors between them, have known ones, and every worker compiles its part for them.
When nobody has the parts of a plan any more, the workers are told to forget them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flowstone.distributed.masters.partial_runs import PartialPlan
from flowstone.distributed.masters.running_step import RegisteredPart
from flowstone.framework.process.finalizers import when_freed
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims
from flowstone.runtime.code.planning_costs import PlanCosts
from flowstone.runtime.plans.background_planning import BackgroundPlanner
from flowstone.runtime.plans.common_shapes import Shapes
from flowstone.runtime.plans.plans_by_shape import PlanForShapes, PlansByShape

__all__ = ["RegisteredParts", "StepKind", "StepPlan", "StepPlans"]


class RegisteredParts(list[RegisteredPart]):
    """The parts of a plan. The workers keep them as long as somebody has this list."""


class StepKind(NamedTuple):
    """What steps with one plan have in common: names of feeds, fetches and targets; whether they come in
    pieces; whether they have a time limit."""

    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    targets: tuple[str, ...]
    in_pieces: bool = False
    is_watched: bool = False


class StepPlan(NamedTuple):
    """The parts of one kind of step, its feeds and fetches, what partial runs share, the shapes of the feeds
    that it is for (None: all), about how many bytes it takes, and what it costs."""

    parts: RegisteredParts
    fed: list[Tensor]
    fetched: list[Tensor]
    partial: PartialPlan
    shapes: Shapes | None
    size: int
    estimate: PlanCosts

    def held_bytes(self) -> int:
        """About how much memory it takes."""
        return self.size

    def costs(self) -> PlanCosts:
        """What it takes to make, and its steps, on all devices together."""
        return self.estimate

    def growth_on_one_thread(self) -> float:
        """0: each worker decides on its threads."""
        return 0.0


class StepPlans:
    """The plans, made when they are first needed.

    ``make(kind, shapes)`` divides the graph and registers the parts (`shapes`: None for all; ValueError if
    the graph contradicts these), ``dims(kind)`` gives the static shapes of the feeds, None for those of
    values that are no tensors, and ``forget(parts)`` has the workers forget parts. `choose` may be called by
    many threads.
    """

    def __init__(
        self,
        make: Callable[[StepKind, Shapes | None], StepPlan],
        dims: Callable[[StepKind], list[Dims]],
        forget: Callable[[list[RegisteredPart]], None],
    ) -> None:
        self._make, self._dims, self._forget = make, dims, forget
        self._known: dict[StepKind, StepPlan | PlansByShape[StepPlan]] = {}
        self._background = BackgroundPlanner()
        self._beginning = threading.Lock()

    def choose(self, kind: StepKind, values: Sequence[Any]) -> StepPlan:
        """The plan of a step with these fed values."""
        known = self._known.get(kind)
        if known is None:
            known = self._begun(kind)
        if type(known) is StepPlan:
            return known
        return known.choose(tuple([tuple(getattr(value, "shape", ())) for value in values])).plan  # type: ignore[union-attr]

    def last(self, kind: StepKind) -> StepPlan:
        """The plan of the kind's last steps; that for all shapes if there was none."""
        known = self._known.get(kind)
        if known is None:
            known = self._begun(kind)
        return known if isinstance(known, StepPlan) else known.last().plan

    def clear(self) -> None:
        """Forgets all plans; later steps have new ones."""
        self._known = {}

    def wait(self) -> None:
        """Waits until no plan is being made in the background."""
        self._background.wait()

    def stop(self) -> None:
        """Makes no more plans in the background."""
        self._background.stop()

    def __len__(self) -> int:
        return len(self._known)

    def _begun(self, kind: StepKind) -> StepPlan | PlansByShape[StepPlan]:
        """What `_known` has of a kind that is new."""
        with self._beginning:
            known = self._known.get(kind)
            if known is None:
                dims = [] if kind.in_pieces else self._dims(kind)
                is_open = any(each is None or None in each for each in dims)
                known = self._known[kind] = self._by_shape(kind, dims) if is_open else self._made(kind, None)
            return known

    def _by_shape(self, kind: StepKind, dims: list[Dims]) -> PlansByShape[StepPlan]:
        def plan(shapes: Shapes | None, code_first: bool) -> StepPlan:
            return self._made(kind, shapes)  # whose code the devices' tasks make

        return PlansByShape(plan, _ignore, self._background.submit, dims)

    def _made(self, kind: StepKind, shapes: Shapes | None) -> StepPlan:
        plan = self._make(kind, shapes)
        when_freed(plan.parts, self._drop, list(plan.parts))
        return plan

    def _drop(self, parts: list[RegisteredPart]) -> None:
        self._background.submit(lambda: self._forget(parts))


def _ignore(chosen: PlanForShapes[StepPlan]) -> None:
    """A plan is dropped: its parts are forgotten when the steps that run them have ended."""
