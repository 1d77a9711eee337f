"""`SessionClient`: a session of this process on a server of a cluster, in TensorFlow's messages.

The server gets the graph with the first request, and then only what is new (Extend), so building a graph
costs no message. A step is one request (RunStep).
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from flowstone.distributed.cluster_devices import attributes_of
from flowstone.distributed.cluster_plans import ClusterPlan
from flowstone.distributed.links.worker_links import Described, described_by
from flowstone.distributed.masters.master import Master, MasterSession
from flowstone.distributed.masters.own_servers import masters
from flowstone.distributed.servers.explaining import ask_placement, ask_step, explains
from flowstone.distributed.wire.cluster_security import cluster_security
from flowstone.distributed.wire.tensor_codec import proto_of_value, value_of_proto
from flowstone.distributed.wire.transport import Caller
from flowstone.distributed.workers.worker import Wanted
from flowstone.framework import errors
from flowstone.framework.declarations.operation import OpDeclaration, registry
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.graphs.graph_def import graph_def_since, op_def
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.tensor_proto import messages
from flowstone.io.proto import master_pb2

__all__ = ["OwnServerClient", "SessionClient", "reset_cluster", "session_client"]

_SERVICE = "/tensorflow.MasterService/"
_CLOSING_S = 5.0  # how long closing waits for the server
_RESET_S = 60.0
_LATE_S = 1.0  # how much later than the limit a server may say that it is over


def session_client(target: str, graph: Graph, config: Any) -> SessionClient | OwnServerClient:
    """A session on the server `target`, which begins with its first use. `config`: a ConfigProto or None."""
    master = masters.get(target)
    if master is None:
        return SessionClient(target, graph, config)
    return OwnServerClient(master, graph, config)


def address_of(target: str) -> str:
    """The host and port of "grpc://host:port"."""
    return target.removeprefix("grpc://")


def reset_cluster(target: str, containers: Iterable[str], config: Any = None) -> None:
    """Drops containers (all if none is named) on the tasks of a cluster, and ends all sessions there.

    UnavailableError if nobody listens at the target.
    """
    request = master_pb2.ResetRequest(container=list(containers))
    if config is not None:
        request.device_filters.extend(config.device_filters)
    caller = Caller(address_of(target), cluster_security())
    try:
        caller.call(_SERVICE + "Reset", request.SerializeToString(), _RESET_S)
    finally:
        caller.close()


class SessionClient:
    """A session on the server `target`, which begins with the first request. `config`: a ConfigProto or
    None."""

    def __init__(self, target: str, graph: Graph, config: Any) -> None:
        self._address, self._security = address_of(target), cluster_security()
        self._caller = Caller(self._address, self._security)
        self._graph, self._config = graph, config
        self._limit_s = _limit_s(0 if config is None else config.operation_timeout_in_ms)
        self._handle = ""
        self._version = 0  # of the graph here, as far as the server has it
        self._remote_version = 0  # of the graph there
        self._lock = threading.Lock()
        self._is_closed = False

    def extended(self) -> str:
        """The session's handle, once the server has the whole graph. Raises what the server says of it."""
        if self._graph.version != self._version or not self._handle:
            with self._lock:
                self._extend()
        return self._handle

    def _extend(self) -> None:
        more, version = graph_def_since(self._graph, self._version)
        if not self._handle:
            request = master_pb2.CreateSessionRequest(graph_def=_portable(more))
            request.config.CopyFrom(self._config or messages("config_pb2").ConfigProto())
            response = master_pb2.CreateSessionResponse.FromString(self._call("CreateSession", request))
            self._handle, self._remote_version = response.session_handle, response.graph_version
            self._be_quiet_with_others()
        elif version != self._version:
            request = master_pb2.ExtendSessionRequest(
                session_handle=self._handle,
                graph_def=_portable(more),
                current_graph_version=self._remote_version,
            )
            response = master_pb2.ExtendSessionResponse.FromString(self._call("ExtendSession", request))
            self._remote_version = response.new_graph_version
        self._version = version

    def _be_quiet_with_others(self) -> None:
        """A connection to a server that is not flowstone's is made anew, without keep-alive packets."""
        if not self._security.token and not self._security.has_tls and not explains(self._caller):
            self._caller.close()
            self._caller = Caller(self._address, self._security, is_quiet=True)

    def run(
        self,
        feeds: Sequence[tuple[str, Any, DType]],
        fetches: Sequence[str],
        targets: Sequence[str],
        options: Any = None,
        metadata: Any = None,
        partial_run: str = "",
    ) -> list[Any]:
        """The values of `fetches` in a step, or in a part of the step `partial_run`."""
        request = master_pb2.RunStepRequest(fetch=fetches, target=targets, partial_run_handle=partial_run)
        for name, value, dtype in feeds:
            request.feed.add(name=name, tensor=proto_of_value(value, dtype))
        limit_s = self._limit_s
        if options is not None:
            request.options.CopyFrom(options)
            limit_s = _limit_s(options.timeout_in_ms) or limit_s
        request.session_handle = self.extended()
        answer = self._caller.call(_SERVICE + "RunStep", request.SerializeToString(), limit_s)
        response = master_pb2.RunStepResponse.FromString(answer)
        if metadata is not None:
            metadata.CopyFrom(response.metadata)
        return _in_order(response.tensor, fetches)

    def list_devices(self) -> list[Any]:
        """The DeviceAttributes of all devices that steps may use."""
        request = master_pb2.ListDevicesRequest(session_handle=self.extended())
        response = master_pb2.ListDevicesResponse.FromString(self._call("ListDevices", request))
        return [*response.local_device, *response.remote_device]

    def explain(self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]) -> ClusterPlan:
        """What the server and its workers made of a kind of step. UnimplementedError from a server of
        TensorFlow."""
        handle = self.extended()  # which may change the connection
        return ask_step(self._caller, handle, feeds, fetches, targets)

    def explain_placement(
        self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], picture: str
    ) -> tuple[str, bytes]:
        """The placement of a kind of step as a table, and as a picture of this format (none if empty)."""
        handle = self.extended()
        return ask_placement(self._caller, handle, feeds, fetches, targets, picture)

    def begin_partial_run(self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]) -> str:
        """Begins a step in several calls; returns its handle."""
        request = master_pb2.PartialRunSetupRequest(
            session_handle=self.extended(), feed=feeds, fetch=fetches, target=targets
        )
        answer = self._call("PartialRunSetup", request)
        return str(master_pb2.PartialRunSetupResponse.FromString(answer).partial_run_handle)

    def close(self) -> None:
        """Ends the session there; a server that is gone has nothing to end."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            handle, self._handle = self._handle, ""
        if handle:
            request = master_pb2.CloseSessionRequest(session_handle=handle)
            with contextlib.suppress(errors.OpError):
                self._caller.call(_SERVICE + "CloseSession", request.SerializeToString(), _CLOSING_S)
        self._caller.close()

    def _call(self, method: str, request: Any) -> bytes:
        return self._caller.call(_SERVICE + method, request.SerializeToString(), self._limit_s)


def _limit_s(timeout_ms: int) -> float | None:
    """How long to wait for a server that has a time limit (0: none). TensorFlow's servers leave the limit to
    their clients."""
    return timeout_ms / 1000 + _LATE_S if timeout_ms > 0 else None


class OwnServerClient:
    """A session on a server of this process: what `SessionClient` does, without messages."""

    def __init__(self, master: Master, graph: Graph, config: Any) -> None:
        self._master, self._graph, self._config = master, graph, config
        self._session: MasterSession | None = None
        self._version = 0
        self._lock = threading.Lock()
        self._is_closed = False

    def _extended(self) -> MasterSession:
        session = self._session
        if session is None or self._graph.version != self._version:
            with self._lock:
                session = self._extend()
        return session

    def _extend(self) -> MasterSession:
        session = self._session
        more, version = graph_def_since(self._graph, self._version)
        if session is None:
            config = self._config or messages("config_pb2").ConfigProto()
            session = self._session = self._master.create_session(more, config)
        elif version != self._version:
            session.extend(more)
        self._version = version
        return session

    def run(
        self,
        feeds: Sequence[tuple[str, Any, DType]],
        fetches: Sequence[str],
        targets: Sequence[str],
        options: Any = None,
        metadata: Any = None,
        partial_run: str = "",
    ) -> list[Any]:
        """The values of `fetches` in a step; they may share memory with the server's state."""
        session = self._extended()
        if partial_run:
            given = [(name, _copy(value)) for name, value, _ in feeds]  # the caller may change the arrays
            return [value for value, _ in session.continue_partial_run(partial_run, given, fetches)]
        given = [(name, value) for name, value, _ in feeds]
        if options is None:
            step = session.step(given, fetches, targets)[0]
        else:
            step = session.step(given, fetches, targets, options.timeout_in_ms, described_by(options))[0]
        values = session.run(step)
        if metadata is not None:
            (step.described or Described(Wanted())).write(metadata)
        return values

    def explain(self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]) -> ClusterPlan:
        """What the server and its workers made of a kind of step."""
        return self._extended().explain(feeds, fetches, targets)

    def explain_placement(
        self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], picture: str
    ) -> tuple[str, bytes]:
        """The placement of a kind of step as a table, and as a picture of this format (none if empty)."""
        return self._extended().explain_placement(feeds, fetches, targets, picture)

    def begin_partial_run(self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]) -> str:
        """Begins a step in several calls; returns its handle."""
        return self._extended().begin_partial_run(feeds, fetches, targets)

    def list_devices(self) -> list[Any]:
        """The DeviceAttributes of all devices that steps may use."""
        found = master_pb2.ListDevicesResponse()
        for device in self._extended().devices:
            attributes_of(device, found.local_device.add())
        return list(found.local_device)

    def close(self) -> None:
        """Ends the session."""
        with self._lock:
            session, self._session = self._session, None
            is_closed, self._is_closed = self._is_closed, True
        if session is not None and not is_closed:
            with contextlib.suppress(errors.OpError):
                self._master.close_session(session.handle)


def _in_order(tensors: Sequence[Any], fetches: Sequence[str]) -> list[Any]:
    """The values of NamedTensorProtos, which a server may answer in any order. InternalError if one is not
    there."""
    found = {each.name: value_of_proto(each.tensor) for each in tensors}
    lacking = [name for name in fetches if name not in found]
    if lacking:
        raise errors.InternalError(None, None, f"The server's answer has no tensor {lacking[0]}")
    return [found[name] for name in fetches]


def _portable(message: Any) -> Any:
    """The GraphDef without attributes that have their default values: an older server knows fewer of them."""
    for node in message.node:
        declaration = registry.get(node.op)
        if declaration is not None:
            for name, value in _defaults(declaration).items():
                if name in node.attr and node.attr[name] == value:
                    del node.attr[name]
    return message


@functools.cache
def _defaults(declaration: OpDeclaration) -> dict[str, Any]:
    """The AttrValues of the attributes that have a default."""
    specs = op_def(declaration).attr
    return {spec.name: spec.default_value for spec in specs if spec.HasField("default_value")}


def _copy(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    return value.copy() if hasattr(value, "copy") else value
