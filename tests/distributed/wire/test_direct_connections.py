from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import queue
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from flowstone.distributed.wire import direct_connections, frames, shared_blocks
from flowstone.distributed.wire.direct_connections import DirectConnection, DirectListener, connect
from flowstone.distributed.wire.shared_blocks import can_share
from flowstone.framework import errors
from flowstone.framework.machine import machine

SOURCE = str(Path(direct_connections.__file__).parents[3])
SHARED_BYTES = machine.current().profile.shared_payload


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


def wait_until(condition: Any, found: Any = lambda: "") -> None:
    """Fails if it does not become true, and says what was `found`."""
    for _ in range(500):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"it did not become true {found()}")


# ---- shared memory


def shares(connection: DirectConnection) -> bool:
    return connection._least_shared <= SHARED_BYTES


needs_shared_memory = pytest.mark.skipif(not can_share(), reason="this system has no memfd")


@needs_shared_memory
def test_large_payloads_go_through_shared_memory_in_both_directions(ends: Ends) -> None:
    connection, answers = connected(ends)
    wait_until(lambda: shares(connection))
    for size in (SHARED_BYTES - 1, SHARED_BYTES, 3_000_000):
        content = os.urandom(size)
        for step in range(5):
            connection.send(frames.PUSH, step, "key", [content[:1000], content[1000:]])
            assert ends.frames.get(timeout=10) == (frames.PUSH, step, "key", content)
    assert 2 <= connection._pool._count <= 4  # blocks are taken again
    (accepted,) = ends.listener._connections
    wait_until(lambda: shares(accepted))
    accepted.send(frames.DONE, 7, "", [bytes(3_000_000)])
    assert answers.get(timeout=10) == (frames.DONE, 7, "", bytes(3_000_000))
    assert accepted._pool._count == 1


@needs_shared_memory
def test_many_threads_send_large_payloads(ends: Ends) -> None:
    connection, _ = connected(ends)
    wait_until(lambda: shares(connection))

    def send(thread: int) -> None:
        for i in range(20):
            connection.send(frames.PUSH, thread, str(i), [bytes([thread, i]) * (SHARED_BYTES * (1 + i % 3))])

    threads = [threading.Thread(target=send, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    expected = [0] * 4
    for _ in range(80):
        _, number, text, content = ends.frames.get(timeout=30)
        i = expected[number]
        expected[number] += 1
        assert text == str(i) and content == bytes([number, i]) * (SHARED_BYTES * (1 + i % 3))


@pytest.mark.parametrize("missing", ["memfd", "files"])
def test_without_shared_memory_payloads_go_over_the_socket(
    ends: Ends, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing == "files":
        monkeypatch.setattr(shared_blocks.Block, "__init__", lambda *_: os.open("/dev/null/nowhere", 0))
    else:
        monkeypatch.setattr(direct_connections, "can_share", lambda: False)
    connection, _ = connected(ends)
    if missing == "files":
        wait_until(lambda: shares(connection))
    content = os.urandom(2_000_000)
    for step in range(3):
        connection.send(frames.PUSH, step, "k", [content])
        assert ends.frames.get(timeout=10) == (frames.PUSH, step, "k", content)
    assert not connection._pool._blocks


@needs_shared_memory
@pytest.mark.parametrize("attack", ["unknown block", "no file", "unsealed", "too large", "over tcp"])
def test_hostile_blocks_end_their_connection_alone(ends: Ends, attack: str) -> None:
    address = json.loads(ends.listener.address())
    if attack == "over tcp":
        address["unix"] = ""
    before = len(os.listdir("/proc/self/fd"))
    connection, answers = connected(ends, address)
    header = frames.header(frames.BLOCK, 1, 0, 0)
    stream = connection._stream
    if attack in ("unsealed", "too large"):
        file = os.memfd_create("x", os.MFD_ALLOW_SEALING)
        os.ftruncate(file, 10_000)
        if attack == "too large":
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        socket.send_fds(stream, [header], [file])
        os.close(file)
    elif attack != "unknown block":
        stream.sendall(header)
    with contextlib.suppress(OSError):
        shared = frames.header(frames.PUSH | frames.SHARED, 1, 0, 1_000_000)
        stream.sendall(shared + frames.NUMBER.pack(1))
    assert ends.closed.get(timeout=10).task == "a task"
    assert ends.frames.empty()
    while answers.get(timeout=10) is not connection:
        pass
    other, _ = connected(ends)
    other.send(frames.PUSH, 1, "still there", [bytes(2_000_000)])
    assert ends.frames.get(timeout=10)[2] == "still there"
    other.close()
    ends.closed.get(timeout=10)
    wait_until(lambda: len(os.listdir("/proc/self/fd")) <= before)


CHILD = """
import json, sys, threading, time
from flowstone.distributed.wire import frames
from flowstone.distributed.wire.direct_connections import connect
told = threading.Event()
connection = connect("child", "127.0.0.1", sys.argv[1].encode(), lambda *_: told.set(), lambda _: None)
connection.start()
connection.send(frames.RUN, 0, "hello")
told.wait()
while connection._least_shared > 2_000_000:  # until it has been agreed that memory is shared
    time.sleep(0.01)
step = 0
while True:
    connection.send(frames.PUSH, step, "k", [bytes([step % 256]) * 2_000_000])
    step += 1
"""


@needs_shared_memory
def test_a_killed_sender_leaves_nothing_but_values_that_are_in_use() -> None:
    def mappings() -> set[str]:
        gc.collect()
        lines = Path("/proc/self/maps").read_text().splitlines()
        return {line for line in lines if "memfd:flowstone" in line}

    before, files = mappings(), len(os.listdir("/proc/self/fd"))
    held: list[Any] = []
    arrived, closed = threading.Event(), threading.Event()

    def frame(connection: DirectConnection, kind: int, step: int, text: str, payload: Any) -> None:
        if kind == frames.RUN:
            connection.send(frames.DONE, step)
        elif step < 3:
            held.append(torch.from_numpy(np.frombuffer(payload, np.uint8)))
        elif step == 50:
            arrived.set()

    listener = DirectListener("127.0.0.1", frame, lambda _: closed.set())
    listener.start()
    address = listener.address().decode()
    child = subprocess.Popen([sys.executable, "-c", CHILD, address], env={**os.environ, "PYTHONPATH": SOURCE})
    try:
        assert arrived.wait(60)
        child.send_signal(signal.SIGKILL)
        assert closed.wait(10)
        listener.stop()
        wait_until(lambda: len(mappings() - before) == len(held), lambda: (held, mappings() ^ before))
        assert len(held) == 3 and all((each == step).all() for step, each in enumerate(held))
        held.clear()
        assert mappings() <= before
        wait_until(lambda: len(os.listdir("/proc/self/fd")) <= files)
    finally:
        child.kill()
        child.wait()
        listener.stop()


@needs_shared_memory
def test_a_killed_receiver_leaves_nothing(ends: Ends) -> None:
    source = CHILD.replace("step = 0\nwhile True:", "time.sleep(100)\nwhile False:").replace(
        "lambda *_: told.set()", "lambda *frame: (held.append(frame), told.set())"
    )
    address = ends.listener.address().decode()
    command = [sys.executable, "-c", f"held = []\n{source}", address]
    child = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": SOURCE})
    try:
        assert ends.frames.get(timeout=60)[2] == "hello"
        (accepted,) = ends.listener._connections
        wait_until(lambda: shares(accepted))
        for step in range(10):
            accepted.send(frames.PUSH, step, "k", [bytes(2_000_000)])
        assert accepted._pool._count == 10  # the child holds them all
        child.send_signal(signal.SIGKILL)
        assert ends.closed.get(timeout=10) is accepted
        gc.collect()
        assert "memfd:flowstone" not in Path("/proc/self/maps").read_text()
        with pytest.raises(errors.UnavailableError):
            accepted.send(frames.PUSH, 1, "k", [bytes(2_000_000)])
    finally:
        child.kill()
        child.wait()


# ---- who connects, and what they send


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
