"""`Workers`: threads of one pass over a dataset, which end with it."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework import errors

Work = Callable[[Any], None]  # of a step; catches its own exceptions


class Workers:
    """At most `most` threads, which are daemons and start when there is work; work begins in order.

    Each call gets the step that `stop` cancels. When the object is collected, the threads end as after
    `stop`.
    """

    def __init__(self, most: int, new_step: Callable[[], Any]) -> None:
        self._most, self._started, self._step = most, 0, new_step()
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._process = os.getpid()

    def run(self, work: Work) -> None:
        """Has a thread call `work` soon; does nothing after `stop`."""
        if self._step.cancelled:
            return
        self._work.put(work)
        if self._started < self._most:
            self._started += 1
            threading.Thread(
                target=_work_on,
                args=(self._work, self._step, self._most > 1),
                name="flowstone dataset",
                daemon=True,
            ).start()

    def expect_here(self) -> None:
        """Before a wait: FailedPreconditionError in a child of the process that has the threads."""
        if os.getpid() != self._process:
            raise errors.FailedPreconditionError(
                None,
                None,
                "The threads that fetch the dataset's elements stayed in the process from which this one was "
                "forked: initialize the iterator here, or fork before the first element is taken.",
            )

    def stop(self) -> None:
        """Cancels what runs, and ends the threads. Does not wait."""
        self._step.cancel()
        for _ in range(self._started):
            self._work.put(None)

    def __del__(self) -> None:
        self.stop()


_local = threading.local()


def in_worker() -> bool:
    """Whether this thread is one of some `Workers`: whoever waits for it does other things meanwhile."""
    return getattr(_local, "works", False)


def is_one_of_many() -> bool:
    """Whether this thread is one of several `Workers`, which have the cores together: what it calls gains
    nothing by a team of threads."""
    return getattr(_local, "is_one_of_many", False)


def _work_on(work: queue.SimpleQueue[Work | None], step: Any, is_one_of_many: bool) -> None:
    _local.works, _local.is_one_of_many = True, is_one_of_many
    with torch.inference_mode():
        while (function := work.get()) is not None:
            function(step)
            del function  # keeps nothing while it waits
