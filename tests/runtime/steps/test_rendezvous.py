"""The rendezvous: whoever comes first waits, without a thread; cancellation ends all waiting."""

from __future__ import annotations

import threading

import pytest

from flowstone.framework import errors
from flowstone.runtime.steps.rendezvous import Rendezvous


@pytest.fixture
def meeting():
    return Rendezvous()


@pytest.fixture
def received():
    return []


def taker(received):
    return lambda values, error: received.append((values, error))


def test_the_value_comes_first(meeting, received):
    meeting.send("k", 1)
    meeting.receive("k", taker(received))
    assert received == [((1,), None)]


def test_the_receiver_comes_first(meeting, received):
    meeting.receive("k", taker(received))
    assert received == []
    meeting.send("k", None)
    assert received == [((None,), None)]


def test_keys_are_apart(meeting, received):
    meeting.receive(("k", 0), taker(received))
    meeting.send(("k", 1), "one")
    assert received == []
    meeting.receive(("k", 1), taker(received))
    assert received == [(("one",), None)]


def test_a_value_is_sent_once(meeting):
    meeting.send("k", 1)
    with pytest.raises(errors.InternalError, match="Duplicate send"):
        meeting.send("k", 2)


def test_cancelling_ends_waiting_now_and_later(meeting, received):
    meeting.send("sent", 1)
    meeting.receive("k", taker(received))
    first, second = errors.CancelledError(None, None, "first"), errors.CancelledError(None, None, "second")
    meeting.cancel(first)
    meeting.cancel(second)
    meeting.receive("later", taker(received))
    meeting.receive("sent", taker(received))
    assert received == [(None, first)] * 3


def test_a_receiver_may_send_in_turn(meeting, received):
    """It is called without the lock."""
    meeting.receive("b", taker(received))
    meeting.receive("a", lambda values, error: meeting.send("b", values[0] + 1))
    meeting.send("a", 1)
    assert received == [((2,), None)]


def test_many_threads_lose_nothing(meeting):
    got, keys = [], range(2000)
    threads = [
        threading.Thread(target=lambda: [meeting.send(k, k) for k in keys]),
        threading.Thread(target=lambda: [meeting.receive(k, lambda v, e: got.append(v[0])) for k in keys]),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == list(keys)
