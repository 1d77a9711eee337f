from __future__ import annotations

import json
import queue
import random
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from flowstone.distributed import frames
from flowstone.distributed.direct_connections import DirectConnection, DirectListener, connect
from flowstone.framework import errors


class Ends:
    """A listener, and what its connections were told."""

    def __init__(self) -> None:
        self.frames: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.closed: queue.SimpleQueue[DirectConnection] = queue.SimpleQueue()
        self.listener = DirectListener("127.0.0.1", self.frame, self.closed.put)
        self.listener.start()

    def frame(self, connection: DirectConnection, kind: int, step: int, text: str, payload: Any) -> None:
        self.frames.put((kind, step, text, bytes(payload)))
        if kind == frames.RUN:
            connection.send(frames.DONE, step, text, [b"answer"])


@pytest.fixture
def ends() -> Iterator[Ends]:
    found = Ends()
    yield found
    found.listener.stop()


def connected(
    ends: Ends, address: dict[str, Any] | None = None
) -> tuple[DirectConnection, queue.SimpleQueue[Any]]:
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    given = ends.listener.address() if address is None else json.dumps(address).encode()
    connection = connect(
        "a task",
        "127.0.0.1",
        given,
        lambda _, *frame: answers.put((*frame[:3], bytes(frame[3]))),
        answers.put,
    )
    assert connection is not None
    connection.start()
    return connection, answers


@pytest.mark.parametrize("way", ["unix", "tcp"])
def test_frames_arrive_whole_and_in_order(ends: Ends, way: str) -> None:
    address = json.loads(ends.listener.address())
    if way == "tcp":
        address["unix"] = ""
    connection, answers = connected(ends, address)
    sizes = [0, 1, 100, 70_000, 3_000_000, 5]
    for i, size in enumerate(sizes):
        connection.send(frames.PUSH, i, f"key ü {i}", [b"x" * (size // 2), b"y" * (size - size // 2)])
    for i, size in enumerate(sizes):
        expected = b"x" * (size // 2) + b"y" * (size - size // 2)
        assert ends.frames.get(timeout=10) == (frames.PUSH, i, f"key ü {i}", expected)
    connection.send(frames.RUN, 1 << 62, "part")
    assert answers.get(timeout=10) == (frames.DONE, 1 << 62, "part", b"answer")


def test_both_ends_are_told_when_it_closes(ends: Ends) -> None:
    connection, answers = connected(ends)
    connection.send(frames.PUSH, 1, "k")
    ends.frames.get(timeout=10)
    connection.close()
    assert ends.closed.get(timeout=10).task == "a task" and answers.get(timeout=10) is connection
    with pytest.raises(errors.UnavailableError, match="broke"):
        connection.send(frames.PUSH, 1, "k")


def test_who_does_not_know_the_secret_is_refused(ends: Ends) -> None:
    address = json.loads(ends.listener.address())
    address["secret"] = "0" * len(address["secret"])
    assert connect("a", "127.0.0.1", json.dumps(address).encode(), lambda *_: None, lambda _: None) is None


@pytest.mark.parametrize(
    "address", [b"", b"{}", b"[]", b'{"unix": "", "host": "", "port": "x", "secret": 3}', b"\xff"]
)
def test_an_address_that_is_none(address: bytes) -> None:
    assert connect("a", "127.0.0.1", address, lambda *_: None, lambda _: None) is None


@pytest.mark.parametrize("seed", range(20))
def test_hostile_bytes_end_their_connection_alone(ends: Ends, seed: int) -> None:
    address = json.loads(ends.listener.address())
    choose = random.Random(seed)
    with socket.create_connection(("127.0.0.1", address["port"]), 10) as stream:
        if seed % 2:
            hello = f"{address['secret']} somebody".encode()
            stream.sendall(struct.pack("<BQIQ", frames.HELLO, 0, len(hello), 0) + hello)
            assert stream.recv(1) == b"+"
        stream.sendall(
            struct.pack("<BQIQ", choose.choice((0, 9, 255)), 0, choose.randrange(1 << 32), 1 << 50)
        )
        stream.settimeout(10)
        try:
            stream.sendall(choose.randbytes(100))
            answer = stream.recv(100)
        except ConnectionError:
            answer = b""
        assert answer == b""  # it was closed
    connection, _ = connected(ends)
    connection.send(frames.PUSH, 1, "still there")
    assert ends.frames.get(timeout=10)[2] == "still there"


def test_the_reader_of_a_truncated_frame_ends(ends: Ends) -> None:
    connection, _ = connected(ends)
    connection._stream.sendall(struct.pack("<BQIQ", frames.PUSH, 1, 3, 1000) + b"key" + b"too little")
    connection.close()
    ends.closed.get(timeout=10)
    assert ends.frames.empty()
