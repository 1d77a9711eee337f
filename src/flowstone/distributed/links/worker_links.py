"""How a master reaches the workers: the one in its own process by calls, the others by messages.

Parts of a step run by `WorkerLink.run`, which does not wait. All else waits, on a thread of the master's.
"""

from __future__ import annotations

import concurrent.futures
import functools
import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from flowstone.distributed.cluster_devices import ClusterDevice, attributes_of, device_of
from flowstone.distributed.cluster_plans import WorkerPlan, read_worker_plan
from flowstone.distributed.links.neighbours import EXPLAIN_PART, SERVICE, Neighbour, error_text
from flowstone.distributed.task_names import from_task
from flowstone.distributed.wire import frames
from flowstone.distributed.wire.tensor_codec import proto_of_value, value_of_proto
from flowstone.distributed.wire.transport import run_soon, wait_for
from flowstone.distributed.workers.part_graphs import PartGraph
from flowstone.distributed.workers.transfers import complete_transfers
from flowstone.distributed.workers.worker import Description, Wanted, Worker
from flowstone.framework import errors
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.tensor_proto import messages
from flowstone.io.proto import worker_pb2
from flowstone.runtime.steps.rendezvous import Rendezvous

__all__ = ["Described", "Done", "LocalLink", "RemoteLink", "WorkerLink", "described_by"]

Done = Callable[[Any, BaseException | None], None]
_CONTROL_S = 60.0  # how long a worker may take to end a session or to drop containers
_REGISTER_S = 600.0


class Described:
    """What is asked of a step, and what the workers told, their clocks set to the master's.

    `asked`: what the client wants to know; `wanted`: what the workers are asked for. `costs`, if the step
    `measures`: the CostGraphDef that came of it.
    """

    def __init__(self, asked: Wanted, measures: bool = False) -> None:
        self.asked, self.measures = asked, measures
        is_traced = asked.trace or measures
        self.wanted = Wanted(is_traced, asked.graphs or is_traced)  # graphs say which Send a value is of
        self.told: list[Description] = []
        self.costs: Any = None

    def add(self, told: Description, clock_offset_ns: int = 0) -> None:
        """Adds what a worker told, whose clock is ahead by so much."""
        if told.step_stats is not None and clock_offset_ns:
            for device in told.step_stats.dev_stats:
                for node in device.node_stats:
                    _shift(node, clock_offset_ns)
        self.told.append(told)

    def write(self, metadata: Any) -> None:
        """Replaces the contents of a RunMetadata."""
        metadata.Clear()
        if self.wanted.trace:
            metadata.step_stats.CopyFrom(self.step_stats())
        if self.asked.graphs:
            metadata.partition_graphs.extend(self.graphs())
        if self.costs is not None:
            metadata.cost_graph.CopyFrom(self.costs)

    def step_stats(self) -> Any:
        """The StepStats of all tasks, with a row for each tensor that went from one to another."""
        message = messages("step_stats_pb2").StepStats()
        for told in self.told:
            if told.step_stats is not None:
                message.dev_stats.extend(told.step_stats.dev_stats)
        complete_transfers(message, self.graphs())
        return message

    def graphs(self) -> list[Any]:
        """The GraphDefs of all devices."""
        return [graph for told in self.told for graph in told.graphs]


def described_by(options: Any) -> Described | None:
    """What RunOptions ask for; None for nothing."""
    wanted = Wanted(options.trace_level > 0, options.output_partition_graphs)
    return Described(wanted) if any(wanted) else None


def _shift(node: Any, offset_ns: int) -> None:
    node.all_start_nanos -= offset_ns
    node.scheduled_nanos -= offset_ns
    node.all_start_micros, node.scheduled_micros = node.all_start_nanos // 1000, node.scheduled_nanos // 1000


class WorkerLink(Protocol):
    """A worker as a master sees it. Raises what the worker raises, UnavailableError if it cannot be
    reached."""

    is_local: bool

    def devices(self, timeout_s: float) -> list[ClusterDevice]:
        """The worker's devices. DeadlineExceededError if it does not answer in time."""

    def create_session(self, request: Any) -> None:
        """Begins a session (CreateWorkerSessionRequest)."""

    def delete_session(self, handle: str) -> None:
        """Ends a session."""

    def register(self, handle: str, part: PartGraph) -> str:
        """Registers a part, returns its handle."""

    def deregister(self, handle: str, graph: str) -> None:
        """Has a part forgotten."""

    def explain(self, handle: str, graph: str) -> WorkerPlan | None:
        """What the worker made of a part; None if it is a server that cannot tell."""

    def run(
        self,
        handle: str,
        graph: str,
        step: int,
        part: PartGraph,
        feeds: Sequence[tuple[Any, DType]],
        done: Done,
        described: Described | None = None,
    ) -> None:
        """Begins to run a part; calls ``done(values, None)`` with all its fetches, or ``done(None, error)``.
        `described`: what is asked of the step, and where the answers are put."""

    def fail(self, step: int, error: BaseException) -> None:
        """Has a step end early; does not wait."""

    def clean_up(self, step: int) -> None:
        """The step is over; does not wait."""

    def reset(self, containers: Sequence[str]) -> None:
        """Drops containers."""

    def meeting(self, step: int) -> Rendezvous:
        """Where a step meets its client, on the master's own task."""


class LocalLink:
    """The worker of this process. Its `run` computes on the calling thread."""

    is_local = True

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def devices(self, timeout_s: float) -> list[ClusterDevice]:
        found = worker_pb2.GetStatusResponse()
        for device in self._worker.devices:
            attributes_of(device, found.device_attributes.add())
        return [device_of(each) for each in found.device_attributes]

    def create_session(self, request: Any) -> None:
        cluster = [device_of(each) for each in request.cluster_device_attributes]
        config = request.server_def.default_session_config
        self._worker.create_session(request.session_handle, config, request.isolate_session_state, cluster)

    def delete_session(self, handle: str) -> None:
        self._worker.delete_session(handle)

    def register(self, handle: str, part: PartGraph) -> str:
        return self._worker.register(handle, part.graph_def, part.is_watched)

    def deregister(self, handle: str, graph: str) -> None:
        self._worker.deregister(handle, graph)

    def explain(self, handle: str, graph: str) -> WorkerPlan | None:
        return self._worker.explain(handle, graph)

    def run(
        self,
        handle: str,
        graph: str,
        step: int,
        part: PartGraph,
        feeds: Sequence[tuple[Any, DType]],
        done: Done,
        described: Described | None = None,
    ) -> None:
        given = [value for value, _ in feeds]
        try:
            if described is None:
                values = self._worker.run(handle, graph, step, given)
            else:
                values, told = self._worker.run_described(handle, graph, step, given, described.wanted)
                described.add(told)
        except Exception as error:
            done(None, error)
        else:
            done(values, None)

    def fail(self, step: int, error: BaseException) -> None:
        self._worker.fail(step, error)

    def clean_up(self, step: int) -> None:
        self._worker.clean_up(step)

    def reset(self, containers: Sequence[str]) -> None:
        self._worker.reset(containers)

    def meeting(self, step: int) -> Rendezvous:
        return self._worker.meeting(step)


class RemoteLink:
    """The worker of another process."""

    is_local = False

    def __init__(self, neighbour: Neighbour) -> None:
        self._neighbour = neighbour
        self._running: dict[int, concurrent.futures.Future[bytes]] = {}  # by gRPC

    def devices(self, timeout_s: float) -> list[ClusterDevice]:
        answer = self._ask("GetStatus", worker_pb2.GetStatusRequest(), timeout_s, waits=True)
        found = worker_pb2.GetStatusResponse.FromString(answer)
        self._neighbour.direct()
        return [device_of(each) for each in found.device_attributes]

    def create_session(self, request: Any) -> None:
        self._ask("CreateWorkerSession", request, _CONTROL_S)

    def delete_session(self, handle: str) -> None:
        request = worker_pb2.DeleteWorkerSessionRequest(session_handle=handle)
        self._ask("DeleteWorkerSession", request, _CONTROL_S)

    def register(self, handle: str, part: PartGraph) -> str:
        request = worker_pb2.RegisterGraphRequest(
            session_handle=handle, create_worker_session_called=True, graph_def=part.graph_def
        )
        if part.is_watched:
            request.config_proto.operation_timeout_in_ms = 1  # some limit; the master keeps it
        answer = self._ask("RegisterGraph", request, _REGISTER_S)
        return str(worker_pb2.RegisterGraphResponse.FromString(answer).graph_handle)

    def deregister(self, handle: str, graph: str) -> None:
        request = worker_pb2.DeregisterGraphRequest(
            session_handle=handle, create_worker_session_called=True, graph_handle=graph
        )
        self._ask("DeregisterGraph", request, _CONTROL_S)

    def explain(self, handle: str, graph: str) -> WorkerPlan | None:
        request = json.dumps({"session_handle": handle, "graph_handle": graph}).encode()
        try:
            return read_worker_plan(
                json.loads(wait_for(self._neighbour.peer.call(EXPLAIN_PART, request, _CONTROL_S)))
            )
        except errors.UnimplementedError:
            return None

    def run(
        self,
        handle: str,
        graph: str,
        step: int,
        part: PartGraph,
        feeds: Sequence[tuple[Any, DType]],
        done: Done,
        described: Described | None = None,
    ) -> None:
        try:
            if self._neighbour.direct() is not None and described is None:
                self._neighbour.run(handle, graph, step, [_sendable(*each) for each in feeds], done)
                return
            request = worker_pb2.RunGraphRequest(
                session_handle=handle, create_worker_session_called=True, graph_handle=graph, step_id=step,
                recv_key=[key for key, _ in part.fetches],
            )  # fmt: skip
            if described is not None:
                request.exec_opts.record_timeline = described.wanted.trace
                request.exec_opts.record_partition_graphs = described.wanted.graphs
            for (key, _), (value, dtype) in zip(part.feeds, feeds):
                request.send.add(name=key, tensor=proto_of_value(value, dtype))
        except Exception as error:
            done(None, error)
            return
        call = self._neighbour.peer.call(SERVICE + "RunGraph", request.SerializeToString())
        future = self._running[step] = run_soon(call)
        future.add_done_callback(functools.partial(self._answered, step, part, done, described))

    def _answered(
        self,
        step: int,
        part: PartGraph,
        done: Done,
        described: Described | None,
        future: concurrent.futures.Future[bytes],
    ) -> None:
        self._running.pop(step, None)
        if future.cancelled():
            done(None, errors.CancelledError(None, None, "The step was aborted."))
            return
        try:
            response = worker_pb2.RunGraphResponse.FromString(future.result())
            found = {each.name: value_of_proto(each.tensor) for each in response.recv}
            values = [found[key] for key, _ in part.fetches]
            if described is not None:
                told = Description(response.step_stats, list(response.partition_graph))
                described.add(told, self._neighbour.clock_offset_ns())
        except KeyError as error:
            message = f"The worker {self._neighbour.task} did not return {error.args[0]}"
            done(None, errors.InternalError(None, None, message))
        except Exception as error:
            done(None, error)
        else:
            done(values, None)

    def fail(self, step: int, error: BaseException) -> None:
        future = self._running.get(step)
        if future is None:
            self._neighbour.tell(frames.ABORT, step, error_text(error))
        else:
            future.cancel()

    def clean_up(self, step: int) -> None:
        if self._neighbour.is_direct():
            self._neighbour.tell(frames.CLEAN, step)
        else:
            request = worker_pb2.CleanupGraphRequest(step_id=step).SerializeToString()
            run_soon(self._neighbour.peer.call(SERVICE + "CleanupGraph", request, 10.0))

    def reset(self, containers: Sequence[str]) -> None:
        self._ask("CleanupAll", worker_pb2.CleanupAllRequest(container=containers), _CONTROL_S)

    def meeting(self, step: int) -> Rendezvous:
        raise AssertionError("a step meets its client on the master's own task")

    def _ask(self, method: str, request: Any, timeout_s: float | None, waits: bool = False) -> bytes:
        """The response. Its errors name the task, of which a user knows more than of an address."""
        try:
            return wait_for(
                self._neighbour.peer.call(SERVICE + method, request.SerializeToString(), timeout_s, waits)
            )
        except errors.OpError as error:
            raise from_task(error, self._neighbour.task) from None


def _sendable(value: Any, dtype: DType) -> Any:
    """A fed value, if it may leave its process. InvalidArgumentError for a handle."""
    if dtype.base_dtype.torch is None and dtype.base_dtype.name != "string":
        proto_of_value(value, dtype)  # which says so
    return value
