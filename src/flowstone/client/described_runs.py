"""Runs with RunOptions or RunMetadata, and runs that are measured: the rare cases of `Session.run`.

They use a plan and a runner as every run does; a traced step has a plan of its own. See docs/tracing.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowstone.client.arriving_elements import Arrival, arriving, in_two
from flowstone.client.feeds_fetches import FetchStructure, plan_key
from flowstone.client.planning import Planner
from flowstone.client.run_metadata import check_thread_pool, write_metadata
from flowstone.client.runners import compiled_runner, new_runner
from flowstone.client.step_observation import WARM_UP, StepObserver, current_observer
from flowstone.client.steps import Steps
from flowstone.framework.graphs.graph_def_parts import extract_sub_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.runtime.code.tracing import Trace
from flowstone.runtime.explaining.explanation import machine_text, measured_text
from flowstone.runtime.explaining.explanation_summary import summary_text
from flowstone.runtime.explaining.traced_plans import start_trace
from flowstone.runtime.plans.debug_watches import Watch, watches_of
from flowstone.runtime.plans.plan import Plan


def is_plain(options: Any) -> bool:
    """Whether RunOptions (or None) ask for nothing."""
    return options is None or not (
        options.trace_level
        or options.timeout_in_ms
        or options.output_partition_graphs
        or options.inter_op_thread_pool > 0
        or options.debug_options.debug_tensor_watch_opts
    )


class DescribedRuns:
    """The described runs of one session, with its `planner` and its `steps`."""

    def __init__(self, planner: Planner, steps: Steps) -> None:
        self._planner, self._steps = planner, steps

    def run(
        self,
        structure: FetchStructure,
        feeds: list[Tensor],
        values: Sequence[Any],
        options: Any,
        metadata: Any,
    ) -> Any:
        """Runs a step with RunOptions (or None), and replaces the contents of the RunMetadata (or None)."""
        check_thread_pool(options, self._steps.thread_pools)
        if watches := watches_of(options):
            return self._run_watched(structure, feeds, values, watches, options, metadata)
        measurements = self._planner.measurements
        is_measured = measurements is not None and measurements.is_due(plan_key(structure, feeds))
        if is_measured or (options is not None and (options.trace_level or options.output_partition_graphs)):
            return self._run_traced(structure, feeds, values, is_measured, options, metadata)
        timeout_ms = self._timeout_ms(options)
        result = new_runner(self._planner, self._steps, structure, feeds, timeout_ms)(*values)
        if metadata is not None:
            metadata.Clear()
        return result

    def _run_watched(
        self,
        structure: FetchStructure,
        feeds: list[Tensor],
        values: Sequence[Any],
        watches: tuple[Watch, ...],
        options: Any,
        metadata: Any,
    ) -> Any:
        """Runs a step that sends watched tensors to a debugger, and may be traced and return its graphs."""
        planner = self._planner
        plan = planner.plan_with_watches(structure, feeds, watches, options.trace_level > 0)
        trace = start_trace(plan, planner.options.devices) if options.trace_level > 0 else None
        timeout_ms = self._timeout_ms(options)
        result = compiled_runner(self._steps, structure, feeds, plan, None, timeout_ms, trace)(*values)
        if trace is not None:
            trace.finish()
        if metadata is not None:
            write_metadata(metadata, plan, trace, options.output_partition_graphs, None)
            if options.output_partition_graphs:
                _add_rewritten(metadata.partition_graphs, structure)
        return result

    def runner(self, structure: FetchStructure, feeds: list[Tensor]) -> Callable[..., Any]:
        """A function of the feeds' values that runs a step, and measures it when that is due."""

        def make(structure: FetchStructure, feeds: list[Tensor]) -> Callable[..., Any]:
            plain, observer = self._measured_runner(structure, feeds), current_observer()
            return plain if observer is None else self.observed_runner(structure, feeds, plain, observer)

        return self._in_parts(structure, feeds, make)

    def _in_parts(
        self,
        structure: FetchStructure,
        feeds: list[Tensor],
        make: Callable[[FetchStructure, list[Tensor]], Callable[..., Any]],
    ) -> Callable[..., Any]:
        """A function that runs a step, made of one for each of its parts (`arriving_elements.py`)."""
        arrival = self._arrival(structure, feeds)
        if arrival is None:
            return make(structure, feeds)
        rest = make(structure, [*feeds, *arrival.tensors])
        return in_two(arrival, feeds, make(arrival.structure, arrival.feeds), rest)

    def _arrival(self, structure: FetchStructure, feeds: Sequence[Tensor]) -> Arrival | None:
        planner = self._planner
        is_whole = self._steps.timeout_ms or planner.measurements is not None
        return None if is_whole or len(planner.options.devices) > 1 else arriving(structure, feeds)

    def plan_text(
        self, structure: FetchStructure, feeds: Sequence[Tensor], values: Sequence[Any] | None
    ) -> str:
        """The explanations of the plans of a step with these values (None: not known), without running it.
        Of elements that arrive in it the shapes are those that came last."""
        arrival = self._arrival(structure, feeds)
        if arrival is None:
            shapes = None if values is None else self._planner.shapes_of(structure, feeds, values)
            return self._plan(structure, feeds, shapes).explain()
        first = self._planner.plan(arrival.structure, arrival.feeds)
        rest = self._planner.plans_for_shapes(structure, [*feeds, *arrival.tensors]).last().plan
        return f"{first.explain()}\n\n{rest.explain()}"

    def _plan(self, structure: FetchStructure, feeds: Sequence[Tensor], shapes: Any) -> Plan:
        """The plan for these shapes; as in `run` the one for all, if the graph contradicts them."""
        try:
            return self._planner.plan(structure, feeds, shapes)
        except ValueError:
            if shapes is None:
                raise
            return self._planner.plan(structure, feeds)

    def observed_runner(
        self,
        structure: FetchStructure,
        feeds: list[Tensor],
        plain: Callable[..., Any],
        observer: StepObserver,
    ) -> Callable[..., Any]:
        """Wraps `plain`, a function of the feeds' values that runs a step, so that `observer` has some of its
        steps traced.
        """
        planner, steps = self._planner, self._steps

        def traced(*values: Any) -> tuple[Any, Plan, Trace]:
            timeout_ms = steps.timeout_ms
            plan, shapes = planner.plan_for_values(
                structure, feeds, values, watched=timeout_ms > 0, traced=True
            )
            trace = start_trace(plan, planner.options.devices)
            result = compiled_runner(steps, structure, feeds, plan, shapes, timeout_ms, trace)(*values)
            trace.finish()
            return result, plan, trace

        by_shape = planner.by_shape(structure, feeds)
        return observer.runner(planner, steps, structure, feeds, by_shape, plain, traced)

    def explain(
        self, structure: FetchStructure, feeds: list[Tensor], values: Sequence[Any], steps: int
    ) -> str:
        """Runs steps, and explains where the time and memory of the last `steps` of them went."""
        observer = StepObserver(steps, spread=False)

        def make(structure: FetchStructure, feeds: list[Tensor]) -> Callable[..., Any]:
            plain = self._measured_runner(structure, feeds)
            return self.observed_runner(structure, feeds, plain, observer)

        run = self._in_parts(structure, feeds, make)
        for _ in range(WARM_UP + 2 * steps + 1):
            run(*values)
        explanations = [kind.explanation() for kind in observer.kinds()]
        measured = [each.profile for each in explanations if each.profile is not None]
        blocks = [summary_text(explanations), *map(measured_text, explanations), machine_text(measured)]
        return "\n\n".join(blocks)

    def _measured_runner(self, structure: FetchStructure, feeds: list[Tensor]) -> Callable[..., Any]:
        measurements = self._planner.measurements
        plain = new_runner(self._planner, self._steps, structure, feeds, self._steps.timeout_ms)
        if measurements is None:
            return plain
        key = plan_key(structure, feeds)

        def run(*values: Any) -> Any:
            if measurements.is_due(key):
                return self._run_traced(structure, feeds, values, True)
            return plain(*values)

        return run

    def _run_traced(
        self,
        structure: FetchStructure,
        feeds: list[Tensor],
        values: Sequence[Any],
        is_measured: bool,
        options: Any = None,
        metadata: Any = None,
    ) -> Any:
        """Runs a step that is measured, traced, or returns its partition graphs."""
        planner, timeout_ms = self._planner, self._timeout_ms(options)
        is_traced = is_measured or (options is not None and options.trace_level > 0)
        plan, shapes = planner.plan_for_values(
            structure, feeds, values, watched=timeout_ms > 0, traced=is_traced
        )
        trace = start_trace(plan, planner.options.devices) if is_traced else None
        run = compiled_runner(self._steps, structure, feeds, plan, shapes, timeout_ms, trace)
        result = run(*values)
        costs = None
        if trace is not None:
            trace.finish()
            if is_measured and planner.measurements is not None:
                costs = planner.measurements.costs
                if planner.measurements.add(plan_key(structure, feeds), trace):
                    planner.forget(structure, feeds)
        if metadata is not None:
            wants_graphs = options is not None and options.output_partition_graphs
            write_metadata(metadata, plan, trace, wants_graphs, costs)
        return result

    def _timeout_ms(self, options: Any) -> int:
        """The step's own time limit, else the session's."""
        return (options.timeout_in_ms if options is not None else 0) or self._steps.timeout_ms


def _add_rewritten(partition_graphs: Any, structure: FetchStructure) -> None:
    """Adds the nodes that rewriting took from a watched step to the first graph: dumps bear their names."""
    names = [x.op.name for x in structure.elements] + [target.name for target in structure.targets]
    if not names:
        return
    graph = (*(x.op for x in structure.elements), *structure.targets)[0].graph
    known = {node.name for part in partition_graphs for node in part.node}
    needed = extract_sub_graph(graph.as_graph_def(), names)
    partition_graphs[0].node.extend(node for node in needed.node if node.name not in known)
