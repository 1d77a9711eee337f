"""`Coordinator`: how the threads of a program tell each other to stop, and the program what went wrong.

A coordinator is *running*, *stopping* or *joined*. Any thread may call `request_stop`, with the exception
that made it give up; the first request counts, later ones are ignored. All threads look at `should_stop`.
The main thread calls `join`, which waits until they end and then raises that exception again, with its
traceback. Exceptions of the clean types (by default OutOfRangeError: the input is used up) stop without an
error.

>>> coord = Coordinator()
>>> with coord.stop_on_exception():
...     raise ValueError("no more")
>>> coord.should_stop()
True
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from flowstone.framework import errors
from flowstone.framework.process import logging

__all__ = ["Coordinator", "LooperThread"]

_POLL_S = 0.05  # how often `join` looks whether all threads ended by themselves
_Failure = BaseException | tuple[type[BaseException], BaseException, TracebackType | None]


class Coordinator:
    """Stops a set of threads together and collects the first exception of any of them.

    `clean_stop_exception_types`: types of exceptions that stop without being an error (None:
    OutOfRangeError).
    """

    def __init__(self, clean_stop_exception_types: Iterable[type[BaseException]] | None = None) -> None:
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (errors.OutOfRangeError,)
        self._clean_stop_exception_types = tuple(clean_stop_exception_types)
        self._lock = threading.Lock()
        self._stop_event = threading.Event()
        self._failure: BaseException | None = None
        self._joined = False
        self._registered_threads: list[threading.Thread] = []

    # ---- stopping

    def request_stop(self, ex: _Failure | None = None) -> None:
        """Asks all threads to stop; with `ex`, an exception or ``sys.exc_info()``, because of a failure.

        After `join` it only raises `ex` again, if that is an error. TypeError if `ex` is neither.
        """
        failure = self._failure_of(ex)
        with self._lock:
            if self._joined:
                if failure is not None:
                    raise failure
                return
            if self._stop_event.is_set():
                return
            if failure is not None:
                logging.info("Error reported to Coordinator: %s, %s", type(failure), failure)
                self._failure = failure
            self._stop_event.set()

    def _failure_of(self, ex: _Failure | None) -> BaseException | None:
        """The exception that `ex` reports; None if it stops cleanly."""
        if ex is None:
            return None
        failure: Any = ex
        if isinstance(ex, tuple):
            failure = ex[1] if len(ex) == 3 else None
        if not isinstance(failure, BaseException):
            raise TypeError(f"ex must be an exception or a tuple of sys.exc_info(), not {ex!r}")
        return None if isinstance(failure, self._clean_stop_exception_types) else failure

    def clear_stop(self) -> None:
        """Makes the coordinator as new: running, without a failure. Registered threads stay registered."""
        with self._lock:
            self._joined = False
            self._failure = None
            self._stop_event.clear()

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return self._stop_event.is_set()

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Waits until a stop is requested, at most `timeout` seconds; returns whether one was."""
        return self._stop_event.wait(timeout)

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Within the context an exception becomes a request to stop (after `join`: is raised)."""
        try:
            yield
        except BaseException:
            self.request_stop(sys.exc_info())  # type: ignore[arg-type]

    # ---- joining

    def register_thread(self, thread: threading.Thread) -> None:
        """Adds a thread that `join` waits for."""
        with self._lock:
            self._registered_threads.append(thread)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Waits until the registered threads and `threads` have ended, then raises the failure, if any.

        Once a stop is requested they have `stop_grace_period_secs` seconds; then threads that still run are
        a RuntimeError that names them, unless there is a failure to raise or `ignore_live_threads`.
        """
        with self._lock:
            waited = list(dict.fromkeys([*self._registered_threads, *(threads or ())]))
        while any(thread.is_alive() for thread in waited) and not self.wait_for_stop(_POLL_S):
            pass
        deadline = time.monotonic() + stop_grace_period_secs
        for thread in waited:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))
        with self._lock:
            self._joined = True
            self._registered_threads = []
            failure = self._failure
        stragglers = " ".join(thread.name for thread in waited if thread.is_alive())
        if failure is not None:
            raise failure
        if stragglers:
            message = f"Coordinator stopped with threads still running: {stragglers}"
            if not ignore_live_threads:
                raise RuntimeError(message)
            logging.info(message)

    @property
    def joined(self) -> bool:
        """Whether `join` has returned or raised since the last `clear_stop`."""
        return self._joined

    def raise_requested_exception(self) -> None:
        """Raises the failure that was reported, if any."""
        with self._lock:
            failure = self._failure
        if failure is not None:
            raise failure


class LooperThread(threading.Thread):
    """A daemon thread that calls `run_loop` until its coordinator stops, and reports its exceptions there.

    `timer_interval_secs`: seconds from the start of one call to that of the next (None: no pause).
    `target`: function that `run_loop` calls with `args` and `kwargs`. A subclass may override `run_loop`,
    `start_loop` and `stop_loop`. ValueError if `coord` is no Coordinator.
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(coord, Coordinator):
            raise ValueError(f"'coord' argument must be a Coordinator: {coord}")
        super().__init__(daemon=True)
        self._coord, self._timer_interval_secs = coord, timer_interval_secs
        self._loop_target, self._loop_args, self._loop_kwargs = target, args or (), kwargs or {}
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:
        """Starts a thread that calls ``target(*args, **kwargs)`` until `coord` stops; returns it."""
        thread = LooperThread(coord, timer_interval_secs, target=target, args=args, kwargs=kwargs)
        thread.start()
        return thread

    def run(self) -> None:
        """What the thread does; programs call `start`."""
        with self._coord.stop_on_exception():
            self.start_loop()
            if self._timer_interval_secs is None:
                while not self._coord.should_stop():
                    self.run_loop()
            else:
                self._run_timed(self._timer_interval_secs)
            self.stop_loop()

    def _run_timed(self, interval_s: float) -> None:
        following = time.monotonic()  # fixed points in time: a slow call does not shift later ones
        while not self._coord.wait_for_stop(max(0.0, following - time.monotonic())):
            following += interval_s
            self.run_loop()

    def isAlive(self) -> bool:
        """`is_alive`, as Python's threads called it until 3.8."""
        return self.is_alive()

    def start_loop(self) -> None:
        """Called once, before the first `run_loop`."""

    def stop_loop(self) -> None:
        """Called once, after the last `run_loop`, unless an exception ended the loop."""

    def run_loop(self) -> None:
        """Called again and again: the target, if there is one."""
        if self._loop_target is not None:
            self._loop_target(*self._loop_args, **self._loop_kwargs)
