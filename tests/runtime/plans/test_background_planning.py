"""Tasks beside the steps: their order, their end, forks and the interpreter's exit."""

from __future__ import annotations

import threading
from typing import Any

import forked
from flowstone.runtime.plans.background_planning import BackgroundPlanner


def test_tasks_are_done_in_order_on_a_thread_that_ends():
    planner, done = BackgroundPlanner(), []
    for round_number in range(2):
        for i in range(3):
            planner.submit(lambda i=i: done.append((i, threading.current_thread())))
        assert planner.wait(10)
        assert [i for i, _ in done] == [0, 1, 2] * (round_number + 1)
        assert all(thread.daemon for _, thread in done)
        for _, thread in done:
            thread.join(10)
            assert not thread.is_alive()


def test_what_waits_is_dropped_when_it_stops():
    planner, begun, go_on, done = BackgroundPlanner(), threading.Event(), threading.Event(), []

    def first() -> None:
        begun.set()
        go_on.wait(10)
        done.append(planner.is_stopped)

    planner.submit(first)
    planner.submit(lambda: done.append("second"))
    assert begun.wait(10)
    planner.stop()  # does not wait
    planner.submit(lambda: done.append("third"))
    assert not done
    go_on.set()
    assert planner.wait(10) and done == [True]


def test_a_task_that_fails_does_not_end_the_planning(monkeypatch):
    failures: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    planner, done = BackgroundPlanner(), []
    planner.submit(lambda: 1 / 0)
    assert planner.wait(10)
    assert [failure.exc_type for failure in failures] == [ZeroDivisionError]
    planner.submit(lambda: done.append(1))
    assert planner.wait(10) and done == [1]


def run(program: str) -> str:
    done = forked.run(code=program)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


BEGIN = """
import os, threading, time
from flowstone.runtime.plans.background_planning import BackgroundPlanner
planner, begun = BackgroundPlanner(), threading.Event()
def task(name):
    begun.set()
    time.sleep(0.2)
    print(name, flush=True)
planner.submit(lambda: task("first"))
begun.wait()
"""


def test_the_interpreter_ends_without_the_task_under_way():
    endless = BEGIN.replace("sleep(0.2)", "sleep(100)")
    assert run(endless + "planner.submit(lambda: task('second'))") == ""


def test_a_fork_waits_for_the_task_and_the_child_plans_on():
    program = """
import warnings
warnings.simplefilter("ignore")
pid = os.fork()
if not pid:
    planner.submit(lambda: task("child"))
    planner.wait()
    os._exit(0)
os.waitpid(pid, 0)
planner.submit(lambda: task("parent"))
planner.wait()
"""
    assert run(BEGIN + program) == "first\nchild\nparent\n"
