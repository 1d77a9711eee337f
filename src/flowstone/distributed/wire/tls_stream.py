"""`TlsStream`: an encrypted socket that one thread reads while others write.

OpenSSL's connections are not for two threads at once. Here reading and writing take turns, and neither waits
for the other end with the turn in hand.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["TlsStream"]

_PIECE = 1 << 18  # bytes that are encrypted in one turn


class TlsStream:
    """What frames need of a socket, over a connection whose handshake is done. Raises OSError, as sockets
    do."""

    def __init__(self, tls: ssl.SSLSocket) -> None:
        self._tls = tls
        self._turn = threading.Lock()
        self.family = tls.family
        tls.setblocking(False)

    def recv_into(self, view: memoryview) -> int:
        """Reads at least one byte; 0 at the end."""
        return self._in_turn(self._tls.recv_into, view)

    def sendmsg(self, buffers: Sequence[Any]) -> int:
        """Sends all the buffers' bytes, and says how many they are."""
        if len(buffers) == 1 or sum(map(len, buffers)) <= _PIECE:
            buffers = [b"".join(buffers)]
        for buffer in buffers:
            self.sendall(buffer)
        return sum(map(len, buffers))

    def sendall(self, buffer: Any) -> None:
        """Sends all bytes."""
        rest = memoryview(buffer)
        while rest:
            rest = rest[self._in_turn(self._tls.send, rest[:_PIECE]) :]

    def setsockopt(self, level: int, option: int, value: int) -> None:
        """As of a socket."""
        self._tls.setsockopt(level, option, value)

    def shutdown(self, how: int) -> None:
        """Ends the connection below; who waits for it wakes."""
        socket.socket.shutdown(self._tls, how)  # not TLS's own, which would go on in plain text

    def close(self) -> None:
        """Closes the socket."""
        self._tls.close()

    def _in_turn(self, act: Callable[[Any], int], view: Any) -> int:
        while True:
            with self._turn:
                try:
                    return act(view)
                except ssl.SSLWantReadError:
                    awaited = select.POLLIN
                except ssl.SSLWantWriteError:
                    awaited = select.POLLOUT
            poll = select.poll()
            try:
                poll.register(self._tls.fileno(), awaited)
            except ValueError:
                raise OSError("the connection is closed") from None
            poll.poll()
