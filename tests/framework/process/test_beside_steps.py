"""Work beside the steps: the priority of its threads, and how soon others get the interpreter's lock."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator

import pytest

from flowstone.framework import flags
from flowstone.framework.process.beside_steps import give_way, handed_over, shared
from flowstone.native.codegen import making
from flowstone.runtime.plans.background_planning import BackgroundPlanner

USUAL, SHORT = 0.005, 0.00001


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    making.wait_until_made()  # of other tests
    before = sys.getswitchinterval()
    sys.setswitchinterval(USUAL)
    yield
    sys.setswitchinterval(before)


def test_it_is_short_until_the_last_thread_has_done_its_work() -> None:
    inside, leave = threading.Event(), threading.Event()

    def work() -> None:
        with shared():
            inside.set()
            leave.wait()

    other = threading.Thread(target=work)
    with shared():
        other.start()
        inside.wait()
        assert sys.getswitchinterval() == pytest.approx(SHORT)
    assert sys.getswitchinterval() == pytest.approx(SHORT)
    leave.set()
    other.join()
    assert sys.getswitchinterval() == pytest.approx(USUAL)


def test_it_is_short_before_the_thread_begins() -> None:
    found: list[float] = []
    work = handed_over(lambda: found.append(sys.getswitchinterval()))
    assert sys.getswitchinterval() == pytest.approx(SHORT)
    other = threading.Thread(target=work)
    other.start()
    other.join()
    assert found == [pytest.approx(SHORT)] and sys.getswitchinterval() == pytest.approx(USUAL)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_may_do_what_was_handed_over() -> None:
    work = handed_over(lambda: None)
    child = os.fork()
    if not child:
        work()
        with shared():
            is_short = abs(sys.getswitchinterval() - SHORT) < 1e-6
        os._exit(0 if is_short and abs(sys.getswitchinterval() - USUAL) < 1e-6 else 1)
    work()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_the_program_sets_stays() -> None:
    sys.setswitchinterval(0.000002)
    with shared():
        assert sys.getswitchinterval() == pytest.approx(0.000002)
    sys.setswitchinterval(USUAL)
    with shared():
        sys.setswitchinterval(0.003)
    assert sys.getswitchinterval() == pytest.approx(0.003)


def test_it_may_be_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "TUNE_PROCESS", False)
    with shared():
        assert sys.getswitchinterval() == pytest.approx(USUAL)


def test_an_error_puts_it_back() -> None:
    with pytest.raises(ValueError, match="work"), shared():
        raise ValueError("work")
    assert sys.getswitchinterval() == pytest.approx(USUAL)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_has_the_usual_time() -> None:
    with shared():
        child = os.fork()
        if not child:
            os._exit(0 if abs(sys.getswitchinterval() - USUAL) < 1e-6 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_planning_and_making_code_beside_the_steps_share_it() -> None:
    found: list[float] = []
    planner = BackgroundPlanner()
    planner.submit(lambda: found.append(sys.getswitchinterval()))
    assert planner.wait(30)
    making.later(lambda: found.append(sys.getswitchinterval()))
    making.wait_until_made()
    found.append(making.in_background(sys.getswitchinterval).result())
    assert found == [pytest.approx(SHORT)] * 3


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads have no priority of their own")
def test_threads_of_such_work_give_way_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []

    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def on_a_thread() -> int:
        def work() -> None:
            give_way()
            found.append(priority())

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return found.pop()

    before = priority()
    assert on_a_thread() == min(before + 10, 19)
    monkeypatch.setattr(flags, "TUNE_PROCESS", False)
    assert on_a_thread() == before == priority()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads have no priority of their own")
def test_better_code_gives_way_but_not_what_is_waited_for() -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    found: list[int] = []
    planner = BackgroundPlanner()
    planner.submit(lambda: found.append(priority()))
    assert planner.wait(30)
    found.append(making.in_background(priority).result())
    assert found == [priority()] * 2
    making.later(lambda: found.append(priority()))
    making.wait_until_made()
    assert found[2] == min(priority() + 10, 19)
