"""The whole server: over sockets, by plain clients, from the command line to the end of the process."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flowstone.framework.types.tensor_proto import make_tensor_proto
from flowstone.io.proto.serving import health_pb2, predict_pb2
from flowstone.serving.batching import BatchOptions
from flowstone.tools.command_line import build_parser

pytest.importorskip("waitress", reason="HTTP is served by waitress: pip install 'flowstone[serve]'")
grpc = pytest.importorskip("grpc", reason="gRPC is served by grpcio: pip install 'flowstone[serve]'")

from flowstone.serving.server import Server, ServerOptions  # noqa: E402


def options(folder: Path, **others: Any) -> Any:
    return ServerOptions(str(folder), rest_port=0, grpc_port=0, **others)


@pytest.fixture(scope="module")
def server(model_folder: Path) -> Iterator[Any]:
    batching = BatchOptions(max_batch_size=8)
    with Server(options(model_folder, max_request_bytes=100_000, batching=batching)) as server:
        yield server


def post(server: Any, body: bytes, what: str = ":predict") -> tuple[int, Any]:
    url = f"http://127.0.0.1:{server.rest_port}/v1/models/half{what}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=10) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def request_bytes(values: Any) -> bytes:
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "half"
    request.inputs["x"].CopyFrom(make_tensor_proto(np.float32(values)))
    return request.SerializeToString()


def test_http(server: Any) -> None:
    assert post(server, b'{"instances": [1.0, 2.0]}') == (200, {"predictions": [2.5, 3.0]})
    assert post(server, b"{", "/versions/3:predict")[0] == 400
    assert post(server, b" " * 200_000)[0] == 413
    with urllib.request.urlopen(f"http://127.0.0.1:{server.rest_port}/healthz", timeout=10) as response:
        assert response.headers["Content-Type"] == "application/json"
        assert response.status == 200


def test_http_of_many_clients(server: Any) -> None:
    found: dict[int, Any] = {}

    def ask(x: int) -> None:
        found[x] = post(server, json.dumps({"instances": [float(x)]}).encode())

    threads = [threading.Thread(target=ask, args=(x,)) for x in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found == {x: (200, {"predictions": [x * 0.5 + 2.0]}) for x in range(12)}


def test_grpc(server: Any) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        predict = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
        response = predict_pb2.PredictResponse.FromString(predict(request_bytes([1, 2]), timeout=10))
        assert list(response.outputs["y"].float_val) == [2.5, 3.0]
        health = channel.unary_unary("/grpc.health.v1.Health/Check")
        status = health_pb2.HealthCheckResponse.FromString(health(b"", timeout=10)).status
        assert status == health_pb2.HealthCheckResponse.SERVING
        for request, code in (
            (request_bytes([[1]]), grpc.StatusCode.INVALID_ARGUMENT),
            (b"\x0a\xff", grpc.StatusCode.INVALID_ARGUMENT),
            (b"", grpc.StatusCode.INVALID_ARGUMENT),
            (request_bytes(np.zeros(50_000)), grpc.StatusCode.RESOURCE_EXHAUSTED),
        ):
            with pytest.raises(grpc.RpcError) as failure:
                predict(request, timeout=10)
            assert failure.value.code() is code, failure.value
        assert predict(request_bytes([1]), timeout=10)
        with pytest.raises(grpc.RpcError) as failure:
            channel.unary_unary("/tensorflow.serving.PredictionService/Guess")(b"", timeout=10)
        assert failure.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_hosts_name(model_folder: Path) -> None:
    with Server(options(model_folder, host="localhost")) as server:
        url = f"http://localhost:{server.rest_port}/v1/models/half"
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=10) as response:
            assert response.read() == b""


def test_the_end_waits_for_requests(model_folder: Path) -> None:
    """A connection that is kept gets its answer, is told to close, and nobody comes in any more."""
    server = Server(options(model_folder))
    http_server = server._http
    assert http_server is not None
    begun, go = threading.Event(), threading.Event()
    answered = http_server._answer

    def slowly(request: Any) -> Any:
        begun.set()
        assert go.wait(10)
        return answered(request)

    http_server._answer = slowly
    connection = http.client.HTTPConnection("127.0.0.1", http_server.port, timeout=10)
    connection.request("POST", "/v1/models/half:predict", b'{"instances": [1.0]}')
    assert begun.wait(10)
    end = threading.Thread(target=server.close)
    end.start()
    while not http_server._ends:
        assert end.is_alive()
    go.set()
    response = connection.getresponse()
    assert json.loads(response.read()) == {"predictions": [2.5]}
    assert response.getheader("Connection") == "close"
    end.join(10)
    assert not end.is_alive()
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection("127.0.0.1", http_server.port, timeout=10).connect()


def serve(*arguments: str) -> int:
    parsed = build_parser().parse_args(["serve", *arguments])
    return int(parsed.execute(parsed))


def test_what_cannot_be_served(
    tmp_path: Path, model_folder: Path, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [
        ((str(tmp_path),), "is neither a SavedModel nor a folder with numbered ones"),
        ((str(model_folder), "--tags", "other"), "could not be found in SavedModel"),
        ((str(model_folder), "--rest-port", str(server.rest_port), "--grpc-port", "none"), "in use"),
        ((str(model_folder), "--rest-port", "none", "--grpc-port", str(server.grpc_port)), "cannot listen"),
    ]
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for arguments, message in cases:
            assert serve(*arguments) == 2
            assert message in capsys.readouterr().err
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for wrong in ("--max-batch-size=0", "--rest-port=70000", "--batch-timeout-micros=-1"):
        with pytest.raises(SystemExit):
            serve(str(model_folder), wrong)


def test_the_command(model_folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "flowstone",
        "serve",
        str(model_folder),
        "--rest-port=0",
        "--grpc-port=0",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            lines = [process.stderr.readline() for _ in range(3)]
            assert "serving version 3 of half from" in lines[0]
            (port,) = re.findall(r"REST on http://127.0.0.1:(\d+)/v1/models/half", lines[1])
            assert "gRPC on 127.0.0.1:" in lines[2]
            address = type("Address", (), {"rest_port": port})
            assert post(address, b'{"instances": [4.0]}') == (200, {"predictions": [4.0]})
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
            assert "ended version 3 of half" in process.stderr.read()
        finally:
            process.kill()
