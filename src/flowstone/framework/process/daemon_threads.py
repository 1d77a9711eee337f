"""Threads that call functions and never keep a program from ending.

The standard library's `ThreadPoolExecutor` takes no more work once a program's main thread has ended, though
other threads may still run steps; and the interpreter does not exit before that pool has done all its work,
be it a step that waits for a queue's elements. `DaemonThreads` does neither.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, wait
from typing import Any, ParamSpec, TypeVar

__all__ = ["DaemonThreads"]

_Parameters = ParamSpec("_Parameters")
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class DaemonThreads(Executor):
    """Calls functions on daemon threads, which begin when they are needed and stay.

    Args:
        name: the beginning of the threads' names.
        most: how many threads there may be; further work waits for one of them.
    """

    def __init__(self, name: str, most: int = 1024) -> None:
        self._name, self._most, self._count = name, most, 0
        self._free = 0  # threads without work, less the work that waits for a thread
        self._lock = threading.Lock()
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def submit(
        self,
        function: Callable[_Parameters, _Result],
        /,
        *arguments: _Parameters.args,
        **named: _Parameters.kwargs,
    ) -> Future[_Result]:
        """Calls the function on a thread; returns what will have its result or its error."""
        future: Future[Any] = Future()

        def call() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    result = function(*arguments, **named)
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(result)

        with self._lock:
            self._free -= 1
            begins = self._free < 0 and self._count < self._most
            if begins:
                self._free += 1
                self._count += 1
                number = self._count
        self._work.put(call)
        if begins:
            threading.Thread(target=self._serve, name=f"{self._name} {number}", daemon=True).start()
        return future

    def at_once(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """The function's results of all items, a thread each; a single one is computed on this thread.

        Returns when all calls have ended; raises the first item's error that there is.
        """
        items = list(items)
        if len(items) == 1:
            return [function(items[0])]
        futures = [self.submit(function, item) for item in items]
        wait(futures)
        return [future.result() for future in futures]

    def _serve(self) -> None:
        while True:
            self._work.get()()
            with self._lock:
                self._free += 1
