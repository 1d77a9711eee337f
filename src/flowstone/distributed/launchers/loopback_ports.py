"""Ports that are free and stay so until a task takes them.

A port is *held* by a socket bound to it, until just before its task starts (`release`). Between that and
the moment when the task listens, two things keep others away: the port lies below those that the kernel
gives to whoever asks for any, and a lock in the kernel's namespace of abstract sockets, which ends with
this process, tells other launchers of this machine that it is taken. Whoever ignores both is found out by
`is_taken`, after the task has failed.
"""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path
from types import TracebackType

__all__ = ["HeldPort", "hold_ports", "is_taken"]

_FIRST = 10_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_ATTEMPTS = 2000


class HeldPort:
    """A port of the interface `host` that nobody else listens on. OSError if someone does.

    Use as a context manager, or `close`: the lock ends with it.
    """

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.port = port
        self._lock = _lock(port)
        self._socket: socket.socket | None = None
        try:
            self._socket = _bound(port, host, shared=False)
        except OSError:
            self.close()
            raise

    def release(self) -> None:
        """Lets the task have the port."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def close(self) -> None:
        """Gives the port back."""
        self.release()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> HeldPort:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def hold_ports(count: int, host: str = "127.0.0.1") -> list[HeldPort]:
    """Holds `count` free ports of an interface. OSError if there are not so many."""
    first, last = _FIRST, _last_port()
    held: list[HeldPort] = []
    for _ in range(_ATTEMPTS):
        if len(held) == count:
            return held
        with contextlib.suppress(OSError):
            held.append(HeldPort(random.SystemRandom().randrange(first, last), host))
    for port in held:
        port.close()
    raise OSError(f"there are no {count} free ports between {first} and {last} on {host}")


def is_taken(port: int, host: str = "127.0.0.1") -> bool:
    """Whether someone listens on the port."""
    try:
        _bound(port, host, shared=True).close()
    except OSError:
        return True
    return False


def _bound(port: int, host: str, shared: bool) -> socket.socket:
    """A socket with this address. If `shared`, others may bind to it as well, though only one may listen, and
    connections that are in TIME_WAIT are in nobody's way."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(shared))
        found.bind((host, port))
    except OSError:
        found.close()
        raise
    return found


def _lock(port: int) -> socket.socket | None:
    """A name in the kernel that one process can have; None where there are no such names."""
    if not _RANGE.exists():
        return None
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        lock.bind(f"\0flowstone port {port}")
    except OSError:
        lock.close()
        raise
    return lock


def _last_port() -> int:
    """Below the ports that the kernel gives away; if these begin low, the whole range."""
    try:
        first_given = int(_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 32_768
    return first_given if first_given >= _FIRST + 1000 else 65_536
