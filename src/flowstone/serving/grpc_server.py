"""`services` over gRPC: the one file of this room that imports grpc. It hands over bytes and codes.

Handlers are generic, so that no generated stub is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from flowstone.framework.errors import OpError
from flowstone.serving.services import METHODS

__all__ = ["GrpcServer"]

_CODES = {code.value[0]: code for code in grpc.StatusCode}
_MOST_DETAILS = 2000  # they travel in a header, whose size is limited


class GrpcServer:
    """Serves from its making on.

    Args:
        answer: gives the response's bytes for a method's full name and a request's; called by many threads.
        host, port: where it listens; port 0 takes a free one, told by `port`.
        threads: how many requests are answered at a time.
        max_request_bytes: of a message.

    OSError if the port is taken.
    """

    def __init__(
        self,
        answer: Callable[[str, bytes], bytes],
        host: str,
        port: int,
        threads: int,
        max_request_bytes: int,
    ) -> None:
        options = [
            ("grpc.max_receive_message_length", max_request_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
        ]
        pool = ThreadPoolExecutor(threads, thread_name_prefix="flowstone-grpc")
        self._server = grpc.server(pool, handlers=[_Handlers(answer)], options=options)
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            self.port = int(self._server.add_insecure_port(address))
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address}: {error}") from None
        if not self.port:
            raise OSError(f"cannot listen on {address}")
        self._server.start()

    def stop(self, grace_s: float) -> None:
        """Takes no more requests, waits for those that are being answered."""
        self._server.stop(grace_s).wait()


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, answer: Callable[[str, bytes], bytes]) -> None:
        self._answer = answer

    def service(self, details: Any) -> Any:
        if details.method not in METHODS:
            return None  # gRPC says UNIMPLEMENTED

        def handle(request: bytes, context: Any) -> Any:
            try:
                return self._answer(details.method, request)
            except OpError as error:
                context.abort(_CODES[error.error_code], error.message[:_MOST_DETAILS])

        return grpc.unary_unary_rpc_method_handler(handle)
