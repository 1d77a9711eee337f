"""`Worker`: keeps the state of one task, and runs the parts of graphs that masters give it.

A master creates a session here (a *worker session*), registers parts of its graph, and has them run, a step
at a time. A part is planned and compiled as a session plans its graph (`runtime/plans/plan.py`), with the
devices of this task. All sessions share the task's containers, unless one was created with
``isolate_session_state``. The worker is called by the threads of `server`, and blocks those that run a part.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flowstone.distributed.cluster_devices import ClusterDevice
from flowstone.distributed.cluster_plans import WorkerPlan, worker_plan
from flowstone.distributed.workers.part_graphs import ReadPart, read_part
from flowstone.distributed.workers.part_runs import check_feed, has_loops, is_quick, run_plan
from flowstone.distributed.workers.step_rendezvous import Neighbourhood, StepRendezvous, incarnation_of
from flowstone.distributed.workers.transfers import write_arrivals
from flowstone.distributed.workers.worker_steps import WorkerSteps
from flowstone.framework import errors
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.framework.machine import machine
from flowstone.framework.types.dtypes import DType
from flowstone.ops.control.session_tensors import refuse_session_tensors
from flowstone.runtime.code.tracing import Trace
from flowstone.runtime.explaining.step_stats import step_stats
from flowstone.runtime.explaining.traced_plans import partition_graph, start_trace
from flowstone.runtime.plans.plan import Plan, make_plan
from flowstone.runtime.plans.plan_options import PlanOptions
from flowstone.runtime.plans.session_options import plan_options, release_states
from flowstone.runtime.process.device import Device
from flowstone.runtime.steps.collectives import Collectives
from flowstone.runtime.steps.step import Step

__all__ = ["Description", "Wanted", "Worker"]


class _Registered(NamedTuple):
    """A registered part: its plan, the places of its feeds and fetches by key, the fetches' types, whether
    running it neither waits nor takes long, the intra-op threads of its steps, and whether these ask at every
    node if they are to end."""

    part: ReadPart
    plan: Plan
    feeds: dict[str, int]
    fetches: dict[str, int]
    dtypes: list[DType]
    is_quick: bool
    threads: int
    is_watched: bool
    traced: list[Plan]  # at most one, made when a trace is asked for


class Wanted(NamedTuple):
    """How a step is to be described: by a trace, by the graphs of the devices."""

    trace: bool = False
    graphs: bool = False


@dataclass
class Description:
    """What a worker tells of its part of a step: StepStats, or None, and GraphDefs."""

    step_stats: Any = None
    graphs: list[Any] = field(default_factory=list)


class _WorkerSession:
    """What one master's session has here: `options` to plan with, the registered parts, the containers of its
    own, if it is isolated, and the intra-op threads of its steps (0: as many as there are)."""

    def __init__(self, options: PlanOptions, isolated: ResourceStore | None, threads: int) -> None:
        self.options, self.isolated, self.threads = options, isolated, threads
        self.graphs: dict[str, _Registered] = {}
        self.assigned: dict[str, str] = {}
        self.lock = threading.Lock()


class Worker:
    """The worker of the task `task`.

    `devices`: those of this process. ``others(step)`` is the way from a step here to the other tasks;
    ``collectives(config)``, where the collective operations of a session meet those of other tasks;
    `threads`: the intra-op threads of sessions that do not say how many (0: as many as there are).
    """

    def __init__(
        self,
        task: str,
        devices: Sequence[Device],
        others: Callable[[int], Neighbourhood],
        collectives: Callable[[Any], Collectives | None] = lambda config: None,
        threads: int = 0,
    ) -> None:
        self.task, self.devices = task, list(devices)
        self._collectives, self._threads = collectives, threads
        self.resources = ResourceStore()
        self._others = others
        self._incarnations: dict[str, int] = {device.name: device.incarnation for device in devices}
        self._sessions: dict[str, _WorkerSession] = {}
        self._steps: WorkerSteps[Step] = WorkerSteps(self._new_step)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    # ---- sessions and graphs

    def create_session(
        self, handle: str, config: Any, isolates: bool, cluster: Iterable[ClusterDevice] = ()
    ) -> None:
        """Begins a session. `config`: its ConfigProto, or None; `cluster`: the devices of all tasks.

        AlreadyExistsError if there is one of this handle.
        """
        own = ResourceStore() if isolates else None
        options = plan_options(config, own or self.resources, self.devices, self._collectives(config))
        for environment in options.environments.values():
            refuse_session_tensors(environment.states)
        with self._lock:
            if handle in self._sessions:
                raise errors.AlreadyExistsError(None, None, f"Session already exists: {handle}")
            wanted = 0 if config is None else max(0, config.intra_op_parallelism_threads)
            self._sessions[handle] = _WorkerSession(options, own, wanted or self._threads)
            self._incarnations.update((device.name, device.incarnation) for device in cluster)

    def delete_session(self, handle: str) -> None:
        """Ends a session: its parts are forgotten, and what its kernels keep running ends."""
        with self._lock:
            session = self._sessions.pop(handle, None)
        if session is not None:
            release_states(session.options)
            if session.isolated is not None:
                session.isolated.reset()

    def register(self, handle: str, message: Any, is_watched: bool = False) -> str:
        """Plans a part, a GraphDef; returns its handle. `is_watched`: its steps can be ended between any two
        nodes, not only where they wait.

        AbortedError for a session that is not known, InvalidArgumentError for a malformed part.
        """
        session = self._session(handle)
        try:
            part = read_part(message)
        except ValueError as error:
            raise errors.InvalidArgumentError(None, None, f"The part for {self.task}: {error}") from None
        with session.lock:
            options = session.options._replace(assigned=session.assigned, watched=is_watched)
            plan = make_plan(list(part.fetches.values()), part.targets, list(part.feeds.values()), options)
            session.assigned.update(plan.assigned)
            name = f"{next(self._numbers):016x}"
            session.graphs[name] = _Registered(
                part,
                plan,
                {key: i for i, key in enumerate(part.feeds)},
                {key: i for i, key in enumerate(part.fetches)},
                [tensor.dtype for tensor in part.fetches.values()],
                is_quick(plan) and not has_loops(part.graph),
                session.threads,
                is_watched,
                [],
            )
        return name

    def explain(self, handle: str, graph: str) -> WorkerPlan:
        """What became of a part here. AbortedError if it is not known."""
        return worker_plan(self._registered(handle, graph).plan, machine.current().profile.name)

    def deregister(self, handle: str, graph: str) -> None:
        """Forgets a part. AbortedError if it is not known."""
        registered = self._session(handle).graphs.pop(graph, None)
        if registered is None:
            raise _unknown_graph(graph)
        for plan in (registered.plan, *registered.traced):
            if plan.captured is not None:
                plan.captured.release("its master forgot the part")

    def _session(self, handle: str) -> _WorkerSession:
        session = self._sessions.get(handle)
        if session is None:
            raise errors.AbortedError(
                None,
                None,
                f"Session handle is not found: {handle}. "
                f'Possibly this worker ("{self.task}") just restarted.',
            )
        return session

    # ---- steps

    def run(self, handle: str, graph: str, number: int, feeds: Sequence[Any]) -> list[Any]:
        """Runs a part in the step `number` with all its feeds, in their order; returns its fetches.

        The error of a node that failed, or with which the step was aborted.
        """
        registered = self._registered(handle, graph)
        return self._run(registered, registered.plan, number, feeds)[0]

    def _run(
        self,
        registered: _Registered,
        plan: Plan,
        number: int,
        feeds: Sequence[Any],
        trace: Trace | None = None,
    ) -> tuple[list[Any], Step]:
        if len(feeds) != len(registered.feeds):
            raise errors.InvalidArgumentError(
                None, None, f"The part takes {len(registered.feeds)} feeds, but got {len(feeds)}"
            )
        for value, tensor in zip(feeds, registered.part.feeds.values()):
            check_feed(value, tensor)
        with self._lock:
            step = self._steps.begun(number)
        try:
            results = run_plan(plan, step, feeds, registered.threads, trace)
        except Exception as error:
            self.fail(number, error)
            raise step.error or error from None
        finally:
            with self._lock:
                self._steps.ended(number)
        if not registered.part.sends:  # nobody will ask for anything: the step is over here
            self.clean_up(number)
        return list(results), step

    def run_by_keys(
        self,
        handle: str,
        graph: str,
        number: int,
        feeds: Mapping[str, Any],
        fetches: Sequence[str],
        wanted: Wanted,
    ) -> tuple[list[tuple[Any, DType]], Description]:
        """As `run_described`, with feeds and fetches by their keys, the latter with their types."""
        registered = self._registered(handle, graph)
        try:
            given = [feeds[key] for key in registered.feeds]
            places = [registered.fetches[key] for key in fetches]
        except KeyError as error:
            raise errors.InvalidArgumentError(
                None, None, f"The part {graph} has no feed or fetch {error.args[0]}"
            ) from None
        if any(wanted):
            results, told = self.run_described(handle, graph, number, given, wanted)
        else:
            results, told = self.run(handle, graph, number, given), Description()
        return [(results[i], registered.dtypes[i]) for i in places], told

    def run_described(
        self, handle: str, graph: str, number: int, feeds: Sequence[Any], wanted: Wanted
    ) -> tuple[list[Any], Description]:
        """As `run`, for a step that is traced, or whose graphs are asked for."""
        registered = self._registered(handle, graph)
        plan = self._described_plan(self._session(handle), registered, wanted)
        trace = start_trace(plan, self.devices) if wanted.trace else None
        values, step = self._run(registered, plan, number, feeds, trace)
        description = Description()
        if trace is not None:
            trace.finish()
            nodes = {device: {node.name: node for node in part.nodes} for device, part in plan.parts.items()}
            description.step_stats = step_stats(trace, nodes)
            assert isinstance(step.rendezvous, StepRendezvous)
            write_arrivals(step.rendezvous.arrivals, trace.epoch, description.step_stats)
        if wanted.graphs:
            description.graphs = [partition_graph(part, device) for device, part in plan.parts.items()]
        return values, description

    def _described_plan(self, session: _WorkerSession, registered: _Registered, wanted: Wanted) -> Plan:
        if not wanted.trace:
            return registered.plan
        with session.lock:
            if not registered.traced:
                part = registered.part
                options = session.options._replace(
                    assigned=session.assigned, traced=True, watched=registered.is_watched
                )
                registered.traced.append(
                    make_plan(list(part.fetches.values()), part.targets, list(part.feeds.values()), options)
                )
            return registered.traced[0]

    def fetched_nodes(self, handle: str, graph: str) -> list[str]:
        """The names of the nodes that a part's fetches are of."""
        return [tensor.op.name for tensor in self._registered(handle, graph).part.fetches.values()]

    def is_quick(self, handle: str, graph: str) -> bool:
        """Whether running the part neither waits nor takes long, so that any thread may do it."""
        session = self._sessions.get(handle)
        registered = None if session is None else session.graphs.get(graph)
        return registered is not None and registered.is_quick

    def _registered(self, handle: str, graph: str) -> _Registered:
        registered = self._session(handle).graphs.get(graph)
        if registered is None:
            raise _unknown_graph(graph)
        return registered

    def receive(self, number: int, key: str, done: Callable[..., None]) -> None:
        """Calls ``done((value,), None)`` with what a part sends under this key, or ``done(None, error)``.

        AbortedError for a step that is over, and for a key of another incarnation of this task.
        """
        device, incarnation = incarnation_of(key)
        if self._incarnations.get(device) != incarnation:
            raise errors.AbortedError(
                None,
                None,
                f"RecvTensor expects a different device incarnation: {incarnation} vs. "
                f'{self._incarnations.get(device)}. Your worker job ("{self.task}") was probably restarted.',
            )
        self.meeting(number).answer(key, done)

    def fail(self, number: int, error: BaseException) -> None:
        """Ends a step early with this error."""
        with self._lock:
            step = self._steps.failed(number, error)
        if step is not None:
            step.cancel(error)

    def clean_up(self, number: int) -> None:
        """The step is over; what nobody took is dropped."""
        with self._lock:
            step = self._steps.cleaned(number)
        if step is not None:
            step.is_over = True
            step.cancel(errors.AbortedError(None, None, f"Step {number:016x} is over"))

    def lost(self, task: str, error: BaseException) -> None:
        """The connection to a task broke: what steps here await from it does not come."""
        with self._lock:
            steps = self._steps.all()
        for _, step in steps:
            meeting = step.rendezvous
            assert isinstance(meeting, StepRendezvous)
            meeting.lost(task, error)

    def knows(self, number: int) -> bool:
        """Whether anything is kept of a step."""
        return number in self._steps

    def reset(self, containers: Iterable[str]) -> None:
        """Drops these containers, or all if none is named."""
        self.resources.reset(containers)

    def end(self) -> None:
        """Ends all steps and sessions."""
        with self._lock:
            steps = self._steps.all()
        for number, _ in steps:
            self.fail(number, errors.CancelledError(None, None, "The server is shutting down."))
        for handle in list(self._sessions):
            self.delete_session(handle)

    def _new_step(self, number: int) -> Step:
        step = Step()
        step.rendezvous = StepRendezvous(self.task, self._incarnations, self._others(number))
        return step

    def pushed(self, number: int, key: str, value: Any) -> None:
        """Another task gives a value to a step here. Values for steps that are over are dropped."""
        try:
            meeting = self.meeting(number)
        except errors.AbortedError:
            return
        meeting.arrived(key, value)

    def meeting(self, number: int) -> StepRendezvous:
        """Where a step's values meet. AbortedError for a step that is over."""
        with self._lock:
            found = self._steps.asked(number).rendezvous
        assert isinstance(found, StepRendezvous)
        return found


def _unknown_graph(graph: str) -> errors.AbortedError:
    return errors.AbortedError(
        None, None, f"Graph handle is not found: {graph}. Possibly, this worker just restarted."
    )
