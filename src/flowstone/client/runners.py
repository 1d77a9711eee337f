"""Runners: functions of the fed values that run a step and return the results in the fetches' form.

`compiled_runner` generates one for a plan: feeds are converted and checked, the plan's function is called in
inference mode, fetches are converted, and what fails is explained. `runner_by_shape` has a plan chosen by the
shapes that are fed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import get_num_threads
from torch._C import _InferenceMode

from flowstone.client.feeds_fetches import (
    FetchStructure,
    OtherShape,
    feed_arrays,
    feed_converter,
    fetch_converter,
    plan_key,
)
from flowstone.client.plans_by_shape import PlanForShapes, PlansByShape, Shapes
from flowstone.client.run_metadata import with_feeds
from flowstone.framework.tensor import Tensor
from flowstone.rewriting.simplification.equal_sizes import without_equal_sizes
from flowstone.runtime import threads
from flowstone.runtime.failures import explain
from flowstone.runtime.generated_code import Segment
from flowstone.runtime.plan import Plan
from flowstone.runtime.step import UNLIMITED, Step
from flowstone.runtime.tracing import Trace

if TYPE_CHECKING:
    from flowstone.client.session import BaseSession


def is_open(tensor: Tensor) -> bool:
    """Whether the static shape leaves something to the fed value."""
    return tensor.dtype.base_dtype.torch is not None and _has_open_dims(tensor)


def _has_open_dims(tensor: Tensor) -> bool:
    return tensor.dims is None or None in tensor.dims


def runner_by_shape(
    session: BaseSession, structure: FetchStructure, feeds: list[Tensor]
) -> Callable[..., Any]:
    """A runner that takes the plan for the shapes of the feeds (`plans_by_shape.py`).

    As long as all steps have had the same shapes, their plan's runner itself finds out whether they have.
    """
    plans, as_arrays = _plans_by_shape(session, structure, feeds), feed_arrays(feeds)
    static = [tensor.dims for tensor in feeds]
    only: Callable[..., Any] | None = None
    is_first = True

    def make(chosen: PlanForShapes) -> Callable[..., Any]:
        return compiled_runner(session, structure, feeds, chosen.plan, chosen.shapes)

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
        except (TypeError, ValueError):  # its own conversion says what is wrong
            return plans.for_all().runner(structure, make)(*values)
        shapes = tuple([x.shape if type(x) is np.ndarray else dims for x, dims in zip(arrays, static)])
        chosen = plans.choose(shapes)
        runner = chosen.runner(structure, make)
        if is_first and chosen.shapes == shapes:
            only = runner
        is_first = False
        return runner(*arrays)

    return run


def _plans_by_shape(session: BaseSession, structure: FetchStructure, feeds: list[Tensor]) -> PlansByShape:
    """The plans of these elements, targets and feeds, which all their runners share."""
    key = plan_key(structure, feeds)

    def forget(chosen: PlanForShapes) -> None:
        session._plans.pop((*key, False, chosen.shapes, False), None)
        if chosen.plan.captured is not None:
            chosen.plan.captured.release("other shapes came more often")

    def plan(shapes: Shapes | None) -> Plan:
        return session._plan(structure, feeds, False, shapes)

    made = PlansByShape(plan, forget, session.planner.submit, [tensor.dims for tensor in feeds])
    return session.plans_by_shape.setdefault(key, made)


def compiled_runner(
    session: BaseSession,
    structure: FetchStructure,
    feeds: list[Tensor],
    plan: Plan,
    shapes: Shapes | None,
    timeout_ms: int = 0,
    trace: Trace | None = None,
) -> Callable[..., Any]:
    """The runner of a plan; `shapes`: those of the feeds that it holds for (OtherShape for others)."""
    segment = plan.segment
    only = shapes and without_equal_sizes(shapes)
    enter = [
        feed_converter(tensor, plan.feed_device, only[i] if only and _has_open_dims(tensor) else None)
        for i, tensor in enumerate(feeds)
    ]
    leave = [fetch_converter(t, c) for t, c in zip(structure.elements, segment.copied_fetches)]
    function = segment.function if trace is None else with_feeds(plan, trace)
    names: dict[str, Any] = {f"enter{i}": function for i, function in enumerate(enter)}
    names.update({f"leave{i}": function for i, function in enumerate(leave)})
    names.update(
        segment=segment, function=function, explain=explain, InferenceMode=_InferenceMode,
        rebuild=structure.rebuild, unlimited=UNLIMITED, Step=Step,
    )  # fmt: skip
    values = "".join(f", enter{i}(x{i})" for i in range(len(feeds)))
    results = ", ".join(f"leave{i}(results[{i}])" for i in range(len(leave)))
    call = "function(*arguments)"
    intra_op_threads = 1 if plan.one_thread else session.intra_op_threads
    if intra_op_threads and (limit := threads.limit()) is not None:
        names.update(limit=limit, number_of_threads=get_num_threads, limited=_limited)
        call = f"limited(limit, number_of_threads(), {intra_op_threads}, function, arguments)"
    new_step, cancel = "unlimited", ""
    if trace is not None or not isinstance(segment, Segment) or segment.waits:
        names.update(new_step=session.new_step, trace=trace)
        new_step = f"new_step({timeout_ms}, trace)"
        cancel = "            step.cancel(error)\n"  # for what holds on to something until the step ends
    elif timeout_ms:
        new_step = f"Step({timeout_ms})"
    source = (
        f"def run({', '.join(f'x{i}' for i in range(len(feeds)))}):\n"
        "    with InferenceMode(True):\n"
        f"        step = {new_step}\n"
        f"        arguments = (step{values},)\n"
        "        try:\n"
        f"            results = {call}\n"
        f"        except Exception as error:\n{cancel}"
        "            raise explain(error, segment) from None\n"
        f"        return rebuild(({results}{',' if len(leave) == 1 else ''}))\n"
    )
    exec(compile(source, "<flowstone runner>", "exec"), names)
    return names["run"]  # type: ignore[no-any-return]


def _limited(
    limit: Callable[[int], Any], before: int, count: int, function: Callable[..., Any], arguments: Any
) -> Any:
    """Calls the step with `count` intra-op threads, for this thread alone."""
    if before == count:
        return function(*arguments)
    limit(count)
    try:
        return function(*arguments)
    finally:
        limit(before)
