"""Coordinators stop threads together and hand the first failure to whoever joins them."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable

import pytest

import flowstone as tf
from flowstone.training.input.coordinator import Coordinator, LooperThread


@pytest.fixture
def blocked() -> threading.Thread:
    """A thread named "blocked" that runs until the test is over."""
    release = threading.Event()
    thread = threading.Thread(target=release.wait, name="blocked", daemon=True)
    thread.start()
    yield thread
    release.set()
    thread.join()


def exc_info() -> tuple:
    try:
        raise KeyError("k")
    except KeyError:
        return sys.exc_info()


def test_public_names() -> None:
    assert tf.train.Coordinator is Coordinator
    assert tf.train.LooperThread is LooperThread


def test_a_new_coordinator_runs() -> None:
    coord = Coordinator()
    assert not coord.should_stop()
    assert not coord.joined
    assert not coord.wait_for_stop(0.001)
    coord.raise_requested_exception()


def test_a_stop_reaches_every_thread() -> None:
    coord = Coordinator()
    threads = [threading.Thread(target=coord.wait_for_stop) for _ in range(5)]
    for thread in threads:
        thread.start()
    coord.register_thread(threads[0])
    coord.request_stop()
    assert coord.should_stop()
    coord.join(threads[1:])
    assert coord.joined
    assert not any(thread.is_alive() for thread in threads)


def test_join_waits_for_threads_that_end_by_themselves() -> None:
    coord = Coordinator()
    done = []
    thread = threading.Thread(target=done.append, args=(1,))
    thread.start()
    coord.join(iter([thread]))
    assert done == [1]
    assert coord.joined
    assert not coord.should_stop()


@pytest.mark.parametrize("report", [ValueError("a"), exc_info()])
def test_join_raises_the_first_failure(report: object) -> None:
    coord = Coordinator()
    coord.request_stop(report)
    coord.request_stop(RuntimeError("later"))
    expected = type(report) if isinstance(report, Exception) else report[0]
    for raising in (coord.raise_requested_exception, coord.join, coord.join, coord.raise_requested_exception):
        with pytest.raises(expected):
            raising()
    assert coord.joined


def test_a_failure_keeps_its_traceback() -> None:
    def fail_here() -> None:
        raise ValueError("inside")

    coord = Coordinator()
    with coord.stop_on_exception():
        fail_here()
    with pytest.raises(ValueError, match="inside") as failure:
        coord.join()
    assert "fail_here" in [entry.name for entry in failure.traceback]


def test_a_failure_after_a_plain_stop_is_ignored() -> None:
    coord = Coordinator()
    coord.request_stop()
    coord.request_stop(ValueError("late"))
    coord.join()


@pytest.mark.parametrize("report", ["text", 5, (1, 2), (1, 2, 3)])
def test_what_is_no_exception_cannot_be_reported(report: object) -> None:
    coord = Coordinator()
    with pytest.raises(TypeError, match="ex must be an exception or a tuple"):
        coord.request_stop(report)
    assert not coord.should_stop()


def test_the_end_of_the_input_is_no_failure() -> None:
    coord = Coordinator()
    with coord.stop_on_exception():
        raise tf.errors.OutOfRangeError(None, None, "end")
    assert coord.should_stop()
    coord.join()


def test_clean_types_can_be_chosen() -> None:
    coord = Coordinator(clean_stop_exception_types=[ValueError])
    coord.request_stop(ValueError("fine"))
    coord.join()
    coord.clear_stop()
    coord.request_stop(tf.errors.OutOfRangeError(None, None, "end"))
    with pytest.raises(tf.errors.OutOfRangeError, match="end"):
        coord.join()


@pytest.mark.parametrize("exception", [SystemExit(3), KeyboardInterrupt()])
def test_exits_stop_the_coordinator_too(exception: BaseException) -> None:
    coord = Coordinator()
    with coord.stop_on_exception():
        raise exception
    with pytest.raises(type(exception)):
        coord.join()


def test_after_joining_a_failure_is_raised_where_it_is_reported() -> None:
    coord = Coordinator()
    coord.join()
    with pytest.raises(ValueError, match="x"):
        coord.request_stop(ValueError("x"))
    with pytest.raises(ValueError, match="y"), coord.stop_on_exception():
        raise ValueError("y")
    coord.request_stop(tf.errors.OutOfRangeError(None, None, "end"))
    coord.request_stop()
    assert not coord.should_stop()


def test_clearing_makes_it_new() -> None:
    coord = Coordinator()
    coord.request_stop(ValueError("a"))
    with pytest.raises(ValueError):
        coord.join()
    coord.clear_stop()
    assert not coord.should_stop()
    assert not coord.joined
    coord.join()


def test_threads_that_do_not_stop_are_named(blocked: threading.Thread) -> None:
    coord = Coordinator()
    coord.register_thread(blocked)
    coord.request_stop()
    with pytest.raises(RuntimeError, match=r"running: blocked$"):
        coord.join([blocked], stop_grace_period_secs=0.01)
    assert coord.joined


def test_a_failure_matters_more_than_threads_that_do_not_stop(blocked: threading.Thread) -> None:
    coord = Coordinator()
    coord.request_stop(ValueError("v"))
    with pytest.raises(ValueError, match="v"):
        coord.join([blocked], stop_grace_period_secs=0.01)


def test_threads_that_do_not_stop_can_be_ignored(
    blocked: threading.Thread, caplog: pytest.LogCaptureFixture
) -> None:
    coord = Coordinator()
    coord.request_stop()
    with caplog.at_level(logging.INFO, logger="tensorflow"):
        coord.join([blocked], stop_grace_period_secs=0.01, ignore_live_threads=True)
    assert caplog.messages == ["Coordinator stopped with threads still running: blocked"]


def test_a_failure_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    coord = Coordinator()
    with caplog.at_level(logging.INFO, logger="tensorflow"):
        coord.request_stop(ValueError("v"))
        coord.request_stop(ValueError("w"))
    assert caplog.messages == ["Error reported to Coordinator: <class 'ValueError'>, v"]


# ---- looper threads


class Recorder(LooperThread):
    """Writes down its calls and fails in `failing`, if that is one of them."""

    def __init__(self, coord: Coordinator, failing: str, interval_s: float | None = None) -> None:
        super().__init__(coord, interval_s)
        self.coord, self.failing, self.calls = coord, failing, []

    def call(self, name: str) -> None:
        self.calls.append(name)
        if name == self.failing:
            raise ValueError(name)

    def start_loop(self) -> None:
        self.call("start")

    def run_loop(self) -> None:
        if len(self.calls) == 3:
            self.call("third")
            self.coord.request_stop()
        self.call("run")

    def stop_loop(self) -> None:
        self.call("stop")


@pytest.mark.parametrize(
    ("failing", "calls", "fails"),
    [
        ("nothing", ["start", "run", "run", "third", "run", "stop"], False),
        ("start", ["start"], True),
        ("third", ["start", "run", "run", "third"], True),
        ("stop", ["start", "run", "run", "third", "run", "stop"], False),
    ],
)
@pytest.mark.parametrize("interval_s", [None, 0.001])
def test_the_life_of_a_looper_thread(
    failing: str, calls: list[str], fails: bool, interval_s: float | None
) -> None:
    coord = Coordinator()
    thread = Recorder(coord, failing, interval_s)
    thread.start()
    if fails:
        with pytest.raises(ValueError, match=failing):
            coord.join()
    else:
        coord.join()
    assert thread.calls == calls


def stop_at_third(coord: Coordinator, calls: list) -> Callable[..., None]:
    def call(a: int, b: int = 0) -> None:
        calls.append((a, b))
        if len(calls) == 3:
            coord.request_stop()

    return call


def test_a_looper_thread_calls_a_function() -> None:
    coord, calls = Coordinator(), []
    thread = LooperThread.loop(coord, 0.001, stop_at_third(coord, calls), args=(1,), kwargs={"b": 2})
    assert thread.daemon
    assert thread.isAlive() or coord.should_stop()
    coord.join([thread])
    assert not thread.isAlive()
    assert calls == [(1, 2)] * 3


def test_a_looper_thread_without_a_function_does_nothing() -> None:
    coord = Coordinator()
    LooperThread(coord, None).run_loop()
    assert not coord.should_stop()


def test_a_looper_thread_needs_a_coordinator() -> None:
    with pytest.raises(ValueError, match="'coord' argument must be a Coordinator: 3"):
        LooperThread(3, 1.0)
