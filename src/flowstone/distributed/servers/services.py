"""The requests that a server answers: TensorFlow's master and worker services, as coroutines of bytes.

Each handler reads a message, calls the `Master` or the `Worker`, and writes the response. What cannot be read
is an InvalidArgumentError to the one who asked, and a line in the log.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from flowstone.distributed.cluster_devices import attributes_of, device_of
from flowstone.distributed.links.worker_links import Described, described_by
from flowstone.distributed.masters.master import Master, MasterSession
from flowstone.distributed.masters.running_step import RunningStep
from flowstone.distributed.task_names import task_of
from flowstone.distributed.wire.tensor_codec import encode_received, proto_of_value, value_of_proto
from flowstone.distributed.workers.worker import Wanted, Worker
from flowstone.framework import errors
from flowstone.framework.process import logging as log
from flowstone.framework.process.daemon_threads import DaemonThreads
from flowstone.framework.types.dtypes import DType
from flowstone.io.proto import master_pb2, worker_pb2

__all__ = ["MasterService", "WorkerService", "in_thread", "threads"]

Handler = Callable[[bytes], Awaitable[bytes]]
_Result = TypeVar("_Result")
threads = DaemonThreads("flowstone step")


async def in_thread(function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Calls a function that blocks, on a thread of its own kind."""
    return await asyncio.get_running_loop().run_in_executor(threads, function, *arguments)


def _read(cls: Any, request: bytes) -> Any:
    try:
        return cls.FromString(request)
    except Exception as error:  # protobuf's DecodeError, whose module depends on its implementation
        log.warning("A request of %d bytes is no %s: %s", len(request), cls.DESCRIPTOR.name, error)
        raise errors.InvalidArgumentError(
            None, None, f"The request is no {cls.DESCRIPTOR.name}: {error}"
        ) from None


def _handlers(service: Any, name: str, requests: Any, methods: tuple[str, ...]) -> dict[str, Handler]:
    """The methods by their full names; CamelCase there is snake_case here. `requests`: the module that has
    their messages."""
    found: dict[str, Handler] = {}
    for method in methods:
        words = "".join([f"_{c.lower()}" if c.isupper() else c for c in method]).lstrip("_")
        cls = getattr(requests, f"{method}Request")
        found[f"/tensorflow.{name}/{method}"] = _handler(getattr(service, words), cls)
    return found


def _handler(answer: Callable[[Any], Awaitable[Any]], cls: Any) -> Handler:
    async def handle(request: bytes) -> bytes:
        response = await answer(_read(cls, request))
        if response is None:
            return b""
        return response if type(response) is bytes else bytes(response.SerializeToString())

    return handle


async def _run(
    session: MasterSession,
    feeds: Callable[[], list[tuple[str, Any]]],
    fetches: Sequence[str],
    targets: Sequence[str],
    timeout_ms: int,
    answer: Callable[[list[Any], list[DType]], None],
    described: Described | None = None,
) -> Described | None:
    """Runs a step on a thread; returns what is told of it. If the client gives up, the step ends early."""
    begun: list[RunningStep] = []

    def run() -> None:
        step, types = session.step(feeds(), fetches, targets, timeout_ms, described)
        begun.append(step)
        answer(session.run(step), types)

    try:
        await in_thread(run)
    except asyncio.CancelledError:
        for step in begun:
            threads.submit(step.cancel, errors.CancelledError(None, None, "RunStep was cancelled."))
        raise
    return begun[0].described


def _fetched(name: str, value: Any, dtype: DType) -> Any:
    """A fetched value as a TensorProto. InvalidArgumentError, with the node, for a handle."""
    try:
        return proto_of_value(value, dtype)
    except errors.InvalidArgumentError as error:
        found = errors.InvalidArgumentError(None, None, f"{name}: {error.message}")
        found.node_name = name.partition(":")[0]
        raise found from None


class MasterService:
    """`tensorflow.MasterService` of one server."""

    def __init__(self, master: Master, task: str) -> None:
        self._master, self._task = master, task

    def handlers(self) -> dict[str, Handler]:
        """The coroutines by the methods' full names."""
        methods = (
            "CreateSession", "ExtendSession", "PartialRunSetup", "RunStep", "CloseSession", "ListDevices",
            "Reset", "MakeCallable", "RunCallable", "ReleaseCallable",
        )  # fmt: skip
        return _handlers(self, "MasterService", master_pb2, methods)

    async def create_session(self, message: Any) -> Any:
        """CreateSession: a new session with a graph, once all tasks answer."""
        config = message.config if message.HasField("config") else None
        given_up = threading.Event()
        try:
            session = await in_thread(self._master.create_session, message.graph_def, config, given_up)
        except asyncio.CancelledError:
            given_up.set()
            raise
        response = master_pb2.CreateSessionResponse(
            session_handle=session.handle, graph_version=session.version
        )
        return response

    async def extend_session(self, message: Any) -> Any:
        """ExtendSession: more nodes for the graph."""
        session = self._master.session(message.session_handle)
        version = await in_thread(session.extend, message.graph_def, message.current_graph_version)
        return master_pb2.ExtendSessionResponse(new_graph_version=version)

    async def partial_run_setup(self, message: Any) -> Any:
        """PartialRunSetup: a step in several calls."""
        session = self._master.session(message.session_handle)
        begin = session.begin_partial_run
        handle = await in_thread(begin, list(message.feed), list(message.fetch), list(message.target))
        return master_pb2.PartialRunSetupResponse(partial_run_handle=handle)

    async def run_step(self, message: Any) -> Any:
        """RunStep: one step."""
        session = self._master.session(message.session_handle)
        response = master_pb2.RunStepResponse()

        def feeds() -> list[tuple[str, Any]]:
            return [(each.name, value_of_proto(each.tensor)) for each in message.feed]

        def answer(values: list[Any], types: list[DType]) -> None:
            for name, value, dtype in zip(message.fetch, values, types):
                response.tensor.add(name=name, tensor=_fetched(name, value, dtype))

        if message.partial_run_handle:
            results = await in_thread(
                lambda: session.continue_partial_run(message.partial_run_handle, feeds(), message.fetch)
            )
            answer([value for value, _ in results], [dtype for _, dtype in results])
            return response
        described = described_by(message.options)
        fetches, targets = list(message.fetch), list(message.target)
        timeout_ms = message.options.timeout_in_ms
        described = await _run(session, feeds, fetches, targets, timeout_ms, answer, described)
        if described is not None:
            described.write(response.metadata)
        return response

    async def close_session(self, message: Any) -> Any:
        """CloseSession."""
        await in_thread(self._master.close_session, message.session_handle)
        return None

    async def list_devices(self, message: Any) -> Any:
        """ListDevices: those that the session's steps may use."""
        session = self._master.session(message.session_handle)
        response = master_pb2.ListDevicesResponse()
        for device in session.devices:
            is_local = task_of(device.name) == self._task
            into = response.local_device if is_local else response.remote_device
            attributes_of(device, into.add())
        return response

    async def reset(self, message: Any) -> Any:
        """Reset: drops containers, ends sessions."""
        await in_thread(self._master.reset, list(message.container), list(message.device_filters))
        return None

    async def make_callable(self, message: Any) -> Any:
        """MakeCallable: feeds, fetches and targets under a number."""
        session = self._master.session(message.session_handle)
        return master_pb2.MakeCallableResponse(handle=self._master.add_callable(session, message.options))

    async def run_callable(self, message: Any) -> Any:
        """RunCallable: one step."""
        session = self._master.session(message.session_handle)
        made = _callable_of(session, message.handle)
        if len(message.feed) != len(made.feeds):
            raise errors.InvalidArgumentError(
                None, None, f"Expected {len(made.feeds)} feed tensors, but got {len(message.feed)}."
            )
        response = master_pb2.RunCallableResponse()

        def feeds() -> list[tuple[str, Any]]:
            return [(name, value_of_proto(proto)) for name, proto in zip(made.feeds, message.feed)]

        def answer(values: list[Any], types: list[DType]) -> None:
            for name, value, dtype in zip(made.fetches, values, types):
                response.fetch.append(_fetched(name, value, dtype))

        await _run(session, feeds, made.fetches, made.targets, made.timeout_ms, answer)
        return response

    async def release_callable(self, message: Any) -> Any:
        """ReleaseCallable."""
        session = self._master.session(message.session_handle)
        _callable_of(session, message.handle)
        del session.callables[message.handle]
        return None


def _callable_of(session: MasterSession, handle: int) -> Any:
    made = session.callables.get(handle)
    if made is None:
        raise errors.InvalidArgumentError(None, None, f"No such callable handle: {handle}")
    return made


class WorkerService:
    """`tensorflow.WorkerService` of one server."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def handlers(self) -> dict[str, Handler]:
        """The coroutines by the methods' full names."""
        methods = (
            "GetStatus", "CreateWorkerSession", "DeleteWorkerSession", "RegisterGraph", "DeregisterGraph",
            "RunGraph", "CleanupGraph", "CleanupAll", "RecvTensor", "Logging", "Tracing",
        )  # fmt: skip
        return _handlers(self, "WorkerService", worker_pb2, methods)

    async def get_status(self, message: Any) -> Any:
        """GetStatus: the devices of this task."""
        response = worker_pb2.GetStatusResponse()
        for device in self._worker.devices:
            attributes_of(device, response.device_attributes.add())
        return response

    async def create_worker_session(self, message: Any) -> Any:
        """CreateWorkerSession."""
        self._worker.create_session(
            message.session_handle,
            message.server_def.default_session_config,
            message.isolate_session_state,
            [device_of(each) for each in message.cluster_device_attributes],
        )
        return None

    async def delete_worker_session(self, message: Any) -> Any:
        """DeleteWorkerSession."""
        await in_thread(self._worker.delete_session, message.session_handle)
        return None

    async def register_graph(self, message: Any) -> Any:
        """RegisterGraph: plans a part."""
        is_watched = message.config_proto.operation_timeout_in_ms > 0
        register = self._worker.register
        handle = await in_thread(register, message.session_handle, message.graph_def, is_watched)
        return worker_pb2.RegisterGraphResponse(graph_handle=handle)

    async def deregister_graph(self, message: Any) -> Any:
        """DeregisterGraph."""
        self._worker.deregister(message.session_handle, message.graph_handle)
        return None

    async def run_graph(self, message: Any) -> Any:
        """RunGraph: a part of a step; the step ends early if the master gives up."""
        keys = list(message.recv_key)
        response = worker_pb2.RunGraphResponse()

        wanted = Wanted(message.exec_opts.record_timeline, message.exec_opts.record_partition_graphs)

        def run() -> None:
            feeds = {each.name: value_of_proto(each.tensor) for each in message.send}
            results, told = self._worker.run_by_keys(
                message.session_handle, message.graph_handle, message.step_id, feeds, keys, wanted
            )
            if told.step_stats is not None:
                response.step_stats.CopyFrom(told.step_stats)
            response.partition_graph.extend(told.graphs)
            for key, (value, dtype) in zip(keys, results):
                response.recv.add(name=key, tensor=proto_of_value(value, dtype))

        try:
            await in_thread(run)
        except asyncio.CancelledError:
            error = errors.CancelledError(None, None, "RunGraph was cancelled by the master.")
            threads.submit(self._worker.fail, message.step_id, error)
            raise
        return response

    async def cleanup_graph(self, message: Any) -> Any:
        """CleanupGraph: the step is over."""
        self._worker.clean_up(message.step_id)
        return None

    async def cleanup_all(self, message: Any) -> Any:
        """CleanupAll: drops containers."""
        await in_thread(self._worker.reset, list(message.container))
        return None

    async def recv_tensor(self, message: Any) -> Any:
        """RecvTensor: a value that a part here sends, once it is there. No thread waits."""
        loop = asyncio.get_running_loop()
        arrived: asyncio.Future[Any] = loop.create_future()

        def done(values: Any, error: BaseException | None = None) -> None:
            loop.call_soon_threadsafe(_settle, arrived, values, error)

        self._worker.receive(message.step_id, message.rendezvous_key, done)
        return encode_received((await arrived)[0])

    async def logging(self, message: Any) -> Any:
        """Logging: there is no log of messages to give."""
        return worker_pb2.LoggingResponse()

    async def tracing(self, message: Any) -> Any:
        """Tracing."""
        return worker_pb2.TracingResponse()


def _settle(future: asyncio.Future[Any], values: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(values)
    else:
        future.set_exception(error)
