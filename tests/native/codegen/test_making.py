"""Which thread makes code, and when."""

from __future__ import annotations

import functools
import os
import sys
import threading
import time

import pytest
import torch

from flowstone.native.codegen import compiler, host, making


def test_better_code_waits_until_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    making.wait_until_made()
    waits = [0.0, 0.02, 0.3]
    monkeypatch.setattr(compiler, "idle_s", lambda: waits.pop(0) if waits else 0.3)
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    making.later(lambda: None)
    making.wait_until_made()
    assert slept == pytest.approx([0.05, 0.03]) and not waits


def test_what_most_work_waits_for_is_made_first() -> None:
    made: list[str] = []
    begun = threading.Event()
    making.wait_until_made()
    making.later(begun.wait)  # the others come while this is made
    for name, work in (("little", 1.0), ("much", 1e9), ("as much", 1e9), ("some", 1e6)):
        making.later(functools.partial(made.append, name), work)
    begun.set()
    making.wait_until_made()
    assert made == ["much", "as much", "some", "little"]


@pytest.mark.parametrize("cores", [1, 2, 64])
def test_callers_of_teams_work_alone_while_code_takes_a_core(
    cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    making.wait_until_made()
    monkeypatch.setattr(making, "usable_cores", lambda: cores)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    seen: list[int] = []
    making.later(lambda: seen.append(host.ALONE.value))
    making.wait_until_made()
    assert seen == [int(cores <= 2)] and not host.ALONE.value


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads have no priority of their own")
def test_what_steps_can_do_without_leaves_them_the_processors() -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    own = priority()
    assert making.unhurried(priority, 0.0).result() == min(own + 10, 19)
    with pytest.raises(ZeroDivisionError):
        making.unhurried(lambda: 1 // 0, 0.0).result()
    assert making.in_background(priority).result() == own == priority()


def test_what_cannot_be_made_is_told_and_the_next_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    made = []

    def refuse() -> None:
        raise RuntimeError("LLVM refuses")

    for make in (refuse, lambda: made.append(threading.current_thread().name)):
        making.later(make)
    making.wait_until_made()
    assert made == ["flowstone-native"] and "LLVM refuses" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_was_ended_is_replaced() -> None:
    made: list[int] = []

    def end() -> None:
        raise SystemExit

    making.wait_until_made()
    making.later(end)
    making.later(lambda: made.append(1))
    for _ in range(500):
        if not making._threads[0].is_alive():
            break
        time.sleep(0.01)
    making.wait_until_made()
    assert made == [1]


def test_a_lock_for_each_key() -> None:
    locks = making.Locks()
    with locks.of("one"):
        assert locks.of("one").locked() and not locks.of("two").locked()
        locks.open()
        assert not locks.of("one").locked()
