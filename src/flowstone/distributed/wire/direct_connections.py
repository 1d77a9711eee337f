"""Direct connections between the tasks of a cluster: frames over sockets, for what every step needs.

gRPC costs a Python process a fifth of a millisecond a request. What a step exchanges between our own servers
(its requests to workers and the tensors) goes over sockets instead: Unix domain sockets within a host, TCP
between hosts, encrypted if the cluster has certificates. A tensor's memory is handed to the system as it is,
and read into the memory that the receiver will use; within a host, large ones go through memory that both
share (`shared_blocks`), once each end has said that it can (``CAN_SHARE``).

A server tells where it listens, and the secret that a connection begins with, by a request of gRPC
(``/flowstone.Direct/Address``), to those alone who know the cluster's token; who cannot connect uses gRPC for
everything. What is sent are `frames`. Damaged or unknown ones end the connection, with a line in the log.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flowstone.distributed.wire import frames
from flowstone.distributed.wire.cluster_security import OPEN, ClusterSecurity
from flowstone.distributed.wire.frames import HELLO, FrameReader, header
from flowstone.distributed.wire.shared_blocks import BlockPool, MappedBlocks, can_share
from flowstone.distributed.wire.tls_stream import TlsStream
from flowstone.framework import errors
from flowstone.framework.machine import machine
from flowstone.framework.machine.machine_profiles import NEVER
from flowstone.framework.process import logging as log

__all__ = ["DirectConnection", "DirectListener", "connect", "gpus_of"]

_SOCKET_BUFFER = 1 << 22
_CONNECT_S = 3.0

OnFrame = Callable[["DirectConnection", int, int, str, Any], None]
OnClosed = Callable[["DirectConnection"], None]


class DirectConnection:
    """One end of a connection. `on_frame(connection, kind, step, text, payload)` is called by the
    connection's own thread, one frame at a time; the payload is memory that nobody else has. `on_closed` is
    called once."""

    def __init__(self, stream: Any, on_frame: OnFrame, on_closed: OnClosed) -> None:
        self._stream, self._on_frame, self._on_closed = stream, on_frame, on_closed
        self._sending = threading.Lock()
        self.is_closed = False
        self.task = ""  # that began the connection, where it was accepted
        self._shares = stream.family == getattr(socket, "AF_UNIX", None) and can_share()
        self._least_shared = NEVER  # bytes of a payload; until the other end says that it can
        self._pool, self._mapped = BlockPool(), MappedBlocks()
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            stream.setsockopt(socket.SOL_SOCKET, option, _SOCKET_BUFFER)

    def start(self) -> None:
        """Begins to read."""
        threading.Thread(target=self._read, name="flowstone direct", daemon=True).start()
        if self._shares:
            with contextlib.suppress(errors.UnavailableError):  # the thread sees it as well
                self.send(frames.CAN_SHARE, 0)

    def send(self, kind: int, step: int, text: str = "", parts: Sequence[Any] = ()) -> None:
        """Sends a frame, whose payload is the parts' bytes; waits until the system has taken it.

        UnavailableError if the connection is closed.
        """
        words, size = text.encode(), sum(map(len, parts))
        if size >= self._least_shared:
            number = self._shared(size, parts)
            if number:
                kind |= frames.SHARED
                parts = (frames.NUMBER.pack(number),)
        with self._sending:
            self._send([header(kind, step, len(words), size) + words, *parts])

    def _shared(self, size: int, parts: Sequence[Any]) -> int:
        """The number of the block into which it has copied a payload; 0 if there is none."""
        with self._sending:
            taken = self._pool.take(size)
            for number in self._pool.dropped():
                self._send([header(frames.FORGET, number, 0, 0)])
            if taken is None:
                return 0
            block, is_new = taken
            if is_new:
                file = block.take_file()
                try:
                    self._send([header(frames.BLOCK, block.number, 0, 0)], file)
                finally:
                    os.close(file)
        block.write(parts)
        return block.number

    def _send(self, buffers: list[Any], file: int | None = None) -> None:
        """Sends bytes, and a file with them."""
        try:
            if file is None:
                sent = self._stream.sendmsg(buffers)
            else:
                sent = socket.send_fds(self._stream, buffers, [file])
            for buffer in buffers if sent < sum(map(len, buffers)) else ():
                if sent < len(buffer):
                    self._stream.sendall(memoryview(buffer)[sent:])
                sent = max(0, sent - len(buffer))
        except OSError as error:
            self.close()
            raise errors.UnavailableError(None, None, f"The connection to a task broke: {error}") from None

    def close(self) -> None:
        """Closes it; its thread then calls `on_closed`."""
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)

    def _read(self) -> None:
        reader = FrameReader(self._stream, self._shares)
        try:
            while self._take(reader):
                pass
        except OSError:
            pass
        except Exception as error:
            log.warning("A direct connection ends: %s: %s", type(error).__name__, error)
        finally:
            self.is_closed = True
            self._stream.close()
            reader.close()
            with self._sending:
                self._least_shared = NEVER
                self._pool, self._mapped = BlockPool(), MappedBlocks()
            self._on_closed(self)

    def _take(self, reader: FrameReader) -> bool:
        """Reads a frame and does what it says; False at the end."""
        frame = reader.frame()
        if frame is None:
            return False
        kind, step, text, size, payload = frame
        del frame
        if kind & frames.SHARED:
            kind, payload = kind & ~frames.SHARED, self._mapped.payload(payload, size)
        if kind < frames.CAN_SHARE:
            self._on_frame(self, kind, step, text, payload)
        elif not self._shares:
            raise ValueError("a frame about shared memory came from another host")
        elif kind == frames.CAN_SHARE:
            self._least_shared = machine.current().profile.shared_payload
        elif kind == frames.BLOCK:
            self._mapped.add(step, reader.take_file())
        else:
            self._mapped.forget(step)
        return True


def _notice_dead_hosts(stream: socket.socket) -> None:
    """Has the system end a connection to a host that does not answer for about 20 seconds."""
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    wanted = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 3, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 20_000}
    for name, value in wanted.items():
        option = getattr(socket, name, None)
        if option is not None:
            stream.setsockopt(socket.IPPROTO_TCP, option, value)


# ---- listening and connecting


class DirectListener:
    """Accepts connections of other tasks, on a Unix socket of this host and on a TCP port of `host`. `gpus`:
    the identities of this task's GPUs, which others are told."""

    def __init__(
        self,
        host: str,
        on_frame: OnFrame,
        on_closed: OnClosed,
        security: ClusterSecurity = OPEN,
        gpus: Mapping[str, str] | None = None,
    ) -> None:
        self._on_frame, self._on_closed = on_frame, on_closed
        self._context = security.server_context()
        self._secret = secrets.token_hex(16)
        self._sockets: dict[str, socket.socket] = {}
        self._connections: set[DirectConnection] = set()
        name = f"flowstone-{secrets.token_hex(16)}"
        if _has_abstract_names():
            local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            local.bind(f"\0{name}")
            self._sockets[name] = local
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        remote = socket.socket(family, socket.SOCK_STREAM)
        remote.bind((host, 0))
        self._sockets["tcp"] = remote
        self._address = {
            "host": _host_id(),
            "unix": name if _has_abstract_names() else "",
            "port": remote.getsockname()[1],
            "secret": self._secret,
            "gpus": dict(gpus or {}),
        }

    def address(self) -> bytes:
        """What another task needs to connect."""
        return json.dumps(self._address).encode()

    def start(self) -> None:
        """Begins to accept."""
        for listening in self._sockets.values():
            listening.listen(128)
            threading.Thread(
                target=self._accept, args=(listening,), name="flowstone accept", daemon=True
            ).start()

    def stop(self) -> None:
        """Accepts no more, and closes the connections."""
        for listening in self._sockets.values():
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        for connection in list(self._connections):
            connection.close()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                stream, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=self._greet, args=(stream,), name="flowstone greet", daemon=True).start()

    def _greet(self, stream: Any) -> None:
        """Starts a connection whose first frame has the secret; closes any other."""
        stream.settimeout(_CONNECT_S)
        known = False
        try:
            if stream.family != getattr(socket, "AF_UNIX", None):
                _notice_dead_hosts(stream)
                if self._context is not None:
                    stream = self._context.wrap_socket(stream, server_side=True)
            frame = FrameReader(stream).first()
            secret, _, task = (
                ("", "", "") if frame is None or frame.kind != HELLO else frame.text.partition(" ")
            )
            known = hmac.compare_digest(secret.encode(), self._secret.encode())
            if known:
                stream.sendall(b"+")
        except (OSError, EOFError, ValueError, TypeError):
            pass
        if not known:
            log.warning("A direct connection was refused: it did not begin with this server's secret.")
            stream.close()
            return
        connection = DirectConnection(_ready(stream), self._on_frame, self._closed)
        connection.task = task
        self._connections.add(connection)
        connection.start()

    def _closed(self, connection: DirectConnection) -> None:
        self._connections.discard(connection)
        self._on_closed(connection)


def gpus_of(address: bytes) -> dict[str, str]:
    """The identities of a task's GPUs, by its devices' names, as its address says."""
    try:
        return {str(name): str(gpu) for name, gpu in json.loads(address).get("gpus", {}).items()}
    except (ValueError, AttributeError):
        return {}


def connect(
    task: str,
    host: str,
    address: bytes,
    on_frame: OnFrame,
    on_closed: OnClosed,
    security: ClusterSecurity = OPEN,
) -> DirectConnection | None:
    """A connection from `task` to the one that gave this address and whose gRPC server is on `host`; None if
    there is no way. It begins to read with its `start`."""
    try:
        given = json.loads(address)
        ways: list[tuple[str, Any]] = (
            [("unix", f"\0{given['unix']}")] if given["unix"] and given["host"] == _host_id() else []
        )
        ways.append(("tcp", (host.strip("[]"), int(given["port"]))))
        hello = f"{given['secret']} {task}".encode()
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    for kind, where in ways:
        try:
            stream = _unix_stream(where) if kind == "unix" else _tcp_stream(where, security)
            stream.sendall(header(HELLO, 0, len(hello), 0) + hello)
            if stream.recv(1) == b"+":
                return DirectConnection(_ready(stream), on_frame, on_closed)
            stream.close()
        except OSError:
            continue
    return None


def _unix_stream(where: str) -> Any:
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    stream.settimeout(_CONNECT_S)
    stream.connect(where)
    return stream


def _tcp_stream(where: tuple[str, int], security: ClusterSecurity) -> Any:
    stream = socket.create_connection(where, _CONNECT_S)
    _notice_dead_hosts(stream)
    context = security.client_context()
    if context is None:
        return stream
    return context.wrap_socket(stream, server_hostname=security.name or where[0])


def _ready(stream: Any) -> Any:
    """The stream of a connection whose ends know each other."""
    if isinstance(stream, ssl.SSLSocket):
        return TlsStream(stream)
    stream.settimeout(None)
    return stream


def _has_abstract_names() -> bool:
    """Whether Unix sockets can have names that are no files (Linux)."""
    return hasattr(socket, "AF_UNIX") and Path("/proc/net/unix").exists()


def _host_id() -> str:
    """What tells this host, and its network namespace, from others."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/net').readlink()}"
    except OSError:
        return socket.gethostname()
