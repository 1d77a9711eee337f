"""Keeps a team's other threads off the core of the thread that runs steps.

Where a virtual machine's idle cores have been taken away from it, Linux wakes all of a team on the core of
the thread that wakes them: after a pause, and sometimes for seconds, they wait for each other
(docs/design/008). A `Parting` looks every millisecond, at the start of a step, which core that is. From then
on the other threads may run on all of their cores but this one; the caller always where it likes. After
a rest they are also woken before the step begins, so that the caller does not go to sleep and wake beside
them. Where they wait for cores that others have, the caller works alone (`team_load.py`). When no step has
begun for a second, all threads may run where they could before.

Nothing is done on other systems than Linux, where there is no native tier, in teams of more than eight, for
threads that have no other core, and where settings of the process are not to be changed.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from flowstone.framework.process.daemon_threads import DaemonThreads
from flowstone.native.codegen.team_members import team_members
from flowstone.runtime.process import process
from flowstone.runtime.process.team_load import Load

__all__ = ["Parting", "clock", "has_the_team", "is_possible"]

_OFTEN = 0.001  # seconds between two looks
_REST = 0.01  # seconds without a look from which a team may have slept
_RELEASED = 1.0  # seconds without a step until threads are as before
_MOST_THREADS = 8
_WORDS = 16  # of 64 cores each, of a mask
_BYTES = 8 * _WORDS
_EVERYWHERE = (1 << 64 * _WORDS) - 1
clock = time.monotonic


def is_possible() -> bool:
    """Whether threads can be parted on this system."""
    return sys.platform.startswith("linux") and (os.cpu_count() or 1) > 1


class Parting:
    """Is called with the time at the start of a step if that is past `due`."""

    __slots__ = ("due",)

    def __init__(self) -> None:
        self.due = 0.0

    def __call__(self, now: float) -> None:
        """Keeps the team of the thread that calls off its core."""
        is_first, is_rested = self.due == 0.0, now > self.due + _REST
        self.due = now + _OFTEN
        if is_first or not process.is_tuned():
            return
        team = _team_of_this_thread()
        if team.is_known and not is_rested:
            team.part(now)
        elif (members := team_members()) is not None:
            team.part(now, members)


class _Kept(NamedTuple):
    thread: int
    before: int
    """The cores where it could run, as bits; `now` where it can."""
    now: int


class _Team:
    """The team of one thread: the ids of its other threads, which of them are kept off which core, and when
    somebody looked last. It lives as long as its thread."""

    def __init__(self) -> None:
        self._threads: list[int] = []
        self._kept: list[_Kept] = []
        self._core, self.looked = -1, 0.0
        self._load = Load()
        self.is_known = False
        self._lock = threading.Lock()

    def part(self, now: float, members: Callable[[], list[int]] | None = None) -> None:
        """Keeps the threads off the caller's core; `members` wakes the team and says who is in it."""
        core, self.looked = _Calls.made().core(), now
        self._load.look(now, self._threads)
        if self._load.is_alone:
            _Releasing.watch(self)
        elif members is not None or core != self._core:
            self._part(core, members)
            if self._kept:
                _Releasing.watch(self)

    def _part(self, core: int, members: Callable[[], list[int]] | None) -> None:
        with self._lock:
            self._keep_off(core)
            if members is not None and (found := _few(members()[1:])) != self._threads:
                self._threads = found
                self._keep_off(core)
        self.is_known |= members is not None

    def _keep_off(self, core: int) -> None:
        self._let_go()
        self._kept = [each for thread in self._threads if (each := _kept_off(thread, core)) is not None]
        self._core = core

    def release(self) -> None:
        """Lets all threads run where they could."""
        self._load.release()
        with self._lock:
            self._let_go()

    def _let_go(self) -> None:
        calls = _Calls.made()
        for thread, before, now in self._kept:
            if calls.cores(thread) != now:
                continue  # it has ended, or somebody else has said where it is to run
            calls.run_on(thread, _EVERYWHERE)  # of what the process may use, now and later
            if calls.cores(thread) != before:
                calls.run_on(thread, before)
        self._kept, self._core = [], -1


def _few(threads: list[int]) -> list[int]:
    return threads if len(threads) < _MOST_THREADS else []


def _kept_off(thread: int, core: int) -> _Kept | None:
    """Keeps a thread of this process off a core. None if it is not there, or has no other core."""
    if not os.path.exists(f"/proc/self/task/{thread}"):
        return None
    calls = _Calls.made()
    before = calls.cores(thread)
    now = before & ~(1 << core)
    return _Kept(thread, before, now) if now not in (0, before) and calls.run_on(thread, now) else None


_own = threading.local()
_first: weakref.ref[_Team] | None = None
"""The team of the thread that was the first of all living ones to ask for it."""


def _team_of_this_thread() -> _Team:
    team = getattr(_own, "team", None)
    if team is None:
        team = _own.team = _Team()
    return team


def has_the_team() -> bool:
    """Whether this thread is the first of all living ones to ask.

    A thread that starts a team has one of its own for as long as it lives. Once there are more threads in
    teams than cores, OpenMP's idle threads go to sleep at once, in all teams, and waking them takes longer
    than most kernels (docs/design/008).
    """
    global _first
    team = _team_of_this_thread()
    first = None if _first is None else _first()
    if first is None:
        _first, first = weakref.ref(team), team
    return first is team


class _Releasing:
    """Releases teams that nobody looks after, on a thread of its own while there are such teams."""

    _threads = DaemonThreads("flowstone cores", most=1)
    _lock = threading.Lock()
    _teams: ClassVar[set[_Team]] = set()

    @classmethod
    def watch(cls, team: _Team) -> None:
        """Has a team released when its time has come."""
        with cls._lock:
            cls._teams.add(team)
            if len(cls._teams) == 1:
                cls._threads.submit(cls._run)

    @classmethod
    def _run(cls) -> None:
        while cls._teams:
            time.sleep(_RELEASED)
            with cls._lock:
                left = {team for team in cls._teams if clock() - team.looked > _RELEASED}
                cls._teams -= left
            for team in left:
                team.release()


class _Calls:
    """The system's calls."""

    def __init__(self) -> None:
        library: Any = ctypes.PyDLL(None)
        self.core: Callable[[], int] = library.sched_getcpu
        self._get, self._set = library.sched_getaffinity, library.sched_setaffinity

    @staticmethod
    @functools.cache
    def made() -> _Calls:
        """The one object."""
        return _Calls()

    def cores(self, thread: int) -> int:
        """Where a thread may run, as bits; 0 if it is not there."""
        mask = ctypes.create_string_buffer(_BYTES)
        return 0 if self._get(thread, _BYTES, mask) else int.from_bytes(mask.raw, "little")

    def run_on(self, thread: int, cores: int) -> bool:
        """Has a thread run on these cores alone."""
        return not self._set(thread, _BYTES, cores.to_bytes(_BYTES, "little"))
