"""Another task as a server speaks to it: directly, or by gRPC alone; errors as text; clocks."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import clusters
from flowstone.distributed.links.neighbours import (
    ADDRESS,
    CLOCK,
    SERVICE,
    Neighbour,
    error_of_text,
    error_text,
)
from flowstone.distributed.wire import frames as direct
from flowstone.distributed.wire.direct_connections import DirectListener
from flowstone.distributed.wire.tensor_codec import encode_received, pack, unpack
from flowstone.distributed.wire.transport import Listener
from flowstone.distributed.workers.step_rendezvous import StepRendezvous
from flowstone.framework import errors

OWN, OTHER = "/job:a/replica:0/task:0", "/job:b/replica:0/task:0"
AHEAD_NS = 3_000_000_000


class Server:
    """A server whose clock is three seconds ahead; it answers parts with their feeds, twice."""

    def __init__(self, is_direct: bool = True) -> None:
        self.frames: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self.direct = DirectListener("127.0.0.1", self.on_frame, lambda connection: None)
        handlers: Any = {SERVICE + "RecvTensor": self.recv_tensor, CLOCK: self.clock}
        if is_direct:
            handlers[ADDRESS] = self.address
        self.listener = Listener(handlers, "127.0.0.1:0")
        self.direct.start()
        self.listener.start()

    async def address(self, request: bytes) -> bytes:
        return self.direct.address()

    async def clock(self, request: bytes) -> bytes:
        return (time.time_ns() + AHEAD_NS).to_bytes(8, "little")

    async def recv_tensor(self, request: bytes) -> Any:
        if b"missing" in request:
            raise errors.AbortedError(None, None, "no such step")
        return encode_received(torch.tensor([5.0]))

    def on_frame(self, connection: Any, kind: int, step: int, text: str, payload: Any) -> None:
        self.frames.put((kind, step, text, [x.tolist() for x in unpack(payload)] if len(payload) else []))
        if kind == direct.RUN and text == "s good":
            connection.send(direct.DONE, step, "", pack(unpack(payload) * 2))
        elif kind == direct.RUN and text == "s bad":
            error = errors.NotFoundError(None, None, "nothing\nthere")
            error.node_name = "scope/x"
            connection.send(direct.FAILED, step, error_text(error))
        elif kind == direct.RUN:
            connection.close()

    def stop(self) -> None:
        self.listener.stop()
        self.direct.stop()


@pytest.fixture(params=[True, False], ids=["direct", "gRPC alone"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    found = Server(request.param)
    yield found
    found.stop()


def neighbour_of(server: Server, lost: Any = lambda task: None) -> Neighbour:
    return Neighbour(OTHER, f"localhost:{server.listener.port}", OWN, lost)


def test_a_connection_is_made_where_there_can_be_one(server: Server) -> None:
    neighbour = neighbour_of(server)
    assert not neighbour.is_direct()
    is_direct = neighbour.direct() is not None
    assert is_direct == neighbour.is_direct()
    assert neighbour.push(3, "key", torch.tensor([1.0])) == is_direct
    if is_direct:
        assert server.frames.get(timeout=10) == (direct.PUSH, 3, "key", [[1.0]])
    neighbour.close()


class Nobody:
    def push(self, task: str, key: str, value: Any) -> bool:
        return False

    def expect(self, task: str, key: str, meeting: StepRendezvous) -> None:
        pass


def test_values_are_asked_for(server: Server) -> None:
    neighbour = neighbour_of(server)
    meeting = StepRendezvous(OWN, {}, Nobody())
    found: queue.SimpleQueue[Any] = queue.SimpleQueue()
    here, there = f"{OWN}/device:CPU:0", f"{OTHER}/device:CPU:0"
    for name in ("x", "missing"):
        meeting.receive(((name, there, here), ()), lambda *answer: found.put(answer))
        neighbour.ask(3, f"{there};{0:016x};{here};{name};0:0", meeting)
        values, error = found.get(timeout=10)
        if name == "x":
            assert values[0].tolist() == [5.0] and error is None
        else:
            assert isinstance(error, errors.AbortedError)
    neighbour.close()


def test_parts_run_fail_and_break() -> None:
    server = Server()
    lost: queue.SimpleQueue[str] = queue.SimpleQueue()
    neighbour = neighbour_of(server, lost.put)
    neighbour.direct()
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for step, graph in enumerate(("good", "bad", "breaks"), 1):
        neighbour.run("s", graph, step, [torch.tensor([1.0])], lambda *answer: answers.put(answer))
        values, error = answers.get(timeout=10)
        if graph == "good":
            assert [x.tolist() for x in values] == [[1.0], [1.0]] and error is None
        elif graph == "bad":
            assert isinstance(error, errors.NotFoundError)
            assert (error.node_name, error.message) == ("scope/x", "nothing\nthere")
        else:
            assert isinstance(error, errors.UnavailableError) and OTHER in error.message
    assert lost.get(timeout=10) == OTHER
    assert not neighbour.is_direct()
    neighbour.tell(direct.CLEAN, 7)  # nobody is told, and nothing happens
    assert neighbour.direct() is not None  # it is made anew
    neighbour.close()
    server.stop()


def test_nobody_is_there() -> None:
    (port,) = clusters.free_ports(1)
    neighbour = Neighbour(OTHER, f"localhost:{port}", OWN, lambda task: None)
    with pytest.raises(errors.UnavailableError, match=f"localhost:{port}"):
        neighbour.direct()
    neighbour.close()


def test_the_other_clock_is_measured() -> None:
    server = Server()
    neighbour = neighbour_of(server)
    assert neighbour.clock_offset_ns() == 0
    neighbour.direct()
    deadline = time.monotonic() + 10
    while not neighbour.clock_offset_ns() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert abs(neighbour.clock_offset_ns() - AHEAD_NS) < 1e9
    neighbour.close()
    server.stop()


@pytest.mark.parametrize(
    "error",
    [errors.OutOfRangeError(None, None, "a\n\nb"), errors.InternalError(None, None, ""), ValueError("other")],
)
def test_errors_as_text(error: Exception) -> None:
    found = error_of_text(error_text(error))
    if isinstance(error, errors.OpError):
        assert type(found) is type(error) and found.message == error.message
    else:
        assert isinstance(found, errors.UnknownError) and found.message == "ValueError: other"


@pytest.mark.parametrize("noise", ["", "99\nnode\ntext", "x\ny"])
def test_text_that_is_no_error_is_an_unknown_one(noise: str) -> None:
    assert isinstance(error_of_text(noise), errors.UnknownError)
