"""What clients of TensorFlow ask a server, and what its own answers: ``distributed/client_VERSION.json``.

    python tests/golden/make_client_goldens.py 1.15 $TF115_PYTHON
    python tests/golden/make_client_goldens.py 2.21 $TF_PYTHON

A server of that TensorFlow is started, a proxy in front of it, and a program of that TensorFlow is run
against the proxy, which writes down every request and response of the MasterService.
"""

from __future__ import annotations

import base64
import concurrent.futures
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc

GOLDEN = Path(__file__).parent / "distributed"

IMPORT = """
try:
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
except ImportError:
    import tensorflow as tf
"""
SERVER = (
    IMPORT
    + """
server = tf.train.Server({"local": ["localhost:0"]})
print(server.target, flush=True)
server.join()
"""
)
CLIENT = (
    IMPORT
    + """
import sys
import numpy as np
x = tf.placeholder(tf.float32, [None, 2], name="x")
words = tf.placeholder(tf.string, [2], name="words")
v = tf.Variable(np.float32([[1, 2], [3, 4]]), name="v", use_resource=False)
y = tf.matmul(x, v, name="y")
joined = tf.string_join([words, tf.constant([b"a", b"b"])], name="joined")
names = tf.identity(tf.constant([b"a" * 40, b"", b"b" * 200]), name="names")
i = tf.while_loop(lambda i: i < 5, lambda i: i * 2, [tf.constant(1)])
queue = tf.FIFOQueue(3, [tf.int64], shapes=[[]], name="queue")
put, taken = queue.enqueue(7), queue.dequeue()
with tf.Session(sys.argv[1]) as session:
    session.run(v.initializer)
    session.run(y, {x: [[1, 1]]})
    session.run([joined, i], {words: ["x", "yz"]})
    session.run(names)
    session.run(put)
    session.run(taken)
    grown = tf.reduce_sum(tf.gradients(y, v)[0], name="grown")
    session.run([grown, v], {x: np.eye(2)})
    call = session.make_callable(y, [x])
    call(np.float32([[0, 1]]))
    handle = session.partial_run_setup([y], [x])
    session.partial_run(handle, y, {x: [[2, 2]]})
"""
)


class Proxy(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Forwards every request, and keeps it with its response."""

    def __init__(self, upstream: str) -> None:
        self.channel = grpc.insecure_channel(upstream)
        self.calls: list[tuple[str, bytes, bytes]] = []

    def service(self, details: Any) -> Any:
        forward = self.channel.unary_unary(details.method)

        def handle(request: bytes, context: Any) -> bytes:
            response: bytes = forward(request)
            self.calls.append((details.method, request, response))
            return response

        return grpc.unary_unary_rpc_method_handler(handle)


def main(version: str, python: str) -> None:
    """Writes the golden file of a TensorFlow, whose interpreter is `python`."""
    with subprocess.Popen([python, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        proxy = Proxy(server.stdout.readline().strip().removeprefix("grpc://"))
        front = grpc.server(concurrent.futures.ThreadPoolExecutor(4), handlers=[proxy])
        port = front.add_insecure_port("localhost:0")
        front.start()
        try:
            subprocess.run([python, "-c", CLIENT, f"grpc://localhost:{port}"], check=True)
        finally:
            front.stop(None)
            server.kill()
    calls = [
        {
            "method": method,
            "request": base64.b64encode(request).decode(),
            "response": base64.b64encode(response).decode(),
        }
        for method, request, response in proxy.calls
        if "MasterService" in method
    ]
    GOLDEN.mkdir(exist_ok=True)
    path = GOLDEN / f"client_{version}.json"
    path.write_text(json.dumps(calls, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
