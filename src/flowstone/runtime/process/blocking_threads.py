"""Threads for kernels that block on files, so that no thread of a step waits for a disk or a network.

They are daemons of the process, made when there is work and none is idle, at most `MOST`; an idle one ends
after a while. Work beyond that waits in order.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

MOST = 32
_IDLE_SECONDS = 10.0


class BlockingThreads:
    """Runs functions, which catch their own exceptions."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)  # a child does not inherit threads

    def _reset(self) -> None:
        self._work: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._threads = self._idle = 0

    def run(self, function: Callable[[], None]) -> None:
        """Has a thread call `function` soon."""
        with self._changed:
            self._work.append(function)
            if self._idle >= len(self._work):
                self._changed.notify()
            elif self._threads < MOST:
                self._threads += 1
                threading.Thread(target=self._loop, name="flowstone files", daemon=True).start()

    def _loop(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                has_work = self._changed.wait_for(lambda: self._work, _IDLE_SECONDS)
                self._idle -= 1
                if not has_work:
                    self._threads -= 1
                    return
                function = self._work.popleft()
            function()
            del function  # keeps nothing while it waits


shared = BlockingThreads()
