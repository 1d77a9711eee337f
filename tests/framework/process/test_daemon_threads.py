"""A pool of daemon threads: results, errors, as many threads as are needed, and the end of a program."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import time

import pytest

from flowstone.framework.process.daemon_threads import DaemonThreads


def named(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(name)]


def test_results_and_errors() -> None:
    pool = DaemonThreads("results")
    assert pool.submit(divmod, 7, 2).result() == (3, 1)
    assert list(pool.map(lambda x, y: x * y, [1, 2, 3], [4, 5, 6])) == [4, 10, 18]
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 // 0).result()
    assert pool.submit(int, "11", base=2).result() == 3


def test_as_many_threads_as_are_needed() -> None:
    pool, go = DaemonThreads("needed"), threading.Event()
    waiting = [pool.submit(go.wait) for _ in range(5)]
    assert len(named("needed")) == 5
    go.set()
    assert all(future.result() for future in waiting)
    for _ in range(20):  # one by one: the threads are free again as soon as they are done
        pool.submit(lambda: None).result()
        time.sleep(0.001)
    assert len(named("needed")) == 5


def test_at_once_waits_for_all_and_raises_the_first_error() -> None:
    pool, ended = DaemonThreads("at once"), list[int]()

    def root(x: int) -> float:
        time.sleep(0.01 * x)
        ended.append(x)
        return math.sqrt(x - 1)

    assert pool.at_once(root, [1, 5, 2]) == [0.0, 2.0, 1.0]
    ended.clear()
    with pytest.raises(ValueError, match="math domain error"):
        pool.at_once(root, [2, 0, 3])
    assert sorted(ended) == [0, 2, 3]
    assert pool.at_once(lambda _: threading.get_ident(), [0]) == [threading.get_ident()]
    assert pool.at_once(root, []) == []


def test_work_beyond_the_most_waits() -> None:
    pool, go = DaemonThreads("most", most=2), threading.Event()
    futures = [pool.submit(go.wait) for _ in range(4)] + [pool.submit(threading.get_ident)]
    assert len(named("most")) == 2 and not futures[-1].done()
    cancelled = futures[3]
    assert cancelled.cancel()
    go.set()
    assert futures[-1].result() in {thread.ident for thread in named("most")}
    assert all(future.result() for future in futures[:3])


AFTER_THE_MAIN_THREAD = """
import threading
from flowstone.framework.process.daemon_threads import DaemonThreads
pool = DaemonThreads("after")
pool.submit(threading.Event().wait)
def later():
    threading.main_thread().join()
    print(pool.submit(lambda: "called").result())
threading.Thread(target=later).start()
"""


def test_it_takes_work_after_the_main_thread_and_does_not_keep_the_program_from_ending() -> None:
    program = [sys.executable, "-c", AFTER_THE_MAIN_THREAD]
    result = subprocess.run(program, capture_output=True, text=True, timeout=60, check=True)
    assert (result.stdout, result.stderr) == ("called\n", "")
