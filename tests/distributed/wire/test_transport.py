"""Bytes between processes: answers, errors with their nodes, who is not there, who gives up."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

import clusters
from flowstone.distributed.wire.transport import Caller, Listener, Peer, event_loop, run_soon, wait_for
from flowstone.framework import errors

given_up = threading.Event()
entered = threading.Event()


async def echo(request: bytes) -> bytes:
    return request[::-1]


async def fails(request: bytes) -> bytes:
    error = errors.NotFoundError(None, None, "nothing there" + "!" * 20_000)
    error.node_name = "scope/täter"
    raise error


async def is_wrong(request: bytes) -> bytes:
    raise ZeroDivisionError("a mistake")


async def waits(request: bytes) -> bytes:
    entered.set()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        given_up.set()
        raise
    return b""


HANDLERS = {"/a.B/Echo": echo, "/a.B/Fails": fails, "/a.B/IsWrong": is_wrong, "/a.B/Waits": waits}


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    found = Listener(HANDLERS, "127.0.0.1:0")
    found.start()
    yield found
    found.stop()


@pytest.fixture
def caller(listener: Listener) -> Iterator[Caller]:
    found = Caller(f"localhost:{listener.port}")
    yield found
    found.close()


def test_a_request_is_answered(caller: Caller) -> None:
    assert caller.call("/a.B/Echo", b"abc") == b"cba"
    large = bytes(8 << 20)
    assert caller.call("/a.B/Echo", large) == large


def test_an_error_keeps_class_text_and_node(caller: Caller) -> None:
    with pytest.raises(errors.NotFoundError, match="nothing there!!!") as caught:
        caller.call("/a.B/Fails", b"")
    assert caught.value.node_name == "scope/täter"
    assert 1000 < len(caught.value.message) < 10_000  # it travels in a header


def test_a_mistake_of_the_server_is_an_internal_error(caller: Caller) -> None:
    with pytest.raises(errors.InternalError, match="ZeroDivisionError: a mistake"):
        caller.call("/a.B/IsWrong", b"")


def test_a_method_that_there_is_not(caller: Caller) -> None:
    with pytest.raises(errors.UnimplementedError):
        caller.call("/a.B/Other", b"")


def test_a_peer_raises_what_a_caller_does(listener: Listener) -> None:
    peer = wait_for(opened(f"localhost:{listener.port}"))
    assert wait_for(peer.call("/a.B/Echo", b"xy")) == b"yx"
    with pytest.raises(errors.NotFoundError) as caught:
        wait_for(peer.call("/a.B/Fails", b""))
    assert caught.value.node_name == "scope/täter"
    wait_for(peer.close())


async def opened(address: str) -> Peer:
    return Peer(address)


def test_time_is_up_and_the_handler_is_told(caller: Caller) -> None:
    given_up.clear()
    with pytest.raises(errors.DeadlineExceededError):
        caller.call("/a.B/Waits", b"", 0.2)
    assert given_up.wait(10)


def test_who_is_not_there_is_named_at_once() -> None:
    (port,) = clusters.free_ports(1)
    begin = time.monotonic()
    with pytest.raises(errors.UnavailableError, match=f"the server at localhost:{port}"):
        Caller(f"localhost:{port}").call("/a.B/Echo", b"")
    peer = wait_for(opened(f"localhost:{port}"))
    with pytest.raises(errors.UnavailableError, match=f"the server at localhost:{port}"):
        wait_for(peer.call("/a.B/Echo", b""))
    with pytest.raises(errors.DeadlineExceededError):  # who `waits` for it gives up in time
        wait_for(peer.call("/a.B/Echo", b"", 0.2, waits=True))
    assert time.monotonic() - begin < 10


def test_closing_ends_requests_under_way(listener: Listener) -> None:
    caller, found = Caller(f"localhost:{listener.port}"), []
    entered.clear()

    def call() -> None:
        try:
            caller.call("/a.B/Waits", b"")
        except errors.OpError as error:
            found.append(type(error))

    thread = threading.Thread(target=call)
    thread.start()
    assert entered.wait(10)
    caller.close()
    thread.join(10)
    assert found == [errors.CancelledError]


def test_a_port_in_use(listener: Listener) -> None:
    with pytest.raises(errors.UnknownError, match=f"cannot listen on 127.0.0.1:{listener.port}"):
        Listener({}, f"127.0.0.1:{listener.port}")


def test_coroutines_run_on_the_loops_own_thread() -> None:
    async def where() -> str:
        return threading.current_thread().name

    assert run_soon(where()).result(10) == "flowstone messages"
    assert event_loop().is_running()
