"""Answers TensorFlow Serving's REST and gRPC requests for a SavedModel.

    flowstone serve [options] MODEL

MODEL is the folder of a SavedModel, or a folder with numbered ones below it (MODEL/1, MODEL/2): the newest is
served, and a newer one that appears takes over. SIGTERM and SIGINT end the server when what was asked is
answered.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time

from flowstone.framework.errors import OpError

NAME = "serve"
SUMMARY = "answer TensorFlow Serving's REST and gRPC requests for a saved model"


def declare(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `flowstone serve`."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a SavedModel's folder, or one with numbered versions below")
    add("--name", default="", help="what requests call the model (its folder's name)")
    add("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1: this machine alone)")
    add("--rest-port", type=_port, default=8501, metavar="N", help="of HTTP (8501); 0: any, none: no HTTP")
    add("--grpc-port", type=_port, default=8500, metavar="N", help="of gRPC (8500); 0: any, none: no gRPC")
    add("--tags", default="serve", help="of the graph to take, separated by commas (serve)")
    add("--signature", default="serving_default", help="of requests that name none (serving_default)")
    add("--threads", type=_positive, default=16, metavar="N", help="requests answered at a time (16)")
    add("--max-batch-size", type=_positive, default=1, metavar="N", help="rows joined in a step (1: none)")
    add(
        "--batch-timeout-micros",
        type=_not_negative,
        default=0,
        metavar="N",
        help="how long requests that wait for a step wait for more of them (0)",
    )
    add(
        "--max-request-bytes", type=_positive, default=64 << 20, metavar="N", help="of one request (67108864)"
    )
    add("--poll-seconds", type=float, default=1.0, metavar="S", help="between looks for new versions (1)")
    add("--grace-seconds", type=float, default=30.0, metavar="S", help="for requests at the end (30)")


def _port(text: str) -> int | None:
    if text == "none":
        return None
    if not 0 <= int(text) < 65536:
        raise ValueError
    return int(text)


def _positive(text: str) -> int:
    if int(text) < 1:
        raise ValueError
    return int(text)


def _not_negative(text: str) -> int:
    if int(text) < 0:
        raise ValueError
    return int(text)


def execute(options: argparse.Namespace) -> int:
    """Serves until a signal ends it; returns the exit status, 2 if it cannot begin."""
    try:
        from flowstone.serving.batching import BatchOptions
        from flowstone.serving.server import Server, ServerOptions
    except ImportError as error:
        print(f"flowstone serve: {error}; pip install 'flowstone[serve]'", file=sys.stderr)
        return 2
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    settings = ServerOptions(
        folder=options.model,
        name=options.name,
        tags=tuple(options.tags.split(",")),
        signature_name=options.signature,
        host=options.host,
        rest_port=options.rest_port,
        grpc_port=options.grpc_port,
        threads=options.threads,
        max_request_bytes=options.max_request_bytes,
        batching=BatchOptions(options.max_batch_size, options.batch_timeout_micros / 1e6),
        poll_s=options.poll_seconds,
        grace_s=options.grace_seconds,
    )
    try:
        with Server(settings, _report) as server:
            server.run(stop)
    except (OpError, OSError) as error:
        print(f"flowstone serve: {options.model}: {getattr(error, 'message', error)}", file=sys.stderr)
        return 2
    return 0


def _report(line: str) -> None:
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} flowstone serve: {line}", file=sys.stderr, flush=True)
