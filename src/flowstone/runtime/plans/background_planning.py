"""Background planning: a thread that runs planning tasks one after the other, beside the steps.

The thread is a daemon that lives while there are tasks, so an idle session has none.

- A fork waits until no task is running; the child does not inherit the thread, and starts its own for the
  tasks that were left and for new ones.
- `stop` ends the thread for good: waiting tasks are dropped, and a running task finds `is_stopped` set when
  it has finished.
- Steps get the interpreter's lock soon while it plans (`framework/process/beside_steps.py`).
- The interpreter's exit stops it where it is (`framework/process/process_exit.py`).

Tasks catch their own exceptions. They do not pause Python's garbage collector, since that would pause it for
the whole process, which runs steps meanwhile.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable

from flowstone.framework.process import beside_steps, collector


class BackgroundPlanner:
    """The tasks of one session, and their thread. `is_stopped`: no more tasks are run."""

    def __init__(self) -> None:
        self.is_stopped = False
        self._tasks: deque[Callable[[], None]] = deque()
        self._thread: threading.Thread | None = None
        self._working = threading.Lock()  # held by the thread, except between tasks
        self._changed = threading.Condition()  # guards the fields above
        with _registry:
            _planners.add(self)

    def submit(self, task: Callable[[], None]) -> None:
        """Has the thread run `task` soon; does nothing if stopped."""
        with self._changed:
            if self.is_stopped:
                return
            self._tasks.append(task)
            if self._thread is None:
                self._start()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until no task is left; returns whether that was within the time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._thread is None, timeout_s)

    def stop(self) -> None:
        """Drops waiting tasks. Does not wait for the running one."""
        with self._changed:
            self.is_stopped = True
            self._tasks.clear()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="flowstone planner", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the interpreter is exiting, or the system has no thread left
            self._thread = None
            self._tasks.clear()

    def _work(self) -> None:
        try:
            with collector.left_alone(), beside_steps.shared():
                while self._has_done_one():
                    pass
        finally:
            with self._changed:
                self._end_thread()

    def _has_done_one(self) -> bool:
        with self._working:
            with self._changed:
                if not self._tasks:
                    self._end_thread()
                    return False
                task = self._tasks.popleft()
            task()
        return True

    def _end_thread(self) -> None:
        if self._thread is threading.current_thread():
            self._thread = None
            self._changed.notify_all()

    def _forget_thread(self) -> None:
        self._thread = None
        self._changed = threading.Condition()
        self._working.release()


_planners: weakref.WeakSet[BackgroundPlanner] = weakref.WeakSet()
_registry = threading.Lock()  # guards `_planners`; held while the process forks
_at_fork: list[BackgroundPlanner] = []


def _before_fork() -> None:
    _registry.acquire()
    _at_fork[:] = _planners
    for planner in _at_fork:
        planner._working.acquire()


def _after_fork(go_on: Callable[[BackgroundPlanner], None]) -> None:
    for planner in _at_fork:
        go_on(planner)
    _at_fork.clear()
    _registry.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(lambda planner: planner._working.release()),
        after_in_child=lambda: _after_fork(BackgroundPlanner._forget_thread),
    )
