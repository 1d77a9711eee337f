"""`rest` over HTTP, by waitress: threads that answer, beside one that reads requests and writes responses.

A request reaches a thread when it is complete, so that slow clients hold none. A body beyond the limit is
refused with 413 before it is read whole.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from waitress import create_server, wasyncore

from flowstone.serving.rest import Request, Response

__all__ = ["HttpServer"]

_LOOK_S = 0.01
_QUIET_LOOKS = 5  # after which the clients that keep a connection have nothing more on its way
_MOST_CONNECTIONS = 1000


class HttpServer:
    """Serves from its making on.

    Args:
        answer: gives the Response of a Request; called by many threads.
        host, port: where it listens; port 0 takes a free one, told by `port`.
        threads: how many requests are answered at a time.
        max_request_bytes: of a body.

    OSError if the port is taken.
    """

    def __init__(
        self,
        answer: Callable[[Request], Response],
        host: str,
        port: int,
        threads: int,
        max_request_bytes: int,
    ) -> None:
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # a full queue is no news
        self._answer, self._ends = answer, False
        self._sockets: dict[int, Any] = {}
        self._server = create_server(
            self._application,
            map=self._sockets,
            listen=_address(host, port),
            threads=threads,
            connection_limit=_MOST_CONNECTIONS,
            asyncore_use_poll=True,  # select stops at 1,024 files
            max_request_body_size=max_request_bytes,
            inbuf_overflow=max_request_bytes + 1,  # no files
            ident="flowstone",
            clear_untrusted_proxy_headers=True,
        )
        self.port = int(self._server.effective_port)
        self._thread = threading.Thread(target=self._server.run, name="flowstone-http", daemon=True)
        self._thread.start()

    def _application(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        # WSGI has decoded the path byte for byte.
        path = unquote(environ["PATH_INFO"].encode("latin-1"))
        method = environ["REQUEST_METHOD"]
        body = environ["wsgi.input"].read() if method == "POST" else b""
        response = self._answer(Request("GET" if method == "HEAD" else method, path, body))
        if method == "HEAD":
            response = response._replace(body=b"")
        try:
            reason = HTTPStatus(response.status).phrase
        except ValueError:
            reason = "Error"
        headers = [("Content-Type", "application/json")]
        if not self._ends:
            headers.append(("Content-Length", str(len(response.body))))
        start_response(f"{response.status} {reason}", headers)
        # Without a length, waitress says "Connection: close" and does so.
        return iter([response.body]) if self._ends else [response.body]

    def stop(self, grace_s: float) -> None:
        """Takes no more connections, closes each with its next answer, the idle ones at last."""
        self._ends = True
        self._in_loop(lambda: wasyncore.dispatcher.close(self._server))
        end, quiet = time.monotonic() + grace_s, 0
        while quiet < _QUIET_LOOKS and time.monotonic() < end:
            time.sleep(_LOOK_S)
            quiet = 0 if any(map(_is_busy, list(self._server.active_channels.values()))) else quiet + 1
        self._server.task_dispatcher.shutdown(timeout=max(1.0, end - time.monotonic()))
        self._in_loop(lambda: wasyncore.close_all(self._sockets, ignore_all=True))
        self._thread.join(timeout=1.0)

    def _in_loop(self, call: Callable[[], Any]) -> None:
        """Has the loop's thread call something, whose sockets are its own."""
        done = threading.Event()

        def thunk() -> None:
            try:
                call()
            finally:
                done.set()

        self._server.trigger.pull_trigger(thunk)
        done.wait(timeout=5.0)


def _address(host: str, port: int) -> str:
    """The first address of a host, for a name may have several, each of which would be a server."""
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return f"[{address[0]}]:{port}" if family == socket.AF_INET6 else f"{address[0]}:{port}"


def _is_busy(channel: Any) -> bool:
    return bool(channel.requests or channel.total_outbufs_len)
