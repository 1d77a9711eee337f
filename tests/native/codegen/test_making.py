"""Which thread makes code, and when."""

from __future__ import annotations

import functools
import os
import sys
import threading
import time

import pytest
import torch

import forked
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
    found = making.unhurried(priority, 0.0)
    making.wait_until_made()
    assert found.done() and found.result() == min(own + 10, 19)
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


def test_what_is_begun_is_made_once_and_its_error_is_raised_by_each() -> None:
    made: list[str] = []

    def make() -> str:
        made.append("code")
        return made[-1]

    begun = making.in_background(make)
    assert [begun.result(), begun.result()] == ["code", "code"] and made == ["code"] and begun.done()

    def refuse() -> None:
        raise RuntimeError("LLVM refuses")

    refused = making.in_background(refuse)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="LLVM refuses"):
            refused.result()
    assert refused.done()


_FORKING = """
import os, threading
from flowstone.native.codegen import making

in_parent, begins, goes_on = os.getpid(), threading.Event(), threading.Event()

def make():
    if os.getpid() == in_parent:
        begins.set()
        goes_on.wait()
    return os.getpid()

begun = making.in_background(make)
begins.wait()
child = os.fork()
if not child:
    os._exit(int(begun.result() != os.getpid()))
status = os.waitpid(child, 0)[1]
goes_on.set()
print(status, begun.result() == in_parent)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_child_makes_what_a_thread_of_its_parent_was_making() -> None:
    done = forked.run(code=_FORKING, timeout=60)
    assert done.stdout.split() == ["0", "True"], done.stderr
