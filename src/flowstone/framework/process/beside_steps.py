"""Threads that plan or make code beside the steps leave steps the processor and the interpreter's lock.

`give_way` is for a thread that only does such work. A team of threads is as fast as its slowest one: where
the work takes one of the team's cores, each region of ATen, MKL and oneDNN waits for a time slice of it,
0.7 ms on Linux 6.18. A thread of lower priority is put aside when one of the team wakes.

A kernel that frees the lock asks for it again when it is done. If other work has taken it meanwhile, the step
waits until Python has that given up: 5 ms later (`sys.getswitchinterval`), for each such kernel. The other
way round, a thread that asks for the lock, and sees it freed and taken again before it wakes, begins to wait
anew: beside steps of short kernels it gets no turn, sometimes for seconds. So the time is 10 us while a
thread is within `shared`, less than between two times that most steps free the lock; and the waits of that
thread end when they shall, where Linux ends those of others, as of the steps, up to 50 us later. A shorter
time that the program has set stays.

With ``FLOWSTONE_TUNE_PROCESS=0`` both are left as they are.

>>> import sys
>>> before = sys.getswitchinterval()
>>> with shared():
...     print(f"{sys.getswitchinterval():.5f}")
0.00001
>>> sys.getswitchinterval() == before
True
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from flowstone.framework import flags

__all__ = ["give_way", "handed_over", "shared"]

_Made = TypeVar("_Made")

_TURN_S = 1e-5
_SET_SLACK, _GET_SLACK = 29, 30  # Linux's numbers of what `prctl` does
_LEAST_SLACK_NS = 1
_LESS, _LEAST = 10, 19  # how much lower the priority is, and Linux's lowest

_lock = threading.Lock()  # guards the two below
_working = 0  # threads within `shared`
_before = 0.0  # the time that ours stands for; 0 where it stands for none


def give_way() -> None:
    """Gives this thread, for good, a lower priority than the program's first one has; on Linux, where threads
    have one of their own."""
    if flags.TUNE_PROCESS and sys.platform.startswith("linux"):
        with contextlib.suppress(OSError):
            others = os.getpriority(os.PRIO_PROCESS, os.getpid())
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(others + _LESS, _LEAST))


@contextlib.contextmanager
def shared() -> Iterator[None]:
    """Has threads give up the interpreter's lock soon after another one asks for it; this one in time."""
    slack = _slack()
    before = slack(_GET_SLACK, 0) if slack else 0
    _begin()
    if slack:
        slack(_SET_SLACK, _LEAST_SLACK_NS)
    try:
        yield
    finally:
        if slack:
            slack(_SET_SLACK, before)
        _end()


def handed_over(make: Callable[[], _Made]) -> Callable[[], _Made]:
    """What another thread shall call once, within `shared`. The time is short from now on: a step that asks
    for the lock between the beginning of that thread and its first words would wait for the usual one.
    """
    _begin()

    def made() -> _Made:
        try:
            with shared():
                return make()
        finally:
            _end()

    return made


def _slack() -> Callable[[int, int], int] | None:
    """Gets and sets by how many ns this thread's waits may end too late; None where that is left alone."""
    return _prctl() if flags.TUNE_PROCESS and sys.platform.startswith("linux") else None


@functools.cache
def _prctl() -> Callable[[int, int], int]:
    call = ctypes.PyDLL(None).prctl
    rest = [ctypes.c_ulong(0)] * 3
    return lambda what, value: call(what, ctypes.c_ulong(value), *rest)


def _begin() -> None:
    global _working, _before
    with _lock:
        _working += 1
        current = sys.getswitchinterval()
        if _working == 1 and flags.TUNE_PROCESS and current > _TURN_S:
            _before = current
            sys.setswitchinterval(_TURN_S)


def _end() -> None:
    global _working
    with _lock:
        _working = max(_working - 1, 0)  # a child may call what was handed over before the fork
        if not _working:
            _put_back()


def _put_back() -> None:
    global _before
    if _before and abs(sys.getswitchinterval() - _TURN_S) < 1e-6:  # else the program has set another
        sys.setswitchinterval(_before)
    _before = 0.0


def _begin_anew() -> None:
    """In a child, which has none of these threads."""
    global _lock, _working
    _lock, _working = threading.Lock(), 0
    _put_back()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
