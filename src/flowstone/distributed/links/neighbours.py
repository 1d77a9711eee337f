"""`Neighbour`: another task of the cluster, as a server speaks to it.

Requests that begin and end things go over gRPC. What a step needs goes over a direct connection, if the other
server has one (`direct_connections`): then tensors are pushed to it as soon as they are sent, and its own are
awaited; a tensor that does not come within a while is asked for, so that nothing is lost where one direction
alone is open. Otherwise each tensor is asked for (RecvTensor).
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from flowstone.distributed.wire import frames
from flowstone.distributed.wire.cluster_security import OPEN, ClusterSecurity
from flowstone.distributed.wire.direct_connections import DirectConnection, connect, gpus_of
from flowstone.distributed.wire.tensor_codec import decode_received, pack, unpack
from flowstone.distributed.wire.transport import Peer, run_soon, wait_for
from flowstone.distributed.workers.step_rendezvous import StepRendezvous
from flowstone.framework import errors
from flowstone.io.proto import worker_pb2

__all__ = ["ADDRESS", "CLOCK", "EXPLAIN_PART", "SERVICE", "Neighbour", "error_of_text", "error_text"]

SERVICE = "/tensorflow.WorkerService/"
ADDRESS = "/flowstone.Direct/Address"
CLOCK = "/flowstone.Direct/Clock"
EXPLAIN_PART = "/flowstone.Explanations/Part"
_ADDRESS_S = 10.0
_CLOCK_PROBES = 8
_UNKNOWN_NS = 1 << 62
Done = Callable[[Any, BaseException | None], None]


class Neighbour:
    """The task `task`, whose server listens at `address`, seen from the task `own`. ``on_closed(task)`` is
    called when the direct connection to it has ended."""

    def __init__(
        self,
        task: str,
        address: str,
        own: str,
        on_closed: Callable[[str], None],
        security: ClusterSecurity = OPEN,
    ) -> None:
        self.task, self._address, self._own, self._on_closed = task, address, own, on_closed
        self._security = security
        self.peer: Peer = wait_for(_peer(address, security))
        self.gpus: dict[str, str] = {}  # its GPUs' identities, by the names of devices
        self._connection: DirectConnection | None = None
        self._has_none = False
        self._running: dict[int, Done] = {}  # steps whose part runs there
        self._lock = threading.Lock()
        self._clock_offset_ns = 0

    # ---- the direct connection

    def direct(self) -> DirectConnection | None:
        """The connection, made when first asked for; None if the other server has none. Not to be called on
        the event loop's thread. UnavailableError if the server cannot be reached."""
        connection = self._connection
        if connection is not None and not connection.is_closed:
            return connection
        if self._has_none:
            return None
        with self._lock:
            if self._connection is None or self._connection.is_closed:
                self._connection = self._connected()
            return self._connection

    def _connected(self) -> DirectConnection | None:
        try:
            address = wait_for(self.peer.call(ADDRESS, b"", _ADDRESS_S))
        except (errors.UnimplementedError, errors.InvalidArgumentError):
            self._has_none = True
            return None
        host = self._address.rpartition(":")[0] or "localhost"
        self.gpus = gpus_of(address)
        connection = connect(self._own, host, address, self._arrived, self._closed, self._security)
        if connection is None:
            self._has_none = True
        else:
            connection.start()
            run_soon(self._measure_clock())
        return connection

    def is_direct(self) -> bool:
        """Whether there is a direct connection."""
        return self._connection is not None and not self._connection.is_closed

    def _arrived(self, _: DirectConnection, kind: int, step: int, text: str, payload: Any) -> None:
        with self._lock:
            done = self._running.pop(step, None)
        if done is None:
            return
        if kind == frames.DONE:
            try:
                values = unpack(payload)
            except errors.OpError as error:
                done(None, error)
            else:
                done(values, None)
        elif kind == frames.FAILED:
            done(None, error_of_text(text))
        elif kind == frames.COLLECT:
            done((text, payload), None)

    def _closed(self, _: DirectConnection) -> None:
        with self._lock:
            running, self._running = self._running, {}
        error = errors.UnavailableError(None, None, f"The connection to {self.task} at {self._address} broke")
        for done in running.values():
            done(None, error)
        self._on_closed(self.task)

    # ---- steps

    def run(self, handle: str, graph: str, step: int, feeds: Sequence[Any], done: Done) -> None:
        """Begins a part of a step over the direct connection; later calls ``done(values, None)`` or
        ``done(None, error)``."""
        self._ask(frames.RUN, step, f"{handle} {graph}", pack(feeds), done)

    def _ask(self, kind: int, step: int, text: str, parts: Sequence[Any], done: Done) -> None:
        """Sends a frame whose answer `done` is called with."""
        with self._lock:
            self._running[step] = done
        try:
            connection = self._connection
            if connection is None:
                raise errors.UnavailableError(None, None, f"There is no connection to {self.task}")
            connection.send(kind, step, text, parts)
        except errors.OpError as error:
            with self._lock:
                is_open = self._running.pop(step, None) is not None
            if is_open:  # else the end of the connection has told it
                done(None, error)

    def push(self, step: int, key: str, value: Any) -> bool:
        """Gives it a value that a part sends there; False if it has to ask instead."""
        connection = self.direct()
        if connection is None:
            return False
        connection.send(frames.PUSH, step, key, pack([value]))
        return True

    # ---- collective operations that it leads (`LeaderLink`)

    def connect(self) -> bool:
        """Whether there is a direct connection, made if it can be. UnimplementedError if it has none."""
        try:
            connection = self.direct()
        except errors.OpError:
            return False
        if connection is None:
            raise errors.UnimplementedError(
                None, None, f"{self.task}, which is to lead collective operations, has no direct connections"
            )
        return True

    def collect(self, text: str, parts: Sequence[Any], done: Done) -> None:
        """Asks it, as the leader of collective operations; later calls ``done((text, payload), None)`` or
        ``done(None, error)``."""
        self._ask(frames.COLLECT, random.getrandbits(62) + 1, text, parts, done)

    def tell_leader(self, text: str) -> None:
        """Tells it something as the leader of collective operations."""
        self.tell(frames.COLLECT, 0, text)

    def ask(self, step: int, key: str, meeting: StepRendezvous) -> None:
        """Asks it for a value (RecvTensor), which `meeting` gets."""
        run_soon(self._receive(step, key, meeting))

    async def _receive(self, step: int, key: str, meeting: StepRendezvous) -> None:
        request = worker_pb2.RecvTensorRequest(step_id=step, rendezvous_key=key)
        try:
            answer = await self.peer.call(SERVICE + "RecvTensor", request.SerializeToString())
            value = decode_received(answer)
        except Exception as error:
            meeting.failed(key, error)
        else:
            meeting.arrived(key, value)

    def clock_offset_ns(self) -> int:
        """How far its clock is ahead of this process's, as measured when the connection began; 0 while that
        is not known, and where it cannot be told from none."""
        return self._clock_offset_ns

    async def _measure_clock(self) -> None:
        """The shortest of some requests tells the time in its middle (Cristian, 1989)."""
        best, offset = _UNKNOWN_NS, 0
        for _ in range(_CLOCK_PROBES):
            begin = time.time_ns()
            try:
                there = int.from_bytes(await self.peer.call(CLOCK, b"", _ADDRESS_S), "little")
            except errors.OpError:
                return
            end = time.time_ns()
            if end - begin < best:
                best, offset = end - begin, there - (begin + end) // 2
        self._clock_offset_ns = offset if abs(offset) > best else 0

    def tell(self, kind: int, step: int, text: str = "") -> None:
        """Tells it that a step is over, or to abort one; a task that is gone has nothing to clean up."""
        connection = self._connection
        if connection is not None:
            with contextlib.suppress(errors.UnavailableError):
                connection.send(kind, step, text)

    def close(self) -> None:
        """Ends the connections."""
        if self._connection is not None:
            self._connection.close()
        wait_for(self.peer.close(), 5.0)


async def _peer(address: str, security: ClusterSecurity) -> Peer:
    return Peer(address, security)


def error_text(error: BaseException) -> str:
    """An error as the text of a frame: its code, the node's name, the message."""
    if not isinstance(error, errors.OpError):
        return f"{errors.UNKNOWN}\n\n{type(error).__name__}: {error}"
    node = getattr(error.op, "name", None) or error.node_name
    return f"{error.error_code}\n{node}\n{error.message}"


def error_of_text(text: str) -> errors.OpError:
    """The error that `error_text` wrote."""
    code, _, rest = text.partition("\n")
    node, _, message = rest.partition("\n")
    known = int(code) if code.isdigit() and 1 <= int(code) <= 16 else errors.UNKNOWN
    kind: Any = errors.exception_type_from_error_code(known)
    found: errors.OpError = kind(None, None, message)
    found.node_name = node
    return found
