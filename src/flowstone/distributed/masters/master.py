"""`Master`: the sessions of clients, whose steps run on the tasks of a cluster (white paper 3, figure 3).

A client gives its graph once and then only what is new (Extend). For each combination of feeds, fetches and
targets the master divides the graph (`part_graphs`) and registers the parts with the workers, once; a step is
then one request to each worker that has a part (`running_step`). The part of the master's own task runs on
the thread that asks for the step.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import random
import threading
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from flowstone.distributed.cluster_devices import ClusterDevice, attributes_of
from flowstone.distributed.cluster_plans import ClusterPlan, TaskPlan, placement_of, transfers_of
from flowstone.distributed.links.worker_links import Described, WorkerLink
from flowstone.distributed.masters.cluster_costs import cost_graph, record
from flowstone.distributed.masters.partial_runs import PartialPlan, PartialRun, PartialRuns
from flowstone.distributed.masters.running_step import RegisteredPart, RunningStep
from flowstone.distributed.masters.step_plans import RegisteredParts, StepKind, StepPlan, StepPlans
from flowstone.distributed.task_names import matches_filters, task_of
from flowstone.distributed.workers.part_graphs import cut, divide, placed_nodes
from flowstone.distributed.workers.worker import Wanted
from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU
from flowstone.framework.graphs.graph import Graph, Operation
from flowstone.framework.graphs.import_graph import extend_graph
from flowstone.framework.graphs.partial_state import check_setup
from flowstone.framework.process import logging as log
from flowstone.framework.process.daemon_threads import DaemonThreads
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims
from flowstone.io.proto import worker_pb2
from flowstone.placement.placement_report import draw_placement, placement_table
from flowstone.runtime.plans.common_shapes import Shapes
from flowstone.runtime.plans.measured_runs import MeasuredRuns
from flowstone.runtime.plans.placement_log import PlacementLog
from flowstone.runtime.plans.plan_options import PlanOptions

__all__ = ["Master", "MasterSession"]

_NODE_BYTES = 4096  # about what a node takes of its worker's memory
_PATIENCE_S = 10.0  # after which the log says which tasks a new session waits for
_threads = DaemonThreads("flowstone master")


class _Callable(NamedTuple):
    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    targets: tuple[str, ...]
    timeout_ms: int


class MasterSession:
    """A client's session: its graph, and the parts of each kind of step. Safe for concurrent use."""

    def __init__(
        self,
        handle: str,
        config: Any,
        devices: Sequence[ClusterDevice],
        links: Mapping[str, WorkerLink],
        home: str,
    ) -> None:
        self.handle, self.config, self.devices = handle, config, devices
        self.graph = Graph()
        self.version = 0
        self.callables: dict[int, _Callable] = {}
        self._links, self._home = links, home
        self._assigned: dict[str, str] = {}
        self._measured = MeasuredRuns.wanted(config)
        self._options = PlanOptions(
            devices,  # type: ignore[arg-type]
            assigned=MappingProxyType(self._assigned),
            soft_placement=config.allow_soft_placement,
            compresses=config.graph_options.enable_bfloat16_sendrecv,
            costs=None if self._measured is None else self._measured.costs,
        )
        self._log = PlacementLog(self.graph) if config.log_device_placement else None
        self._plans = StepPlans(self._planned, self._dims, self._forget)
        self._partial_runs = PartialRuns()
        self._planning = threading.Lock()
        self._running: set[RunningStep] = set()
        self._is_closed = False

    # ---- the graph

    def extend(self, graph_def: Any, version: int | None = None) -> int:
        """Adds nodes to the graph; returns its new version. AbortedError if `version` is not the present one,
        InvalidArgumentError for a malformed graph."""
        with self._planning:
            if version is not None and version != self.version:
                raise errors.AbortedError(
                    None, None, f"Expected version {self.version}, but the request is for version {version}."
                )
            try:
                extend_graph(self.graph, graph_def)
            except (ValueError, TypeError, errors.OpError) as error:
                raise errors.InvalidArgumentError(None, None, str(error)) from None
            self.version += 1
            return self.version

    # ---- steps

    def step(
        self,
        feeds: Sequence[tuple[str, Any]],
        fetches: Sequence[str],
        targets: Sequence[str],
        timeout_ms: int = 0,
        described: Described | None = None,
    ) -> tuple[RunningStep, list[DType]]:
        """A step that is to be run, and the types of its results. `feeds`: runtime values by the tensors'
        names."""
        names = tuple([name for name, _ in feeds])
        timeout_ms = timeout_ms or self.config.operation_timeout_in_ms
        kind = StepKind(names, tuple(fetches), tuple(targets), is_watched=timeout_ms > 0)
        plan = self._plans.choose(kind, [value for _, value in feeds])
        if self._measured is not None and self._measured.is_due(kind):
            described = Described(Wanted() if described is None else described.asked, measures=True)
        values = [(value, tensor.dtype) for (_, value), tensor in zip(feeds, plan.fed)]
        count = len(plan.fetched)
        step = RunningStep(self.handle, plan.parts, values, count, self._links, timeout_ms, described)
        return step, [tensor.dtype for tensor in plan.fetched]

    def run(self, step: RunningStep) -> list[Any]:
        """Runs it to its end; raises its failure."""
        self._running.add(step)
        try:
            if self._is_closed:
                raise _closed()
            values = step.run()
        finally:
            self._running.discard(step)
        if step.described is not None and step.described.measures:
            self._measure(step.described)
        return values

    def _measure(self, described: Described) -> None:
        """Records what a step took; the plans that were made without any measurement are made anew."""
        assert self._measured is not None
        costs = self._measured.costs
        with self._planning:
            record(costs, described.step_stats())
            described.costs = cost_graph(costs, described.graphs())
            tasks = {task_of(device.name) for device in self.devices}
            if self._measured.is_first(self.handle) and len(tasks) < len(self.devices):
                self._plans.clear()

    def begin_partial_run(self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]) -> str:
        """Begins a step that is fed and fetched in several calls; returns its handle."""
        plan = self._plans.choose(StepKind(tuple(feeds), tuple(fetches), tuple(targets), in_pieces=True), ())
        step = RunningStep(self.handle, plan.parts, (), 0, self._links, kept=self._home)
        meeting = self._links[self._home].meeting(step.number)
        return self._partial_runs.add(PartialRun(plan.partial, step, meeting, self.run))

    def continue_partial_run(
        self, handle: str, feeds: Sequence[tuple[str, Any]], fetches: Sequence[str]
    ) -> list[tuple[Any, DType]]:
        """Feeds a step that `begin_partial_run` began; returns fetches with their types."""
        return self._partial_runs.go_on(handle, feeds, fetches)

    def _dims(self, kind: StepKind) -> list[Dims]:
        """The static shapes of the feeds; those of handles and strings do not matter."""
        fed = [self._element(name, "fed") for name in kind.feeds]
        return [tensor.dims if tensor.dtype.base_dtype.torch is not None else () for tensor in fed]

    def _planned(self, kind: StepKind, shapes: Shapes | None) -> StepPlan:
        """Divides the graph for feeds of these shapes (None: of all), and registers the parts."""
        with self._planning:
            return self._divided(kind, shapes)

    def _divided(self, kind: StepKind, shapes: Shapes | None) -> StepPlan:
        fed = [self._element(name, "fed") for name in kind.feeds]
        fetched = [self._element(name, "fetched") for name in kind.fetches]
        run = [self._operation(name) for name in kind.targets]
        if len(set(fed)) < len(fed):
            raise errors.InvalidArgumentError(None, None, "A tensor is fed twice under two names.")
        check_setup(fed if kind.in_pieces else (), fetched, run)
        options = self._options._replace(in_pieces=kind.in_pieces, feed_dims=shapes)
        parts, assigned, placement, costs = divide(fetched, run, fed, options, self._home)
        self._assigned.update(assigned)
        if self._log is not None:
            self._log.add(placement)
        if kind.is_watched:
            parts = [part._replace(is_watched=True) for part in parts]
        handles = _threads.at_once(lambda part: self._links[part.task].register(self.handle, part), parts)
        size = sum(part.graph_def.ByteSize() + _NODE_BYTES * len(part.graph_def.node) for part in parts)
        for part in parts:
            part.graph_def.Clear()  # the worker has it
        registered = RegisteredParts(map(RegisteredPart, parts, handles))
        host = next(d.name for d in self.devices if d.name.startswith(self._home) and d.device_type == CPU)
        partial = PartialPlan(dict(zip(kind.feeds, fed)), dict(zip(kind.fetches, fetched)), {}, host)
        return StepPlan(registered, fed, fetched, partial, shapes, size, costs)

    def _forget(self, parts: Sequence[RegisteredPart]) -> None:
        """Has the workers forget parts that no step runs any more."""
        for part in parts:
            with contextlib.suppress(errors.OpError):  # a worker that is gone has nothing to forget
                self._links[part.graph.task].deregister(self.handle, part.handle)

    # ---- explanations

    def explain(self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]) -> ClusterPlan:
        """What became of this kind of step here and with the workers, which get their parts if they do not
        have them. Nothing runs. Raises what `step` does for names that the graph does not have."""
        plan = self._plans.last(StepKind(tuple(feeds), tuple(fetches), tuple(targets)))
        options = self._options._replace(feed_dims=plan.shapes)
        told = _threads.at_once(
            lambda p: self._links[p.graph.task].explain(self.handle, p.handle), plan.parts
        )
        operations = [self._operation(name) for name in targets]
        with self._planning:  # once more, in the same way: what has state is assigned
            subgraph, chosen = placed_nodes(plan.fetched, operations, plan.fed, options, self._home)
            placement, graph = placement_of(subgraph, chosen), str(subgraph)
            parts = cut(subgraph, chosen, plan.fetched, plan.fed, options, self._home)
        count = {task_of(part.device.name): len(part.subgraph.nodes) for part in parts}
        tasks = [
            TaskPlan(
                part.graph.task,
                count.get(part.graph.task, 0),
                [feeds[i] for _, i in part.graph.feeds],
                [fetches[i] for _, i in part.graph.fetches],
                of_worker,
            )
            for part, of_worker in zip(plan.parts, told)
        ]
        return ClusterPlan(list(subgraph.log), graph, placement, tasks, transfers_of(parts))

    def explain_placement(
        self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], picture: str = ""
    ) -> tuple[str, bytes]:
        """Where this kind of step runs, and when by the cost model, as a table; and as a picture in the
        format `picture` ("png", "svg", "pdf"; none if empty: ImportError without matplotlib)."""
        fed = [self._element(name, "fed") for name in feeds]
        fetched = [self._element(name, "fetched") for name in fetches]
        operations = [self._operation(name) for name in targets]
        with self._planning:
            subgraph, chosen = placed_nodes(fetched, operations, fed, self._options, self._home)
            drawn = io.BytesIO()
            if picture:
                draw_placement(subgraph, chosen, drawn, self._options.costs, format=picture)
            return placement_table(subgraph, chosen, self._options.costs), drawn.getvalue()

    def _element(self, name: str, what: str) -> Tensor:
        try:
            return self.graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
        except (KeyError, ValueError) as error:
            raise errors.InvalidArgumentError(
                None, None, f"Tensor {name}, which is to be {what}, was not found in the graph: {error}"
            ) from None

    def _operation(self, name: str) -> Operation:
        try:
            return self.graph.get_operation_by_name(name.removeprefix("^"))
        except (KeyError, ValueError):
            raise errors.NotFoundError(
                None, None, f"PruneForTargets: Some target nodes not found: {name}"
            ) from None

    # ---- the end

    def close(self) -> None:
        """Cancels the steps under way, and tells the workers."""
        self._is_closed = True
        self._plans.stop()
        for step in list(self._running):
            step.cancel(_closed())
        self._partial_runs.end()

        def delete(link: WorkerLink) -> None:
            with contextlib.suppress(errors.OpError):  # who is gone has nothing to end
                link.delete_session(self.handle)

        _threads.at_once(delete, self._links.values())


class Master:
    """The master of the task `task`; `links`: the workers of all tasks, by name."""

    def __init__(self, task: str, links: Mapping[str, WorkerLink], default_config: Any) -> None:
        self._task, self._links, self._default_config = task, links, default_config
        self._sessions: dict[str, MasterSession] = {}
        self._numbers = itertools.count(1)
        self._has_ended = threading.Event()

    def create_session(
        self, graph_def: Any, config: Any, given_up: threading.Event | None = None
    ) -> MasterSession:
        """Begins a session, once all its tasks answer or the client has `given_up`. `config`: None for the
        server's own. InvalidArgumentError for a malformed graph, DeadlineExceededError if a task does not
        answer within the config's time limit of operations."""
        config = self._default_config if config is None else config
        filters = list(config.device_filters)
        links = {
            task: link
            for task, link in self._links.items()
            if task == self._task or matches_filters(task, filters)
        }
        limit_s = config.operation_timeout_in_ms / 1000 if config.operation_timeout_in_ms > 0 else math.inf
        devices = self._devices(links, given_up or threading.Event(), time.monotonic() + limit_s)
        handle = f"{random.getrandbits(62):016x}"
        session = MasterSession(handle, config, devices, links, self._task)
        session.extend(graph_def)
        request = worker_pb2.CreateWorkerSessionRequest(
            session_handle=handle, isolate_session_state=config.isolate_session_state, master_task=self._task
        )
        request.server_def.default_session_config.CopyFrom(config)
        for device in devices:
            attributes_of(device, request.cluster_device_attributes.add())
        self._sessions[handle] = session
        try:
            _threads.at_once(lambda link: link.create_session(request), links.values())
        except BaseException:
            self.close_session(handle)
            raise
        return session

    def _devices(
        self, links: Mapping[str, WorkerLink], given_up: threading.Event, deadline: float
    ) -> list[ClusterDevice]:
        """The devices of these tasks, the master's own first; waits for tasks that are not there yet."""
        order = sorted(links, key=lambda task: (task != self._task, task))
        found = _threads.at_once(lambda task: self._devices_of(task, links[task], given_up, deadline), order)
        return [device for devices in found for device in devices]

    def _devices_of(
        self, task: str, link: WorkerLink, given_up: threading.Event, deadline: float
    ) -> list[ClusterDevice]:
        waiting = f"CreateSession still waiting for response from worker: {task}"
        while not given_up.is_set() and not self._has_ended.is_set():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise errors.DeadlineExceededError(None, None, waiting)
            try:
                return link.devices(min(_PATIENCE_S, left_s))
            except (errors.DeadlineExceededError, errors.UnavailableError):
                log.info(waiting)
                given_up.wait(min(0.1, left_s))
        raise errors.CancelledError(None, None, f"The session was given up while it waited for {task}.")

    def session(self, handle: str) -> MasterSession:
        """The session of this handle. AbortedError for one that is not known, since the server began anew or
        it was closed."""
        session = self._sessions.get(handle)
        if session is None:
            raise errors.AbortedError(
                None, None, f"Session {handle} is not found. Possibly, this master has restarted."
            )
        return session

    def close_session(self, handle: str) -> None:
        """Ends a session. AbortedError for one that is not known."""
        session = self.session(handle)
        self._sessions.pop(handle, None)
        session.close()

    def add_callable(self, session: MasterSession, options: Any) -> int:
        """Keeps CallableOptions; returns the handle to run them by."""
        number = next(self._numbers)
        session.callables[number] = _Callable(
            tuple(options.feed),
            tuple(options.fetch),
            tuple(options.target),
            options.run_options.timeout_in_ms,
        )
        return number

    def reset(self, containers: Sequence[str], filters: Sequence[str]) -> None:
        """Drops containers on all tasks, and ends all sessions."""
        self._close_all()
        links = [link for task, link in self._links.items() if matches_filters(task, list(filters))]
        _threads.at_once(lambda link: link.reset(containers), links)

    def end(self) -> None:
        """Ends all sessions."""
        self._has_ended.set()
        self._close_all()

    def _close_all(self) -> None:
        for handle in list(self._sessions):
            with contextlib.suppress(errors.OpError):
                self.close_session(handle)


def _closed() -> errors.CancelledError:
    return errors.CancelledError(None, None, "Session has been closed.")
