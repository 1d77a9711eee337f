"""Requests a second and latency of `flowstone serve`, for a small perceptron, beside a loop of `session.run`.

python benchmarks/serving.py [--clients 1,16] [--seconds 3] [--json FILE] [--markdown FILE]

The model is a perceptron of 784-256-128-10 units; a request has one example. The server is a process of its
own, the clients are threads of this one, each with a connection that it keeps. REST sends the example as JSON
(about 8 kB), gRPC as a TensorProto (3 kB). What `session.run` makes of the same model and example, in one
thread and without any server, is the bound. TensorFlow's package has no server to compare with: TensorFlow
Serving is a program of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import itertools
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import numpy as np

import flowstone as tf
from compare import machine, markdown_table
from flowstone.framework.types.tensor_proto import make_tensor_proto
from flowstone.io.proto.serving.predict_pb2 import PredictRequest

UNITS = (784, 256, 128, 10)
WARM_UP_S = 0.5
EXAMPLE = np.random.default_rng(0).random([1, UNITS[0]]).astype(np.float32)


class Rate(NamedTuple):
    """What clients saw: requests a second, the median and the 99th percentile of their times."""

    per_second: float
    median_ms: float
    p99_ms: float


def save(folder: str) -> float:
    """Saves the model; returns the median seconds of `session.run` for one example."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = value = tf.placeholder(tf.float32, [None, UNITS[0]], name="x")
        for index, (inputs, outputs) in enumerate(itertools.pairwise(UNITS)):
            weights = tf.Variable(tf.truncated_normal([inputs, outputs], stddev=0.05, seed=index))
            value = tf.matmul(value, weights) + tf.Variable(tf.zeros([outputs]))
            value = tf.nn.relu(value) if outputs != UNITS[-1] else tf.nn.softmax(value)
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, folder, {"x": x}, {"y": value})
        for _ in range(200):
            session.run(value, {x: EXAMPLE})
        times = []
        for _ in range(2000):
            start = time.perf_counter()
            session.run(value, {x: EXAMPLE})
            times.append(time.perf_counter() - start)
        return float(np.median(times))


@contextlib.contextmanager
def server(folder: str, batch: int) -> Iterator[tuple[int, int]]:
    """The ports of REST and gRPC of a server that joins at most so many examples."""
    command = [
        sys.executable,
        "-m",
        "flowstone",
        "serve",
        folder,
        "--name=mlp",
        "--rest-port=0",
        "--grpc-port=0",
    ]
    with subprocess.Popen(
        [*command, f"--max-batch-size={batch}"], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            lines = "".join(process.stderr.readline() for _ in range(3))
            rest, grpc_port = re.findall(r"127\.0\.0\.1:(\d+)", lines)
            yield int(rest), int(grpc_port)
        finally:
            process.terminate()


def rest_client(port: int) -> Callable[[], None]:
    """A function that asks once."""
    body = json.dumps({"instances": [[round(float(x), 6) for x in EXAMPLE[0]]]}).encode()
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def ask() -> None:
        connection.request("POST", "/v1/models/mlp:predict", body)
        response = connection.getresponse()
        assert response.status == 200, response.read()
        response.read()

    return ask


def grpc_client(port: int) -> Callable[[], None]:
    """A function that asks once."""
    request = PredictRequest()
    request.model_spec.name = "mlp"
    request.inputs["x"].CopyFrom(make_tensor_proto(EXAMPLE))
    body = request.SerializeToString()
    options = [("grpc.use_local_subchannel_pool", 1)]  # a connection a client
    channel = grpc.insecure_channel(f"127.0.0.1:{port}", options)
    predict = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
    return lambda: predict(body, timeout=60)


def rate(make: Callable[[int], Callable[[], None]], port: int, clients: int, seconds: float) -> Rate:
    """What so many clients see that ask one request after the other."""
    times: list[list[float]] = [[] for _ in range(clients)]
    begin = time.perf_counter() + WARM_UP_S
    end = begin + seconds

    def ask_on(found: list[float]) -> None:
        ask = make(port)
        while (start := time.perf_counter()) < end:
            ask()
            if start >= begin:
                found.append(time.perf_counter() - start)

    threads = [threading.Thread(target=ask_on, args=(found,)) for found in times]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    every = 1e3 * np.array(list(itertools.chain.from_iterable(times)))
    return Rate(len(every) / seconds, float(np.median(every)), float(np.percentile(every, 99)))


def measured(clients: list[int], seconds: float) -> dict[str, Any]:
    """The rates by what was asked, and the seconds of `session.run`."""
    rates: dict[str, Rate] = {}
    with tempfile.TemporaryDirectory() as below:
        folder = f"{below}/mlp"
        alone = save(folder)
        for batch in (1, 64):
            with server(folder, batch) as (rest, grpc_port):
                for name, make, port in (("REST", rest_client, rest), ("gRPC", grpc_client, grpc_port)):
                    for count in clients:
                        joined = "requests joined" if batch > 1 else "each alone"
                        key = f"{name}, {count} client{'s' * (count > 1)}, {joined}"
                        rates[key] = rate(make, port, count, seconds)
                        print(key, rates[key], file=sys.stderr)
    return {"session.run": alone, **{key: list(each) for key, each in sorted(rates.items())}}


def report(found: dict[str, Any], seconds: float) -> str:
    """The page of what was measured."""
    alone = found["session.run"]
    rows = [["", "requests/s", "median, ms", "99th percentile, ms"]]
    rows.append(["`session.run` in a loop, no server", f"{1 / alone:,.0f}", f"{1e3 * alone:.3g}", ""])
    for key, values in found.items():
        if key != "session.run":
            per_second, median, high = values
            rows.append([key, f"{per_second:,.0f}", f"{median:.3g}", f"{high:.3g}"])
    heading = (
        f"{machine()}; a perceptron of {'-'.join(map(str, UNITS))} units, an example a request, "
        f"{seconds:g} s each. Server and clients share the cores."
    )
    return f"{heading}\n\n{markdown_table(rows)}\n"


def main() -> None:
    """Reads the arguments, measures, writes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", default="1,16")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    found = measured([int(each) for each in arguments.clients.split(",")], arguments.seconds)
    page = report(found, arguments.seconds)
    print(page)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    if arguments.markdown:
        arguments.markdown.write_text(f"# Serving\n\n{page}")


if __name__ == "__main__":
    main()
