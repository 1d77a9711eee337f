"""Direct connections between the tasks of a cluster: frames over sockets, for what every step needs.

gRPC costs a Python process a fifth of a millisecond a request. What a step exchanges between our own servers
(its requests to workers and the tensors) goes over sockets instead: Unix domain sockets within a host, TCP
between hosts. A tensor's memory is handed to the system as it is, and read into the memory that the receiver
will use.

A server tells where it listens, and the secret that a connection begins with, by a request of gRPC
(``/flowstone.Direct/Address``); who cannot connect uses gRPC for everything. A frame is

    kind (1 byte), step (8), length of the text (4), length of the payload (8), text, payload

Damaged or unknown frames end the connection, with a line in the log. No frame holds code or pickled objects.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flowstone.framework import errors
from flowstone.framework import logging as log

__all__ = [
    "ABORT",
    "CLEAN",
    "COLLECT",
    "DONE",
    "FAILED",
    "PUSH",
    "RUN",
    "DirectConnection",
    "DirectListener",
    "connect",
]

HELLO, RUN, DONE, FAILED, PUSH, CLEAN, ABORT, COLLECT = range(1, 9)  # kinds of frames
_HEADER = struct.Struct("<BQIQ")
_MOST_TEXT = 1 << 24
_MOST_PAYLOAD = 1 << 40
_BUFFER = 1 << 16  # bytes that are read at once
_SOCKET_BUFFER = 1 << 22
_CONNECT_S = 3.0

OnFrame = Callable[["DirectConnection", int, int, str, Any], None]
OnClosed = Callable[["DirectConnection"], None]


class DirectConnection:
    """One end of a connection. `on_frame(connection, kind, step, text, payload)` is called by the
    connection's own thread, one frame at a time; the payload is memory that nobody else has. `on_closed` is
    called once."""

    def __init__(self, stream: socket.socket, on_frame: OnFrame, on_closed: OnClosed) -> None:
        self._stream, self._on_frame, self._on_closed = stream, on_frame, on_closed
        self._sending = threading.Lock()
        self.is_closed = False
        self.task = ""  # that began the connection, where it was accepted
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            stream.setsockopt(socket.SOL_SOCKET, option, _SOCKET_BUFFER)
        if stream.family != socket.AF_UNIX:
            _notice_dead_hosts(stream)

    def start(self) -> None:
        """Begins to read."""
        threading.Thread(target=self._read, name="flowstone direct", daemon=True).start()

    def send(self, kind: int, step: int, text: str = "", parts: Sequence[Any] = ()) -> None:
        """Sends a frame, whose payload is the parts' bytes; waits until the system has taken it.

        UnavailableError if the connection is closed.
        """
        words = text.encode()
        buffers = [_HEADER.pack(kind, step, len(words), sum(map(len, parts))) + words, *parts]
        try:
            with self._sending:
                sent = self._stream.sendmsg(buffers)
                total = sum(map(len, buffers))
                if sent < total:
                    self._send_rest(buffers, sent)
        except OSError as error:
            self.close()
            raise errors.UnavailableError(None, None, f"The connection to a task broke: {error}") from None

    def _send_rest(self, buffers: list[Any], sent: int) -> None:
        for buffer in buffers:
            if sent >= len(buffer):
                sent -= len(buffer)
                continue
            self._stream.sendall(memoryview(buffer)[sent:])
            sent = 0

    def close(self) -> None:
        """Closes it; its thread then calls `on_closed`."""
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)

    def _read(self) -> None:
        reader = _Reader(self._stream)
        try:
            while True:
                frame = reader.frame()
                if frame is None:
                    break
                self._on_frame(self, *frame)
                del frame
        except OSError:
            pass
        except Exception as error:
            log.warning("A direct connection ends: %s: %s", type(error).__name__, error)
        finally:
            self.is_closed = True
            self._stream.close()
            self._on_closed(self)


class _Reader:
    """Frames from a stream; small ones are read several at once."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        self._bytes = bytearray(_BUFFER)
        self._view = memoryview(self._bytes)
        self._start = self._end = 0

    def frame(self) -> tuple[int, int, str, Any] | None:
        """The next frame; None at the end. ValueError for one that cannot be."""
        if not self._have(_HEADER.size):
            return None
        kind, step, words, size = _HEADER.unpack_from(self._view, self._start)
        if not HELLO <= kind <= COLLECT or words > _MOST_TEXT or size > _MOST_PAYLOAD:
            raise ValueError(f"a frame of kind {kind} with {words} and {size} bytes is malformed")
        self._start += _HEADER.size
        text = str(self._take(words), "utf-8", "replace") if words else ""
        return kind, step, text, self._take(size)

    def _have(self, count: int) -> bool:
        """Reads until `count` bytes, not more than the buffer has, are there; False at the end of the
        stream."""
        while self._end - self._start < count:
            if self._start:
                rest = self._end - self._start
                self._view[:rest] = bytes(self._view[self._start : self._end])
                self._start, self._end = 0, rest
            got = self._stream.recv_into(self._view[self._end :])
            if not got:
                return False
            self._end += got
        return True

    def _take(self, count: int) -> memoryview:
        """`count` bytes in memory of their own. EOFError if the stream ends before."""
        if not count:
            return memoryview(b"")
        taken = np.empty(count, np.uint8)
        view: memoryview = taken.data.cast("B")
        there = min(count, self._end - self._start)
        view[:there] = self._view[self._start : self._start + there]
        self._start += there
        while there < count:
            got = self._stream.recv_into(view[there:])
            if not got:
                raise EOFError("the stream ended within a frame")
            there += got
        return view


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
    """Accepts connections of other tasks, on a Unix socket of this host and on a TCP port of `host`."""

    def __init__(self, host: str, on_frame: OnFrame, on_closed: OnClosed) -> None:
        self._on_frame, self._on_closed = on_frame, on_closed
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

    def _greet(self, stream: socket.socket) -> None:
        """Starts a connection whose first frame has the secret; closes any other."""
        stream.settimeout(_CONNECT_S)
        try:
            frame = _Reader(stream).frame()
            secret, _, task = ("", "", "") if frame is None or frame[0] != HELLO else frame[2].partition(" ")
            known = hmac.compare_digest(secret.encode(), self._secret.encode())
            if known:
                stream.sendall(b"+")
        except (OSError, EOFError, ValueError, TypeError):
            known = False
        if not known:
            log.warning("A direct connection was refused: it did not begin with this server's secret.")
            stream.close()
            return
        stream.settimeout(None)
        connection = DirectConnection(stream, self._on_frame, self._closed)
        connection.task = task
        self._connections.add(connection)
        connection.start()

    def _closed(self, connection: DirectConnection) -> None:
        self._connections.discard(connection)
        self._on_closed(connection)


def connect(
    task: str, host: str, address: bytes, on_frame: OnFrame, on_closed: OnClosed
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
            if kind == "unix":
                stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                stream.settimeout(_CONNECT_S)
                stream.connect(where)
            else:
                stream = socket.create_connection(where, _CONNECT_S)
            stream.sendall(_HEADER.pack(HELLO, 0, len(hello), 0) + hello)
            if stream.recv(1) == b"+":
                stream.settimeout(None)
                return DirectConnection(stream, on_frame, on_closed)
            stream.close()
        except OSError:
            continue
    return None


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
