"""Threads that plan or make code beside the steps leave steps the processor and the interpreter's lock.

`give_way` is for a thread that only does such work. A team of threads is as fast as its slowest one: where
the work takes one of the team's cores, each region of ATen, MKL and oneDNN waits for a time slice of it,
0.7 ms on Linux 6.18. A thread of lower priority is put aside when one of the team wakes.

A kernel that frees the lock asks for it again when it is done. If other work has taken it meanwhile, the step
waits until Python has that given up: 5 ms later (`sys.getswitchinterval`), for each such kernel. While a
thread is within `shared`, it is 0.1 ms. A shorter time that the program has set stays.

With ``FLOWSTONE_TUNE_PROCESS=0`` both are left as they are.

>>> import sys
>>> before = sys.getswitchinterval()
>>> with shared():
...     print(f"{sys.getswitchinterval():.4f}")
0.0001
>>> sys.getswitchinterval() == before
True
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

from flowstone.framework import flags

__all__ = ["give_way", "shared"]

_TURN_S = 1e-4
_LESS, _LEAST = 10, 19  # how much lower the priority is, and Linux's lowest

_lock = threading.Lock()  # guards the two below
_working = 0  # threads within `shared`
_before = 0.0  # the time that ours stands for; 0 where it stands for none


def give_way() -> None:
    """Gives this thread, for good, a lower priority; on Linux, where threads have one of their own."""
    if flags.TUNE_PROCESS and sys.platform.startswith("linux"):
        thread = threading.get_native_id()
        with contextlib.suppress(OSError):
            before = os.getpriority(os.PRIO_PROCESS, thread)
            os.setpriority(os.PRIO_PROCESS, thread, min(before + _LESS, _LEAST))


@contextlib.contextmanager
def shared() -> Iterator[None]:
    """Has this thread give up the interpreter's lock soon after another one asks for it."""
    _begin()
    try:
        yield
    finally:
        _end()


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
        _working -= 1
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
