"""`Server`: a model behind REST and gRPC, from its first version to an orderly end.

    with Server(ServerOptions("/models/half", rest_port=0, grpc_port=None)) as server:
        server.run(stop)        # looks for new versions until the threading.Event `stop` is set

Leaving the context answers what was asked, refuses what comes then, and ends the model.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import NamedTuple

from flowstone.framework import errors
from flowstone.serving import rest, services
from flowstone.serving.batching import BatchOptions
from flowstone.serving.grpc_server import GrpcServer
from flowstone.serving.http_server import HttpServer
from flowstone.serving.model import Model, default_name
from flowstone.serving.servable import Servable

__all__ = ["Server", "ServerOptions"]


class ServerOptions(NamedTuple):
    """What is served, and where. A port that is None is not opened, port 0 is any free one."""

    folder: str
    name: str = ""
    tags: tuple[str, ...] = ("serve",)
    signature_name: str = "serving_default"
    host: str = "127.0.0.1"
    rest_port: int | None = 8501
    grpc_port: int | None = 8500
    threads: int = 16
    max_request_bytes: int = 64 << 20
    batching: BatchOptions = BatchOptions()
    poll_s: float = 1.0
    grace_s: float = 30.0


class Server:
    """Loads the newest version, then listens. NotFoundError if there is none, the error of loading it,
    OSError if a port is taken. `report` is called with a line for each start, end and failure."""

    def __init__(self, options: ServerOptions, report: Callable[[str], None] = lambda line: None) -> None:
        self.options, self._report = options, report
        name = options.name or default_name(options.folder)
        self.model = Model(
            name,
            options.folder,
            functools.partial(Servable, tags=options.tags, batching=options.batching),
            report,
            options.signature_name,
        )
        self._http: HttpServer | None = None
        self._grpc: GrpcServer | None = None
        self._load_first()
        try:
            self._listen()
        except BaseException:
            self.close()
            raise

    def _load_first(self) -> None:
        self.model.refresh()
        if self.model.is_available:
            return
        try:
            (status, *_) = self.model.statuses(self.model.name)
        except errors.NotFoundError:
            message = f"{self.options.folder} is neither a SavedModel nor a folder with numbered ones"
            raise errors.NotFoundError(None, None, message) from None
        assert status.error is not None
        raise status.error

    def _listen(self) -> None:
        options = self.options
        if options.rest_port is not None:
            self._http = HttpServer(
                self._answer_http, options.host, options.rest_port, options.threads, options.max_request_bytes
            )
            self._report(f"REST on http://{options.host}:{self.rest_port}/v1/models/{self.model.name}")
        if options.grpc_port is not None:
            self._grpc = GrpcServer(
                self._answer_grpc, options.host, options.grpc_port, options.threads, options.max_request_bytes
            )
            self._report(f"gRPC on {options.host}:{self.grpc_port}")

    def _answer_http(self, request: rest.Request) -> rest.Response:
        response = rest.answer(self.model, request)
        if response.failure:
            self._report(f"{request.method} {request.path} failed: {_line(response.failure)}")
        return response

    def _answer_grpc(self, method: str, request: bytes) -> bytes:
        try:
            return services.answer(self.model, method, request, self.options.max_request_bytes)
        except errors.OpError as error:
            if error.error_code in (errors.INTERNAL, errors.UNKNOWN, errors.DATA_LOSS):
                self._report(f"{method} failed: {_line(error.message)}")
            raise

    @property
    def rest_port(self) -> int | None:
        """The port of HTTP, if it is open."""
        return self._http.port if self._http else None

    @property
    def grpc_port(self) -> int | None:
        """The port of gRPC, if it is open."""
        return self._grpc.port if self._grpc else None

    def run(self, stop: threading.Event) -> None:
        """Looks for new versions until `stop` is set."""
        while not stop.wait(self.options.poll_s):
            self.model.refresh()

    def close(self) -> None:
        """Answers what was asked, within the time of grace, then ends the model."""
        http, grpc = self._http, self._grpc
        self._http = self._grpc = None
        stops = [
            threading.Thread(target=each.stop, args=(self.options.grace_s,))
            for each in (http, grpc)
            if each is not None
        ]
        for thread in stops:
            thread.start()
        for thread in stops:
            thread.join()
        self.model.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _line(text: str) -> str:
    return " ".join(text.split())[:500]
