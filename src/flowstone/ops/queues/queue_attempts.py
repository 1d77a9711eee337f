"""What waits in the lines of a queue (`queue_state.py`): attempts to enqueue, to dequeue, to close.

An attempt belongs to a step, and is settled once: it succeeds, fails, or its step ends. Whoever settles it
does so under the queue's lock, and tells it afterwards, without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from flowstone.ops.queues.queue_storage import Chunk, element

Done: TypeAlias = "Callable[[Any, Any], None]"


class Attempt:
    """What waits in a line of a queue, for a step: `done` is told how it ended, once.

    `remove` undoes the registration with the step; `is_settled` says that nobody may finish it any more.
    """

    __slots__ = ("done", "is_settled", "remove")

    def __init__(self, done: Done) -> None:
        self.done = done
        self.is_settled = False
        self.remove: Callable[[], None] | None = None

    def outputs(self) -> tuple[Any, ...]:
        """What `done` is given where the attempt succeeded."""
        return ()

    def finish(self, error: BaseException | None) -> None:
        """Tells `done`; called without the queue's lock, by whoever settled it."""
        if self.remove is not None:
            self.remove()
        if error is not None:
            self.done(None, error)
            return
        try:
            outputs = self.outputs()
        except Exception as failure:  # no memory for the batch
            self.done(None, failure)
        else:
            self.done(outputs, None)


class EnqueueAttempt(Attempt):
    """Rows `start` to `stop` of `components` that are not yet in the queue (one element: SINGLE)."""

    __slots__ = ("components", "start", "stop")

    def __init__(self, done: Done, components: tuple[Any, ...], start: int, stop: int) -> None:
        super().__init__(done)
        self.components, self.start, self.stop = components, start, stop


class DequeueAttempt(Attempt):
    """`wanted` elements, of which `chunks` hold `taken`; a batch unless `wanted` is SINGLE."""

    __slots__ = ("chunks", "join", "single", "taken", "up_to", "wanted")

    def __init__(
        self, done: Done, wanted: int, up_to: bool, join: Callable[[list[Chunk]], tuple[Any, ...]]
    ) -> None:
        super().__init__(done)
        self.single = wanted < 0
        self.wanted, self.up_to, self.join = 1 if self.single else wanted, up_to, join
        self.chunks: list[Chunk] = []
        self.taken = 0

    def outputs(self) -> tuple[Any, ...]:
        """The components of the element, or the batches."""
        return element(self.chunks[0]) if self.single else self.join(self.chunks)


class CloseAttempt(Attempt):
    """A close that waits for the enqueues before it."""

    __slots__ = ()
