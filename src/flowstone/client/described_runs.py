"""Runs with options, runs of which to tell, and runs that are measured: what `Session.run` does but seldom.

They take the way of every run (plan, runner), with plans of their own where a step is traced. See
docs/tracing.md.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flowstone.client.feeds_fetches import FetchStructure, plan_key
from flowstone.client.run_metadata import check_thread_pool, start_trace, write_metadata
from flowstone.client.runners import compiled_runner, is_open
from flowstone.client.step_observation import WARM_UP, StepObserver, current_observer
from flowstone.framework.shape import is_compatible
from flowstone.framework.tensor import Tensor
from flowstone.runtime.explanation import machine_text, profile_text
from flowstone.runtime.explanation_summary import summary_text
from flowstone.runtime.plan import Plan
from flowstone.runtime.tracing import Trace

if TYPE_CHECKING:
    from flowstone.client.session import BaseSession

_MOST_PLANS = 16  # traced, of the same fetches and feeds, before traces tell no more shapes apart


def is_plain(options: Any) -> bool:
    """Whether RunOptions (or None) ask for nothing."""
    return options is None or not (
        options.trace_level
        or options.timeout_in_ms
        or options.output_partition_graphs
        or options.inter_op_thread_pool > 0
    )


def run_described(
    session: BaseSession,
    structure: FetchStructure,
    feeds: list[Tensor],
    values: Sequence[Any],
    options: Any,
    metadata: Any,
) -> Any:
    """Runs a step with RunOptions (or None), and replaces the contents of the RunMetadata (or None)."""
    check_thread_pool(options, session._config)
    measurements = session._measurements
    is_measured = measurements is not None and measurements.is_due(plan_key(structure, feeds))
    if is_measured or (options is not None and (options.trace_level or options.output_partition_graphs)):
        return _run_traced(session, structure, feeds, values, is_measured, options, metadata)
    timeout_ms = (options.timeout_in_ms if options is not None else 0) or session._timeout_ms
    result = session._runner(structure, feeds, timeout_ms)(*values)
    if metadata is not None:
        metadata.Clear()
    return result


def measured_runner(
    session: BaseSession, structure: FetchStructure, feeds: list[Tensor]
) -> Callable[..., Any]:
    """A function of the feeds' values that runs a step, and measures it when that is due."""
    plain, observer = _measured_runner(session, structure, feeds), current_observer()
    return plain if observer is None else observed_runner(session, structure, feeds, plain, observer)


def observed_runner(
    session: BaseSession,
    structure: FetchStructure,
    feeds: list[Tensor],
    plain: Callable[..., Any],
    observer: StepObserver,
) -> Callable[..., Any]:
    """`plain`, a function of the feeds' values that runs a step, of which some are traced for `observer`."""

    def traced(*values: Any) -> tuple[Any, Plan, Trace]:
        timeout_ms = session._timeout_ms
        plan, shapes = _plan_for_values(session, structure, feeds, values, timeout_ms > 0, True)
        trace = start_trace(plan, session._devices)
        result = compiled_runner(session, structure, feeds, plan, shapes, timeout_ms, trace)(*values)
        trace.finish()
        return result, plan, trace

    by_shape = any(is_open(tensor) for tensor in feeds)
    return observer.runner(session, structure, feeds, by_shape, plain, traced)


def explain_by_steps(
    session: BaseSession, structure: FetchStructure, feeds: list[Tensor], values: Sequence[Any], steps: int
) -> str:
    """Runs steps, and says where the time and memory of the last `steps` of them went."""
    observer = StepObserver(steps, spread=False)
    run = observed_runner(session, structure, feeds, _measured_runner(session, structure, feeds), observer)
    for _ in range(WARM_UP + 2 * steps + 1):
        run(*values)
    (kind,) = observer.kinds()
    explanation = kind.explanation()
    measured = explanation.profile
    assert measured is not None
    return "\n\n".join([summary_text([explanation]), profile_text(measured), machine_text([measured])])


def _measured_runner(
    session: BaseSession, structure: FetchStructure, feeds: list[Tensor]
) -> Callable[..., Any]:
    plain, measurements = session._runner(structure, feeds, session._timeout_ms), session._measurements
    if measurements is None:
        return plain
    key = plan_key(structure, feeds)

    def run(*values: Any) -> Any:
        if measurements.is_due(key):
            return _run_traced(session, structure, feeds, values, True)
        return plain(*values)

    return run


def _run_traced(
    session: BaseSession,
    structure: FetchStructure,
    feeds: list[Tensor],
    values: Sequence[Any],
    is_measured: bool,
    options: Any = None,
    metadata: Any = None,
) -> Any:
    """A step that is measured, traced, or shows its partition graphs."""
    timeout_ms = (options.timeout_in_ms if options is not None else 0) or session._timeout_ms
    is_traced = is_measured or (options is not None and options.trace_level > 0)
    plan, shapes = _plan_for_values(session, structure, feeds, values, timeout_ms > 0, is_traced)
    trace = start_trace(plan, session._devices) if is_traced else None
    result = compiled_runner(session, structure, feeds, plan, shapes, timeout_ms, trace)(*values)
    costs = None
    if trace is not None:
        trace.finish()
        if is_measured and session._measurements is not None:
            costs = session._measurements.costs
            if session._measurements.add(plan_key(structure, feeds), trace):
                session._forget_plans(plan_key(structure, feeds))
    if metadata is not None:
        wants_graphs = options is not None and options.output_partition_graphs
        write_metadata(metadata, plan, trace, wants_graphs, costs)
    return result


def _plan_for_values(
    session: BaseSession,
    structure: FetchStructure,
    feeds: list[Tensor],
    values: Sequence[Any],
    watched: bool,
    traced: bool,
) -> tuple[Plan, tuple[tuple[int, ...], ...] | None]:
    """The plan that a step with these values has, and the shapes that it is for, if for these alone."""
    key = plan_key(structure, feeds)
    known = sum(other[:3] == key and other[-1] for other in list(session._plans))
    if not watched and known < _MOST_PLANS and any(is_open(tensor) for tensor in feeds):
        shapes = tuple(np.shape(value) for value in values)
        if all(is_compatible(shape, tensor.dims) for tensor, shape in zip(feeds, shapes)):
            with contextlib.suppress(ValueError):  # the general plan says what is wrong, and where
                return session._plan(structure, feeds, watched, shapes, traced), shapes
    return session._plan(structure, feeds, watched, None, traced), None
