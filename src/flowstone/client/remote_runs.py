"""`RemoteRuns`: how a session runs steps on a server; what `DescribedRuns` and `PartialRuns` are on this
machine.

Feeds are checked and converted here as for a local step, and travel as TensorProtos. An error that the server
reports gets the node of this graph, and the user's line.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import Any, cast

import torch

from flowstone.client.cluster_explanation import (
    ClusterExplanation,
    ClusterTrace,
    measured_text,
    measured_waiting,
)
from flowstone.client.feeds_fetches import (
    FetchStructure,
    as_given,
    fed_strings,
    feed_converter,
    fetch_converter,
    is_open,
)
from flowstone.client.step_observation import WARM_UP, StepKind, StepObserver, current_observer
from flowstone.distributed.cluster_devices import device_of
from flowstone.distributed.cluster_plans import ClusterPlan
from flowstone.distributed.servers.session_client import session_client
from flowstone.framework import errors
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.tensor_proto import messages

_NODE = re.compile(r"\[\[(?:\{\{)?node ([^ \]}]+)[^\]]*\]\]")
_PRIVATE = re.compile(r" \(op _\w+\)")
_CPU = torch.device("cpu")


class RemoteRuns:
    """The steps of a session with this graph on the server `target`."""

    def __init__(self, target: str, graph: Graph, config: Any) -> None:
        self._client = session_client(target, graph, config)
        self._graph = graph

    # ---- steps

    def runner(self, structure: FetchStructure, feeds: list[Tensor]) -> Callable[..., Any]:
        """A function of the feeds' values that runs a step."""
        plain, observer = self._runner(structure, feeds), current_observer()
        return plain if observer is None else self._observed(structure, feeds, plain, observer)

    def _runner(self, structure: FetchStructure, feeds: list[Tensor]) -> Callable[..., Any]:
        run = self._client.run
        enter = [(tensor.name, feed_converter(tensor, _CPU), tensor.dtype) for tensor in feeds]
        leave = [fetch_converter(tensor, True) for tensor in structure.elements]
        fetches = [tensor.name for tensor in structure.elements]
        targets = [operation.name for operation in structure.targets]
        rebuild, given = structure.rebuild, fed_strings(structure.elements, feeds)

        def run_step(*values: Any, options: Any = None, metadata: Any = None) -> Any:
            fed = [(name, convert(value), dtype) for (name, convert, dtype), value in zip(enter, values)]
            if not fetches and not targets:  # as in TensorFlow, there is nothing to ask for
                return rebuild([])
            try:
                results = run(fed, fetches, targets, options, metadata)
            except errors.OpError as error:
                raise self._located(error) from None
            taken = [convert(value) for convert, value in zip(leave, results)]
            for i, place in given.items():
                taken[i] = as_given(values[place])
            return rebuild(taken)

        return run_step

    def run(
        self,
        structure: FetchStructure,
        feeds: list[Tensor],
        values: Sequence[Any],
        options: Any,
        metadata: Any,
    ) -> Any:
        """Runs a step with RunOptions (or None), and replaces the contents of the RunMetadata (or None)."""
        return self._runner(structure, feeds)(*values, options=options, metadata=metadata)

    # ---- explanations

    def plan(self, structure: FetchStructure, feeds: list[Tensor]) -> ClusterPlan:
        """What the server's master and the workers make of a step. UnimplementedError from a server of
        TensorFlow."""
        return cast(ClusterPlan, self._asked(self._client.explain, structure, feeds))

    def _plan_if_told(self, structure: FetchStructure, feeds: list[Tensor]) -> ClusterPlan:
        try:
            return self.plan(structure, feeds)
        except errors.UnimplementedError:
            return ClusterPlan([], "", [], [], [])

    def placement(self, structure: FetchStructure, feeds: list[Tensor], picture: Any = None) -> str:
        """Where a step runs, as a table, and as a picture at the path `picture`."""
        kind = "" if picture is None else PurePath(picture).suffix.lstrip(".").lower() or "png"
        table, drawn = self._asked(self._client.explain_placement, structure, feeds, kind)
        if picture is not None:
            Path(picture).write_bytes(drawn)
        return str(table)

    def measured(
        self, structure: FetchStructure, feeds: list[Tensor], values: Sequence[Any], steps: int
    ) -> str:
        """Runs steps, and tells where the time of the last `steps` of them went and what waited for whom."""
        observer = StepObserver(steps, spread=False)
        run = self._observed(structure, feeds, self._runner(structure, feeds), observer)
        for _ in range(WARM_UP + 2 * steps + 1):
            run(*values)
        (kind,) = observer.kinds()
        explained: ClusterExplanation = kind.explanation()
        assert explained.measured is not None
        return "\n".join(["in short", *explained.gist(1), "", measured_text(explained.measured)])

    def _asked(
        self, ask: Callable[..., Any], structure: FetchStructure, feeds: list[Tensor], *more: Any
    ) -> Any:
        names = [x.name for x in feeds], [x.name for x in structure.elements]
        return self._explained(lambda: ask(*names, [each.name for each in structure.targets], *more))

    def _observed(
        self,
        structure: FetchStructure,
        feeds: list[Tensor],
        plain: Callable[..., Any],
        observer: StepObserver,
    ) -> Callable[..., Any]:
        """Wraps `plain`, which runs a step, so that `observer` has some of its steps traced."""
        options = messages("config_pb2").RunOptions(trace_level=3, output_partition_graphs=True)
        plans: list[ClusterPlan] = []

        def traced(*values: Any) -> tuple[Any, ClusterTrace]:
            metadata = messages("config_pb2").RunMetadata()
            begin = time.perf_counter_ns()
            result = plain(*values, options=options, metadata=metadata)
            trace = ClusterTrace(metadata, (time.perf_counter_ns() - begin) / 1e6)
            if not plans:  # now, for the session may have ended when it is asked for
                plans.append(self._plan_if_told(structure, feeds))
            return result, trace

        def explain(kind: StepKind, traces: list[Any], shapes: Any) -> ClusterExplanation:
            measured = measured_waiting([each[0] for each in traces], kind.durations_ms) if traces else None
            plan = plans[0] if plans else ClusterPlan([], "", [], [], [])
            return ClusterExplanation(
                kind.fetches, kind.feeds, kind.runs, kind.total_ms, kind.is_cold, plan, measured
            )

        by_shape = any(is_open(tensor) for tensor in feeds)
        return observer.any_runner(self, structure, feeds, by_shape, plain, traced, explain)

    # ---- steps in several calls

    def begin(self, structure: FetchStructure, feeds: list[Tensor]) -> str:
        """Begins a step that is fed and fetched in several calls; returns its handle."""
        return str(
            self._explained(
                lambda: self._client.begin_partial_run(
                    [tensor.name for tensor in feeds],
                    [tensor.name for tensor in structure.elements],
                    [operation.name for operation in structure.targets],
                )
            )
        )

    def go_on(
        self, handle: str, fetches: FetchStructure, feeds: Sequence[tuple[Tensor, Any]], timeout_ms: int
    ) -> Any:
        """Feeds a step that `begin` began, and returns fetches."""
        fed = [(tensor.name, feed_converter(tensor, _CPU)(value), tensor.dtype) for tensor, value in feeds]
        names = [tensor.name for tensor in fetches.elements]
        values = self._explained(lambda: self._client.run(fed, names, [], partial_run=handle))
        leave = [fetch_converter(tensor, True) for tensor in fetches.elements]
        return fetches.rebuild([convert(value) for convert, value in zip(leave, values)])

    # ---- the rest of a session

    def devices(self) -> list[Any]:
        """The devices of all tasks that steps may use."""
        return [device_of(each) for each in self._client.list_devices()]

    def end(self) -> None:
        """Closes the session on the server."""
        self._client.close()

    def _explained(self, call: Callable[[], Any]) -> Any:
        """Calls, and names the node of this graph in an error."""
        try:
            return call()
        except errors.OpError as error:
            raise self._located(error) from None

    def _located(self, error: errors.OpError) -> errors.OpError:
        found = _NODE.search(error.message)
        name = found[1] if found else error.node_name
        operation = self._graph._by_name.get(name) or self._graph._by_name.get(name.rpartition("/")[0])
        if operation is None:  # the end of an edge between tasks is named after the node that is sent
            return error
        message, line = error.message, operation.user_line
        if found and " (op _" in found[0]:  # a word of plans
            message = message.replace(found[0], _PRIVATE.sub(f" (op {operation.type})", found[0]))
            found = _NODE.search(message)
        if found and line and " defined at " not in found[0]:
            message = message.replace(found[0], f"{found[0][:-2]} defined at {line[0]}:{line[1]}]]")
        kind: Any = type(error)
        return kind(lambda: operation.node_def, operation, message)  # type: ignore[no-any-return]
