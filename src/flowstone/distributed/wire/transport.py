"""Bytes between processes: with the model server in `serving`, the only file that imports gRPC.

A process has one event loop for all its servers and connections, on a thread of its own (`run_soon`,
`wait_for`). A `Listener` answers requests by coroutines; a `Peer` sends requests from the loop to another
server; a `Caller` sends them from a program's own thread and waits. Failures are errors of `framework.errors`
by their codes. The name of a failed node travels beside the message, and so does an error's long text.

A `ClusterSecurity` says how all this is protected: connections by TLS, and each request by the cluster's
token as ``authorization: Bearer TOKEN``. A request without it is refused before its message is read, as
UnauthenticatedError, with one line in the log for each connection.

Nothing here is retried: who knows what a request means decides that.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

import grpc
import grpc.aio

from flowstone.distributed.wire.cluster_security import OPEN, ClusterSecurity
from flowstone.framework import errors
from flowstone.framework.process import logging as log

__all__ = ["Caller", "Listener", "Peer", "event_loop", "run_soon", "wait_for"]

_CODES = {code.value[0]: code for code in grpc.StatusCode}
_NODE = "flowstone-node"
_AUTHORIZATION = "authorization"
_MOST_REFUSED = 1000  # clients that are remembered, for the log
_MOST_DETAILS = 6000  # they travel in a header, whose size is limited
_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.so_reuseport", 0),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 2_000),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.enable_http_proxy", 0),
]
# TensorFlow's servers end connections whose client sends such packets more often than every five minutes.
_QUIET_OPTIONS = [option for option in _OPTIONS if "keepalive" not in option[0] and "ping" not in option[0]]
_Result = TypeVar("_Result")
Handler = Callable[[bytes], Awaitable[bytes]]


# ---- the loop


@functools.cache
def event_loop() -> asyncio.AbstractEventLoop:
    """The process's event loop for messages; its thread begins with the first call."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="flowstone messages", daemon=True).start()
    return loop


def run_soon(task: Coroutine[Any, Any, _Result]) -> concurrent.futures.Future[_Result]:
    """Runs a coroutine on the loop, from any thread."""
    return asyncio.run_coroutine_threadsafe(task, event_loop())


def wait_for(task: Coroutine[Any, Any, _Result], timeout_s: float | None = None) -> _Result:
    """Runs a coroutine on the loop and waits for its result; not to be called on the loop's own thread."""
    return run_soon(task).result(timeout_s)


# ---- servers


class Listener:
    """Answers requests from when `start` is called.

    Args:
        handlers: coroutines from a request's bytes to the response's, by the methods' full names. When the
            client gives up, the coroutine is cancelled.
        address: "host:port"; port 0 takes a free one, which `port` tells.
        security: who may ask, and by which connections.

    UnknownError if it cannot listen there.
    """

    def __init__(
        self, handlers: Mapping[str, Handler], address: str, security: ClusterSecurity = OPEN
    ) -> None:
        self._address = address
        self.port = wait_for(self._open(handlers, address, security))

    async def _open(self, handlers: Mapping[str, Handler], address: str, security: ClusterSecurity) -> int:
        self._server = grpc.aio.server(options=_OPTIONS)
        self._server.add_generic_rpc_handlers((_Generic(handlers, security),))
        try:
            if not security.has_tls:
                port = self._server.add_insecure_port(address)
            else:
                own = [(security.key, security.certificate)]
                asks = security.asks_for_certificates
                credentials = grpc.ssl_server_credentials(own, security.authority, require_client_auth=asks)
                port = self._server.add_secure_port(address, credentials)
        except RuntimeError:
            port = 0
        if not port:
            raise errors.UnknownError(
                None, None, f"Could not start gRPC server: cannot listen on {address}; is the port in use?"
            )
        return int(port)

    def start(self) -> None:
        """Begins to answer."""
        wait_for(self._server.start())

    def stop(self, grace_s: float = 0.0) -> None:
        """Takes no more requests; those under way are cancelled after the grace period."""
        with contextlib.suppress(concurrent.futures.TimeoutError):
            wait_for(self._server.stop(grace_s), grace_s + 5)


class _Generic(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, handlers: Mapping[str, Handler], security: ClusterSecurity) -> None:
        self._security = security
        self._methods = {
            name: grpc.unary_unary_rpc_method_handler(_answering(handler))
            for name, handler in handlers.items()
        }
        # As a stream the request is not read, however large it is.
        self._refusing = grpc.stream_stream_rpc_method_handler(self._refuse)
        self._refused: set[str] = set()

    def service(self, details: Any) -> Any:
        if self._security.token and not self._security.admits(_token(details.invocation_metadata)):
            return self._refusing
        return self._methods.get(details.method)  # gRPC says UNIMPLEMENTED to others

    async def _refuse(self, requests: Any, context: Any) -> None:
        client = context.peer()
        if client not in self._refused:
            if len(self._refused) >= _MOST_REFUSED:
                self._refused.clear()
            self._refused.add(client)
            log.warning("A request of %s was refused: it came without this cluster's token.", client)
        await context.abort(
            grpc.StatusCode.UNAUTHENTICATED,
            "The request came without this cluster's token (FLOWSTONE_CLUSTER_TOKEN, or a folder of secrets)",
        )


def _token(metadata: Any) -> str | None:
    for key, value in metadata or ():
        if key == _AUTHORIZATION:
            kind, _, token = value.partition(" ")
            return str(token) if kind == "Bearer" else None
    return None


def _answering(handler: Handler) -> Callable[[bytes, Any], Awaitable[Any]]:
    async def answer(request: bytes, context: Any) -> Any:
        try:
            return await handler(request)
        except errors.OpError as error:
            await _refuse(context, error)
        except Exception as error:
            await _refuse(context, errors.InternalError(None, None, f"{type(error).__name__}: {error}"))

    return answer


async def _refuse(context: Any, error: errors.OpError) -> None:
    node = getattr(error.op, "name", None) or error.node_name
    metadata = ((f"{_NODE}-bin", node.encode()),) if node else ()
    await context.abort(_CODES[error.error_code], error.message[:_MOST_DETAILS], metadata)


# ---- clients


def _raised(error: Any, address: str) -> errors.OpError:
    """The error of a request that failed."""
    code, details = error.code().value[0], error.details() or ""
    is_own = code == errors.DEADLINE_EXCEEDED and details == "Deadline Exceeded"  # nobody answered
    if is_own or code in (errors.UNAVAILABLE, errors.UNAUTHENTICATED):
        details = f"{details} (the server at {address})"
    kind: Any = errors.exception_type_from_error_code(code)
    found: errors.OpError = kind(None, None, details)
    for key, value in error.trailing_metadata() or ():
        if key == f"{_NODE}-bin":
            found.node_name = value.decode(errors="replace")
    return found


def _channel(kind: Any, address: str, security: ClusterSecurity, options: Any = _OPTIONS) -> Any:
    """gRPC's channel, of its module `kind`."""
    if not security.has_tls:
        return kind.insecure_channel(address, options=options)
    own = (security.key, security.certificate) if security.certificate else (None, None)
    credentials = grpc.ssl_channel_credentials(security.authority, *own)
    named = [("grpc.ssl_target_name_override", security.name)] if security.name else []
    return kind.secure_channel(address, credentials, options=[*options, *named])


def _metadata(security: ClusterSecurity) -> tuple[tuple[str, str], ...]:
    return ((_AUTHORIZATION, f"Bearer {security.token}"),) if security.token else ()


class Peer:
    """A connection to another server, used on the event loop."""

    def __init__(self, address: str, security: ClusterSecurity = OPEN) -> None:
        self._address, self._metadata = address, _metadata(security)
        self._channel = _channel(grpc.aio, address, security)
        self._calls: dict[str, Any] = {}

    async def call(
        self, method: str, request: bytes, timeout_s: float | None = None, waits: bool = False
    ) -> bytes:
        """The response to a request. `waits`: until the server can be reached. Raises the error that it
        answers, UnavailableError if it is not there, DeadlineExceededError after the time."""
        call = self._calls.get(method)
        if call is None:
            call = self._calls[method] = self._channel.unary_unary(method)
        try:
            answer = call(request, timeout=timeout_s, metadata=self._metadata, wait_for_ready=waits)
            return await answer  # type: ignore[no-any-return]
        except grpc.aio.AioRpcError as error:
            raise _raised(error, self._address) from None

    async def close(self) -> None:
        """Closes the connection."""
        await self._channel.close()


class Caller:
    """A connection of a client, used by its own threads. `is_quiet`: it sends no keep-alive packets, so that
    a host that is gone without a word is noticed late."""

    def __init__(self, address: str, security: ClusterSecurity = OPEN, is_quiet: bool = False) -> None:
        self._address, self._metadata = address, _metadata(security)
        self._channel = _channel(grpc, address, security, _QUIET_OPTIONS if is_quiet else _OPTIONS)
        self._calls: dict[str, Any] = {}

    def call(self, method: str, request: bytes, timeout_s: float | None = None) -> bytes:
        """The response to a request; raises what `Peer.call` does."""
        call = self._calls.get(method)
        if call is None:
            call = self._calls[method] = self._channel.unary_unary(method)
        try:
            return call(request, timeout=timeout_s, metadata=self._metadata)  # type: ignore[no-any-return]
        except grpc.RpcError as error:
            raise _raised(error, self._address) from None

    def close(self) -> None:
        """Closes the connection; requests under way end with CancelledError."""
        self._channel.close()
