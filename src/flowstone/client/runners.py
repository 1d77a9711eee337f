"""Runners: functions of the fed values that run a step and return the results in the fetches' form.

`compiled_runner` generates one for a plan: feeds are converted and checked, the plan's function is called in
inference mode, fetches are converted, and errors are explained. `runner_by_shape` chooses a plan by the
shapes of the feeds. `new_runner` decides which of the two is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import get_num_threads
from torch._C import _InferenceMode

from flowstone.client.feeds_fetches import (
    FetchStructure,
    OtherShape,
    as_given,
    fed_strings,
    feed_arrays,
    feed_converter,
    has_open_dims,
)
from flowstone.client.planning import Planner
from flowstone.client.steps import Steps
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims
from flowstone.rewriting.simplification.equal_sizes import without_equal_sizes
from flowstone.rewriting.simplification.fed_sizes import size_value
from flowstone.runtime.code.failures import explain, not_fetched
from flowstone.runtime.code.generated_code import Segment
from flowstone.runtime.code.tracing import Trace
from flowstone.runtime.explaining.traced_plans import with_feeds
from flowstone.runtime.plans.common_shapes import Shapes
from flowstone.runtime.plans.plan import Plan
from flowstone.runtime.plans.plans_by_shape import PlanForShapes
from flowstone.runtime.process import team_cores, threads

_SHAPED = frozenset({np.ndarray, torch.Tensor})


def new_runner(
    planner: Planner, steps: Steps, structure: FetchStructure, feeds: list[Tensor], timeout_ms: int = 0
) -> Callable[..., Any]:
    """A function of the feeds' values that runs a step and returns the results in the structure's form."""
    if not timeout_ms and planner.by_shape(structure, feeds):
        return runner_by_shape(planner, steps, structure, feeds)
    plan = planner.plan(structure, feeds, watched=timeout_ms > 0)
    return compiled_runner(steps, structure, feeds, plan, None, timeout_ms)


def runner_by_shape(
    planner: Planner, steps: Steps, structure: FetchStructure, feeds: list[Tensor]
) -> Callable[..., Any]:
    """A runner that chooses the plan by the shapes of the feeds (`plans_by_shape.py`).

    As long as all steps have had the same shapes, the runner of their plan is tried first and checks the
    shapes itself.
    """
    plans, as_arrays = planner.plans_for_shapes(structure, feeds), feed_arrays(feeds)
    static, sizes = [tensor.dims for tensor in feeds], planner.fed_sizes(structure, feeds)
    no_values = (None,) * len(sizes)
    given = fed_strings(structure.elements, feeds).values()
    only: Callable[..., Any] | None = None
    is_first = True

    def make(chosen: PlanForShapes[Plan]) -> Callable[..., Any]:
        return compiled_runner(steps, structure, feeds, chosen.plan, chosen.shapes, fed_sizes=sizes)

    def make_alone(chosen: PlanForShapes[Plan]) -> Callable[..., Any]:
        plan = chosen.plan._replace(one_thread=True)
        return compiled_runner(steps, structure, feeds, plan, chosen.shapes, fed_sizes=sizes)

    def run(*values: Any) -> Any:
        nonlocal only, is_first
        runner = only
        if runner is not None:
            try:
                return runner(*values)
            except OtherShape:
                only = None
        try:
            arrays = as_arrays(values)
        except (TypeError, ValueError):  # the conversion in the plan's runner says what is wrong
            return plans.for_all().runner(structure, make)(*values)
        shapes = tuple([tuple(x.shape) if type(x) in _SHAPED else dims for x, dims in zip(arrays, static)])
        if sizes:
            shapes += tuple([size_value(arrays[i]) for i in sizes]) if plans.looks_at_values else no_values
        chosen = plans.choose(shapes)
        if chosen.shapes != shapes and plans.wants_one_thread(shapes):
            runner = chosen.runner((structure, "alone"), make_alone)
        else:
            runner = chosen.runner(structure, make)
        if is_first and chosen.shapes == shapes:
            only = runner
        is_first = False
        for i in given:
            arrays[i] = values[i]
        return runner(*arrays)

    return run


def compiled_runner(
    steps: Steps,
    structure: FetchStructure,
    feeds: list[Tensor],
    plan: Plan,
    shapes: Shapes | None,
    timeout_ms: int = 0,
    trace: Trace | None = None,
    fed_sizes: Sequence[int] = (),
) -> Callable[..., Any]:
    """The runner of a plan; `shapes`: the feeds' shapes that it holds for, and the values of the `fed_sizes`;
    others raise OtherShape."""
    only = shapes and without_equal_sizes(shapes)
    enter = [
        feed_converter(tensor, plan.feed_device, only[i] if only and has_open_dims(tensor) else None)
        for i, tensor in enumerate(feeds)
    ]
    for i, value in zip(fed_sizes, only[len(feeds) :] if only else ()):
        if value is not None and None not in value:
            enter[i] = _only(enter[i], value)
    leave = structure.converters(plan.program.copied_fetches)
    names: dict[str, Any] = {f"enter{i}": function for i, function in enumerate(enter)}
    names.update({f"leave{i}": function for i, function in enumerate(leave)})
    names.update(
        program=plan.program, function=plan.function if trace is None else with_feeds(plan, trace),
        explain=explain, not_fetched=not_fetched, InferenceMode=_InferenceMode, rebuild=structure.rebuild,
        fetches=structure.elements, as_given=as_given,
    )  # fmt: skip
    new_step, cancel = _new_step(names, steps, plan, timeout_ms, trace)
    call = _call(names, plan, steps.intra_op_threads)
    part = _parting(names, plan, steps.intra_op_threads)
    values = "".join(f", enter{i}(x{i})" for i in range(len(feeds)))
    given = fed_strings(structure.elements, feeds)
    results = ", ".join(
        f"as_given(x{given[i]})" if i in given else f"leave{i}(results[{i}])" for i in range(len(leave))
    )
    source = (
        f"def run({', '.join(f'x{i}' for i in range(len(feeds)))}):\n"
        "    with InferenceMode(True):\n"
        f"        step = {new_step}\n{part}"
        f"        arguments = (step{values},)\n"
        "        try:\n"
        f"            results = {call}\n"
        f"        except Exception as error:\n{cancel}"
        f"            raise explain(error, program) from None\n"
        "        try:\n"
        f"            return rebuild(({results}{',' if len(leave) == 1 else ''}))\n"
        "        except Exception as error:\n"
        "            raise not_fetched(error, fetches) from None\n"
    )
    exec(compile(source, "<flowstone runner>", "exec"), names)
    return names["run"]  # type: ignore[no-any-return]


def _only(enter: Callable[[Any], Any], wanted: Dims) -> Callable[[Any], Any]:
    """A conversion of fed sizes that raises OtherShape for others than these."""

    def convert(value: Any) -> Any:
        result = enter(value)
        if size_value(result) != wanted:
            raise OtherShape
        return result

    return convert


def _new_step(
    names: dict[str, Any], steps: Steps, plan: Plan, timeout_ms: int, trace: Trace | None
) -> tuple[str, str]:
    """The expression that makes the runner's step, and the line that cancels it after a failure. Adds their
    names to `names`."""
    if trace is not None or not isinstance(plan.program, Segment) or plan.program.waits:
        names.update(new_step=steps.new, trace=trace)
        cancel = "            step.cancel(error)\n"  # for kernels that keep something until the step ends
        return f"new_step({timeout_ms}, trace)", cancel
    names.update(common=steps.common, new_step=steps.new)
    return f"new_step({timeout_ms})" if timeout_ms else "common", ""


def _call(names: dict[str, Any], plan: Plan, intra_op_threads: int) -> str:
    """The expression that calls the plan's function with the plan's `intra_op_threads`. Adds its names to
    `names`."""
    by_team, limit = "function(*arguments)", threads.limit()
    count = 1 if plan.one_thread else intra_op_threads
    if limit is None or not (count or plan.shares_team):
        return by_team
    names.update(limit=limit, number_of_threads=get_num_threads, limited=_limited)
    limited = f"limited(limit, number_of_threads(), {count or 1}, function, arguments)"
    if count:
        return limited
    names.update(has_the_team=team_cores.has_the_team)
    return f"{by_team} if has_the_team() else {limited}"


def _parting(names: dict[str, Any], plan: Plan, intra_op_threads: int) -> str:
    """The lines before a step that part a team's threads. Adds their names to `names`."""
    if not plan.team.may_start or intra_op_threads == 1 or not team_cores.is_possible():
        return ""
    names.update(clock=team_cores.clock, part=team_cores.Parting())
    return "        now = clock()\n        if now > part.due:\n            part(now)\n"


def _limited(
    limit: Callable[[int], Any], before: int, count: int, function: Callable[..., Any], arguments: Any
) -> Any:
    """Calls the step with `count` intra-op threads, set for this thread only."""
    if before == count:
        return function(*arguments)
    limit(count)
    try:
        return function(*arguments)
    finally:
        limit(before)
