"""The threads of kernels that block on files."""

from __future__ import annotations

import threading

from flowstone.framework.declarations.kernel import Environment
from flowstone.runtime.process.blocking_threads import MOST, BlockingThreads
from flowstone.runtime.steps.step import Step


def test_work_is_done_and_threads_are_used_again() -> None:
    threads, names, done = BlockingThreads(), [], threading.Semaphore(0)

    def work() -> None:
        names.append(threading.get_ident())
        done.release()

    for _ in range(20):
        threads.run(work)
        assert done.acquire(timeout=10)
    assert len(names) == 20 and len(set(names)) <= 3


def test_work_that_blocks_does_not_hold_up_other_work() -> None:
    threads, gate, done = BlockingThreads(), threading.Event(), threading.Event()
    for _ in range(MOST - 1):
        threads.run(lambda: gate.wait(30) and None)
    threads.run(done.set)
    assert done.wait(10)
    gate.set()


def test_beyond_the_most_threads_work_waits_in_order() -> None:
    threads, gate, found, last = BlockingThreads(), threading.Event(), [], threading.Event()
    for _ in range(MOST):
        threads.run(lambda: gate.wait(30) and None)
    for n in range(5):
        threads.run(lambda n=n: found.append(n))
    threads.run(last.set)
    assert not last.wait(0.05)
    gate.set()
    assert last.wait(10)
    assert sorted(found) == list(range(5))


def test_blocking_kernels_report_results_and_errors() -> None:
    environment, threads = Environment(), BlockingThreads()
    environment.run_blocking = threads.run
    reports: list[object] = []
    reported = threading.Event()

    def done(outputs: object, error: object) -> None:
        reports.append((outputs, type(error)))
        reported.set()

    def divide(x: float) -> tuple[float]:
        return (1 / x,)

    kernel = environment.blocking(divide)
    for x in (2, 0):
        reported.clear()
        kernel.function(Step(), done, x)
        assert reported.wait(10)
    assert reports == [((0.5,), type(None)), (None, ZeroDivisionError)]


def test_a_cancelled_step_does_not_wait_for_a_blocking_kernel() -> None:
    environment, gate, reports, step = Environment(), threading.Event(), [], Step()
    environment.run_blocking = BlockingThreads().run
    kernel = environment.blocking(lambda: (gate.wait(30),))
    kernel.function(step, lambda outputs, error: reports.append(type(error).__name__))
    step.cancel()
    assert reports == ["CancelledError"]
    gate.set()
