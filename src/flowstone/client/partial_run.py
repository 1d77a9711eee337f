"""Partial runs: one step that is fed and fetched in several calls.

`PartialPlan` plans the step for all feeds and fetches together; the session keeps the plan for later runs of
the same elements. `PartialRun` starts the step on a thread of its own. A fed tensor becomes a Receive from
the client, a fetched one a Send to it (white paper 4.2), so each call sends values to the step's rendezvous
and receives others from it. Every node runs once, as soon as its inputs are there, whichever call feeds them.

The thread, and the values that the step holds, end with the step: when all is done, when a node fails, when a
call exceeds the session's time limit, when the session is closed or garbage-collected, or when the `Handle`
is garbage-collected. The user holds the only reference to it; a copy of its text does not keep the run alive.

What a call may feed and fetch is in `framework/graphs/partial_state.py`. A refused call changes nothing. A
failure of a node ends the run; its error is raised by the call under way.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
import traceback
import weakref
from _thread import start_new_thread
from collections.abc import Sequence
from typing import Any

import torch

from flowstone.client.feeds_fetches import (
    FetchStructure,
    feed_converter,
    feed_elements,
    fetch_converter,
    plan_key,
)
from flowstone.client.planning import Planner
from flowstone.client.steps import Steps
from flowstone.framework import errors
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.graphs.partial_state import PartialState, check_setup
from flowstone.framework.process.finalizers import when_freed
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.tensor import Tensor
from flowstone.partition.client_ends import client_way, connect_client
from flowstone.partition.subgraphs import partition
from flowstone.rewriting.analyses.branches import SWITCHES
from flowstone.runtime.code.segments import dead
from flowstone.runtime.execution.executor import DEAD
from flowstone.runtime.execution.partitioned_program import PartitionedProgram
from flowstone.runtime.execution.unit_program import UnitProgram
from flowstone.runtime.process import threads
from flowstone.runtime.process.device import default_device, is_divided
from flowstone.runtime.steps.step import Step, deadline_error


class Handle(str):
    """The name of a run, which ends when this object is garbage-collected."""


class PartialRuns:
    """A session's partial runs: plans by their elements, and the current runs by their handles."""

    def __init__(self, planner: Planner, steps: Steps) -> None:
        self._planner, self._steps = planner, steps
        self._plans: dict[Any, PartialPlan] = {}
        self._runs: dict[str, PartialRun] = {}
        self._numbers = itertools.count()

    def begin(self, structure: FetchStructure, feeds: list[Tensor]) -> Handle:
        """Starts a run; plans it the first time."""
        key = plan_key(structure, feeds)
        with self._planner.lock:
            plan = self._plans.get(key)
            if plan is None:
                plan = self._plans[key] = PartialPlan(self._planner, structure, feeds)
        name = f"partial_run_{next(self._numbers)}"
        self._runs[name] = PartialRun(self._steps, plan)
        handle = Handle(name)
        when_freed(handle, _forget, weakref.ref(self), name)
        return handle

    def go_on(
        self, handle: str, fetches: FetchStructure, feeds: Sequence[tuple[Tensor, Any]], timeout_ms: int
    ) -> Any:
        """What `PartialRun.run` does for the run of this handle. InvalidArgumentError if there is none."""
        run = self._runs.get(handle)
        if run is None:
            raise _invalid("Must run 'setup' before performing partial runs!")
        try:
            return run.run(fetches, feeds, timeout_ms)
        finally:
            if run.is_over:
                self.forget(handle)

    def forget(self, handle: str) -> None:
        """Forgets the run, and cancels it unless it is over."""
        self._runs.pop(handle, None)


def _cancel(step: Step) -> None:
    """Cancels on a thread of its own, since the caller, who dropped the last reference, may hold any lock."""
    start_new_thread(step.cancel, ())


def _forget(runs: weakref.ref[PartialRuns], handle: str) -> None:
    living = runs()
    if living is not None:
        living.forget(handle)


class PartialPlan:
    """The program of a step in parts, the `host` that its client is on, how values enter it, and which feeds
    each fetch needs."""

    def __init__(self, planner: Planner, structure: FetchStructure, feeds: list[Tensor]) -> None:
        """InvalidArgumentError for nothing to fetch, and for a tensor that is both fed and fetched. The
        caller has the planner's lock."""
        check_setup(feeds, structure.elements, structure.targets)
        self.host = planner.options.devices[0].name
        self.program, device = _program(planner, structure, feeds)
        self.feeds, self.fetches = dict.fromkeys(feeds), dict.fromkeys(structure.elements)
        self.enter = {tensor: feed_converter(tensor, device) for tensor in feeds}
        self.leave = {tensor: fetch_converter(tensor, True) for tensor in structure.elements}
        self.needs: dict[Tensor, list[Tensor]] = {}


class PartialRun:
    """One running step."""

    def __init__(self, steps: Steps, plan: PartialPlan) -> None:
        self._plan = plan
        self._state = PartialState(plan.feeds, plan.fetches, plan.needs)
        self._step = steps.new()
        self._ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._leave_step = when_freed(self, _cancel, self._step)
        threading.Thread(
            target=_run,
            args=(plan.program, self._step, self._ended, steps.intra_op_threads),
            name="flowstone partial run",
            daemon=True,
        ).start()

    @property
    def is_over(self) -> bool:
        """Whether all feeds were given and all fetches taken, or the step has failed."""
        return self._state.is_complete or self._step.error is not None

    def run(self, fetches: FetchStructure, feeds: Sequence[tuple[Tensor, Any]], timeout_ms: int = 0) -> Any:
        """Gives these feeds, waits for these fetches, and returns them in their form.

        `timeout_ms`: how long to wait (0: as long as it takes); DeadlineExceededError after that ends the
        run.
        """
        deadline = time.monotonic() + timeout_ms / 1e3 if timeout_ms else None
        try:
            with self._lock:
                return fetches.rebuild(self._results(fetches.elements, feeds, deadline))
        finally:
            if self.is_over:
                self._leave_step()

    def _results(
        self, fetches: Sequence[Tensor], feeds: Sequence[tuple[Tensor, Any]], deadline: float | None
    ) -> list[Any]:
        fed = [tensor for tensor, _ in feeds]
        self._state.check_feeds(fed)
        values = [self._plan.enter[tensor](value) for tensor, value in feeds]
        self._state.check_fetches(fetches, fed, self._step.error is not None)
        for tensor, value in zip(fed, values):
            self._state.feed(tensor)
            self._step.rendezvous.send(client_way("feed", tensor, self._plan.host), _kept(value))
        for tensor in fetches:
            self._state.fetch(tensor)
        results = [self._plan.leave[tensor](self._received(tensor, deadline)) for tensor in fetches]
        if self._state.is_complete:
            self._end(deadline)
        return results

    def _received(self, tensor: Tensor, deadline: float | None) -> Any:
        arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._step.rendezvous.receive(
            client_way("fetch", tensor, self._plan.host),
            lambda values, error=None: arrived.put((values, error)),
        )
        values, error = self._awaited(arrived, deadline)
        if error is not None:
            self._end(None)
            raise error
        if values[0] is DEAD:
            self._step.cancel()
            dead()
        return values[0]

    def _end(self, deadline: float | None) -> None:
        """Waits for the rest of the step, and raises its failure."""
        error = self._awaited(self._ended, deadline)
        self._ended.put(error)
        if error is not None:
            raise error

    def _awaited(self, arriving: queue.SimpleQueue[Any], deadline: float | None) -> Any:
        """The next value from the queue; passing the deadline ends the step."""
        try:
            return arriving.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            self._step.cancel(deadline_error())
            return arriving.get()


def fed_tensors(graph: Graph, key: Any) -> list[Tensor]:
    """The tensors that this item of a list of feeds refers to. TypeError or ValueError for what cannot be
    fed.
    """
    if nest.is_composite(key):
        return [tensor for part in nest.components(key) for tensor in fed_tensors(graph, part)]
    return [tensor for tensor, _ in feed_elements(graph, key, None)]


# ---- the program


def _program(
    planner: Planner, structure: FetchStructure, feeds: list[Tensor]
) -> tuple[UnitProgram | PartitionedProgram, torch.device]:
    """The step's program, and the device that feeds go to."""
    devices, environments = planner.options.devices, planner.options.environments
    subgraph, chosen = planner.placed(structure, feeds, in_pieces=True)
    planner.assign(chosen)
    host = devices[0]
    connect_client(subgraph, feeds, structure.elements, host, chosen)
    used = set(chosen.values()) or {default_device(devices)}
    if is_divided(used):
        dynamic = any(node.type in SWITCHES for node in subgraph.nodes)
        parts = partition(subgraph, chosen, host)
        return PartitionedProgram.compiled(parts, environments, 0, dynamic=dynamic), host.torch
    environment = environments[next(iter(used)).name]
    return UnitProgram.compiled(subgraph, environment), environment.device


def _run(
    program: Any, step: Step, ended: queue.SimpleQueue[BaseException | None], intra_op_threads: int
) -> None:
    """The thread's function; holds no reference to the session, so that it can be garbage-collected."""
    failure: BaseException | None = None
    try:
        with torch.inference_mode():
            threads.run_with(intra_op_threads, lambda: program.function(step))
    except Exception as error:
        traceback.clear_frames(error.__traceback__)  # they hold the step's values; the step holds the error
        failure = error
        step.cancel(error)
    ended.put(failure)


def _kept(value: Any) -> Any:
    """A copy: the caller may change the array before the step uses it."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    return value.copy() if hasattr(value, "copy") else value


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)
