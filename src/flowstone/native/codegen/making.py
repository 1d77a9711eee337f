"""When machine code is made, and by which thread.

What is needed now is made on the thread that needs it, or was begun before on one of the two threads of
`in_background`: whoever comes second waits at a lock (`Locks`, `Begun`). Better code for what runs
already is made on a thread of its own (`later`), what most work waits for first, and not before nothing has
been made for anybody for a while, so that it takes no processor from a program that begins; so is what steps
can do without (`unhurried`). Where that thread takes one of a team's cores, callers of teams work alone
meanwhile (`parts.py`). A child after a fork has none of these threads; they begin anew in it when they are
next asked, its locks are open, and what was begun and is not there is made by whoever needs it.
"""

from __future__ import annotations

import itertools
import math
import os
import queue
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import torch

from flowstone.framework.process import beside_steps
from flowstone.framework.process.cores import usable_cores
from flowstone.framework.process.daemon_threads import DaemonThreads
from flowstone.native.codegen import compiler, parts

__all__ = ["Begun", "Locks", "in_background", "later", "unhurried", "wait_until_made"]

_Made = TypeVar("_Made")
_PAUSE_S = 0.05  # after code for somebody who waits, before better code is begun


class Locks:
    """A lock for each key, as long as somebody has it."""

    def __init__(self) -> None:
        self.open()
        _all_locks.add(self)

    def of(self, key: Hashable) -> threading.Lock:
        """The lock of this key."""
        with self._lock:
            return self._locks.setdefault(key, threading.Lock())

    def open(self) -> None:
        """Forgets who holds them."""
        self._locks: weakref.WeakValueDictionary[Hashable, threading.Lock] = weakref.WeakValueDictionary()
        self._lock = threading.Lock()


class Begun(Generic[_Made]):
    """What `make` makes once, on the first thread that asks for its `result`."""

    def __init__(self, make: Callable[[], _Made]) -> None:
        self._make, self._locks = make, Locks()
        self._made: list[_Made] = []
        self._error: BaseException | None = None

    def done(self) -> bool:
        """Whether it is there, or cannot be made."""
        return bool(self._made) or self._error is not None

    def result(self) -> _Made:
        """It, for which this waits; raises what `make` raised."""
        with self._locks.of("result"):
            if not self.done():
                try:
                    self._made.append(self._make())
                except BaseException as error:
                    self._error = error
        if self._error is not None:
            raise self._error
        return self._made[0]


def in_background(make: Callable[[], _Made]) -> Begun[_Made]:
    """What `make` makes on a thread for what is needed soon."""
    begun = Begun(make)
    _soon.submit(beside_steps.handed_over(begun.result))
    return begun


def unhurried(make: Callable[[], _Made], work: float) -> Begun[_Made]:
    """What `make` makes on the thread for better code, for what steps can do without; before what less `work`
    waits for."""
    begun = Begun(make)
    later(begun.result, work)
    return begun


def later(make: Callable[[], object], work: float = math.inf) -> None:
    """Has `make` called on the thread for better code, before what less `work` waits for; it prints what it
    raises."""
    _waiting.put((-work, next(_numbers), beside_steps.handed_over(make)))
    _begin_thread()


def wait_until_made() -> None:
    """Returns when all that was to be made later is there."""
    if not _waiting.empty():
        _begin_thread()
    _waiting.join()


def _begin_thread() -> None:
    """Has the thread for better code run; a new one where that was ended by what is no `Exception`."""
    with _thread_lock:
        if not (_threads and _threads[0].is_alive()):
            _threads[:] = [threading.Thread(target=_make_all, name="flowstone-native", daemon=True)]
            _threads[0].start()


_all_locks: weakref.WeakSet[Locks] = weakref.WeakSet()
_soon = DaemonThreads("flowstone native code", most=2)
_waiting: queue.PriorityQueue[tuple[float, int, Callable[[], object]]] = queue.PriorityQueue()
_numbers = itertools.count()  # of what is to be made, the first of equals first
_thread_lock = threading.Lock()
_threads: list[threading.Thread] = []


def _make_all() -> None:
    beside_steps.give_way()
    while True:
        *_, make = _waiting.get()
        try:
            while (left := _PAUSE_S - compiler.idle_s()) > 0:
                time.sleep(left)
            parts.work_alone(make, torch.get_num_threads() >= usable_cores())
            make()
        except Exception:
            traceback.print_exc(file=sys.stderr)  # steps go on with the code that there is
        finally:
            parts.work_alone(make, False)
            _waiting.task_done()


def _begin_anew() -> None:
    """In a child, which has no thread that makes code, and whose locks others may have held."""
    global _soon, _thread_lock, _waiting
    left = list(_waiting.queue)
    _soon = DaemonThreads("flowstone native code", most=2)
    _thread_lock, _waiting = threading.Lock(), queue.PriorityQueue()
    _threads.clear()
    for locks in list(_all_locks):
        locks.open()
    for each in left:
        _waiting.put(each)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
