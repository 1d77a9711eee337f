"""`Planner`: makes the plans of one session and remembers them.

It owns what planning needs: `options` that hold for all plans, the devices of nodes that have state
(`assigned`, to which each plan adds), measured costs, and what has been planned so far:

==================  =======================================================================================
`plans`             by fetches, feeds, and other properties of the plan (`PlanKey`)
`plans_by_shape`    by fetches and feeds whose shapes the graph leaves open (`plans_by_shape.py`)
`runners`           functions that run the plans, by the keys of `Session.run`
==================  =======================================================================================

All of these stay valid when the graph grows, since nodes never change; `forget` and `stop` drop them.
Planning takes `lock`; steps do not. A thread plans for shapes that are fed again and again
(`background_planning.py`).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from flowstone.client.feeds_fetches import FetchStructure, is_open, plan_key
from flowstone.client.run_metadata import Measurements
from flowstone.framework import errors
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import is_compatible
from flowstone.placement.node_placement import stateful_placement
from flowstone.rewriting.simplification.fed_sizes import acting_as_sizes, size_value
from flowstone.runtime.plans.background_planning import BackgroundPlanner
from flowstone.runtime.plans.common_shapes import Shapes
from flowstone.runtime.plans.debug_watches import Watch
from flowstone.runtime.plans.placement_log import PlacementLog
from flowstone.runtime.plans.plan import Plan, make_plan, placed_subgraph
from flowstone.runtime.plans.plan_options import PlanOptions
from flowstone.runtime.plans.plans_by_shape import PlanForShapes, PlansByShape
from flowstone.runtime.process.device import Device
from flowstone.runtime.process.process import tune_for_plans

_MOST_TRACED = 16  # plans of the same fetches and feeds; beyond these, traced plans are not made by shape


class PlanKey(NamedTuple):
    """The key of a plan: the elements, targets and feeds of its steps, the shapes of the feeds if it holds
    only for these, whether it checks a deadline, and whether it is traced."""

    elements: tuple[Any, Any, Any]
    shapes: Shapes | None = None
    watched: bool = False
    traced: bool = False


class Planner:
    """Plans with these `options`. `measurements`: the session's measured costs, which placement uses.
    `log`: where each plan's placement is written."""

    def __init__(
        self,
        options: PlanOptions,
        measurements: Measurements | None = None,
        log: PlacementLog | None = None,
    ) -> None:
        self.assigned: dict[str, str] = {}
        self.measurements = measurements
        self.options = options._replace(
            assigned=MappingProxyType(self.assigned),
            costs=None if measurements is None else measurements.costs,
        )
        self.lock = threading.Lock()
        self.plans: dict[PlanKey, Plan] = {}
        self.plans_by_shape: dict[Any, PlansByShape[Plan]] = {}
        self.runners: dict[Any, Callable[..., Any]] = {}
        self._fed_sizes: dict[Any, tuple[int, ...]] = {}
        self._background = BackgroundPlanner()
        self._log = log

    # ---- plans

    def plan(
        self,
        structure: FetchStructure,
        feeds: Sequence[Tensor],
        shapes: Shapes | None = None,
        *,
        watched: bool = False,
        traced: bool = False,
        code_first: bool = False,
    ) -> Plan:
        """The plan of steps with these fetches and feeds, made when it is first asked for.

        `shapes`: those of the feeds if the plan is to hold only for these (ValueError if they contradict the
        graph's).
        `watched`, `traced`, `code_first`: see `PlanOptions`. Raises InvalidArgumentError for a tensor that is
        fed twice, and what `make_plan` does.
        """
        if len(set(feeds)) < len(feeds):
            raise errors.InvalidArgumentError(None, None, "A tensor is fed twice under two names.")
        key = PlanKey(plan_key(structure, feeds), shapes, watched, traced)
        sizes = () if shapes is None else self.fed_sizes(structure, feeds)
        with self.lock:
            plan = self.plans.get(key)
            if plan is None:
                options = self.options._replace(
                    feed_dims=shapes,
                    fed_sizes=sizes,
                    watched=watched,
                    traced=traced,
                    code_first=code_first,
                )
                plan = make_plan(structure.elements, structure.targets, feeds, options)
                tune_for_plans()
                self.plans[key] = plan
                self.assigned.update(plan.assigned)
                if self._log is not None:
                    self._log.add(plan.placement)
                if self._background.is_stopped:
                    self._release()
            return plan

    def plan_with_watches(
        self,
        structure: FetchStructure,
        feeds: Sequence[Tensor],
        watches: tuple[Watch, ...],
        traced: bool = False,
    ) -> Plan:
        """A plan whose steps send what the watched tensors are to a debugger; it is not kept."""
        with self.lock:
            options = self.options._replace(watches=watches, watched=True, traced=traced)
            plan = make_plan(structure.elements, structure.targets, feeds, options)
            self.assigned.update(plan.assigned)
            return plan

    def plan_for_values(
        self,
        structure: FetchStructure,
        feeds: Sequence[Tensor],
        values: Sequence[Any],
        *,
        watched: bool,
        traced: bool,
    ) -> tuple[Plan, Shapes | None]:
        """The plan of a step with these values, and the shapes that it is for if it holds only for them."""
        key = plan_key(structure, feeds)
        known = sum(other.elements == key and other.traced for other in list(self.plans))
        if not watched and known < _MOST_TRACED and self.by_shape(structure, feeds):
            shapes = self.shapes_of(structure, feeds, values)
            if all(is_compatible(shape, tensor.dims) for tensor, shape in zip(feeds, shapes)):
                with contextlib.suppress(ValueError):  # the general plan says what is wrong, and where
                    return self.plan(structure, feeds, shapes, watched=watched, traced=traced), shapes
        return self.plan(structure, feeds, watched=watched, traced=traced), None

    def plans_for_shapes(self, structure: FetchStructure, feeds: Sequence[Tensor]) -> PlansByShape[Plan]:
        """The plans of these elements, targets and feeds, which all their runners share."""
        key = plan_key(structure, feeds)

        def forget(chosen: PlanForShapes[Plan]) -> None:
            self.plans.pop(PlanKey(key, chosen.shapes), None)
            if chosen.plan.captured is not None:
                chosen.plan.captured.release("other shapes came more often")

        def plan(shapes: Shapes | None, code_first: bool) -> Plan:
            return self.plan(structure, feeds, shapes, code_first=code_first)

        sizes = self.fed_sizes(structure, feeds)
        dims = [tensor.dims for tensor in feeds]
        made = PlansByShape(plan, forget, self._background.submit, dims, len(sizes))
        return self.plans_by_shape.setdefault(key, made)

    def by_shape(self, structure: FetchStructure, feeds: Sequence[Tensor]) -> bool:
        """Whether plans are chosen by what is fed: by shapes that the graph leaves open, or by sizes."""
        return any([is_open(tensor) for tensor in feeds]) or bool(self.fed_sizes(structure, feeds))

    def fed_sizes(self, structure: FetchStructure, feeds: Sequence[Tensor]) -> tuple[int, ...]:
        """The positions of the feeds by whose values plans are chosen, see `fed_sizes.py`."""
        key = plan_key(structure, feeds)
        found = self._fed_sizes.get(key)
        if found is None:
            found = acting_as_sizes(structure.elements, structure.targets, feeds)
            self._fed_sizes[key] = found
        return found

    def shapes_of(self, structure: FetchStructure, feeds: Sequence[Tensor], values: Sequence[Any]) -> Shapes:
        """The shapes of these fed values, and the values that are sizes."""
        sizes = [size_value(np.asarray(values[i])) for i in self.fed_sizes(structure, feeds)]
        return (*[np.shape(value) for value in values], *sizes)

    # ---- subgraphs that are not plans

    def placed(
        self, structure: FetchStructure, feeds: Sequence[Tensor], *, in_pieces: bool = False
    ) -> tuple[Subgraph, dict[PlanNode, Device]]:
        """The rewritten subgraph and the devices of its nodes, see `placed_subgraph`. The caller has the
        lock, and calls `assign` if steps will use these devices."""
        options = self.options._replace(in_pieces=in_pieces)
        return placed_subgraph(structure.elements, structure.targets, feeds, options)

    def assign(self, chosen: dict[PlanNode, Device]) -> None:
        """Keeps nodes with state on these devices in later plans. The caller has the lock."""
        self.assigned.update(stateful_placement(chosen))

    # ---- the end of plans

    def forget(self, structure: FetchStructure, feeds: Sequence[Tensor]) -> None:
        """Drops the plans of these fetches and feeds, so that the next ones use newly measured costs. Does
        nothing with one device, where costs do not matter."""
        if len(self.options.devices) > 1:
            key = plan_key(structure, feeds)
            with self.lock:
                self.plans = {other: p for other, p in list(self.plans.items()) if other.elements != key}
                self.plans_by_shape.pop(key, None)
                self.runners.clear()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until no background task is left; returns whether that was within the time."""
        return self._background.wait(timeout_s)

    def stop(self) -> None:
        """Forgets all plans for good, and ends planning in the background. Does not wait."""
        self._background.stop()
        self.runners.clear()
        self.plans_by_shape, self._fed_sizes = {}, {}
        self._release()

    def _release(self) -> None:
        plans, self.plans = self.plans, {}
        for plan in plans.values():
            if plan.captured is not None:
                plan.captured.release()
