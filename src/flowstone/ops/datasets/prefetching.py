"""Datasets whose elements a thread fetches ahead of time, so that they are there when a step asks."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.kernel import Environment
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.datasets.iteration import Dataset, Element, Iteration, dataset_op
from flowstone.ops.datasets.selection import Derived
from flowstone.ops.datasets.workers import Workers

__all__: list[str] = []

_AUTOTUNE, _CHOSEN = -1, 2  # elements held where the program leaves the number open


class _Buffer:
    """Up to `size` elements or errors of `source`, which `fill` fetches; None after the last."""

    def __init__(self, source: Iteration, size: int) -> None:
        self.source, self.size = source, size
        self.found: deque[Any] = deque()
        self.changed = threading.Condition()
        self.is_stopped = self.has_ended = self.is_fetching = self.is_left = False

    def fill(self, step: Any) -> None:
        """Fetches until the source ends or `stop` is called."""
        while True:
            with self.changed:
                while len(self.found) >= self.size and not self.is_stopped:
                    self.changed.wait()
                if self.is_stopped:
                    return
                self.is_fetching = True
            try:
                found: Any = self.source.next(step)
            except Exception as error:
                found = error
            with self.changed:
                self.is_fetching = False
                self.has_ended = found is None
                self.found.append(found)
                self.changed.notify_all()
                if self.is_left:
                    self.source.close()
                if self.has_ended:
                    return

    def stop(self) -> None:
        """Ends `fill`."""
        with self.changed:
            self.is_stopped = True
            self.changed.notify_all()

    def close(self) -> None:
        """Ends `fill`, and closes the source: at once, or when the fetching under way has ended."""
        self.stop()
        with self.changed:
            if self.is_fetching:
                self.is_left = True
            else:
                self.source.close()

    def wait(self) -> None:
        """Waits until nothing is being fetched; the caller sees to it that nothing more is."""
        with self.changed:
            while self.is_fetching:
                self.changed.wait()


class Prefetched(Iteration):
    """The source's elements, up to `size` of them ahead. Nothing is fetched before the first is asked for."""

    def __init__(self, source: Iteration, size: int, new_step: Callable[[], Any]) -> None:
        self._buffer, self._new_step = _Buffer(source, size), new_step
        self._workers: Workers | None = None

    def next(self, step: Any) -> Element | None:
        if self._workers is None:
            self._start()
        buffer = self._buffer
        if not buffer.found:
            self._wait(step)
        with buffer.changed:
            if buffer.found[0] is None:
                return None  # and stays there
            found = buffer.found.popleft()
            buffer.changed.notify_all()
        if isinstance(found, Exception):
            raise found
        return found  # type: ignore[no-any-return]

    def _start(self) -> None:
        self._workers = Workers(1, self._new_step)
        self._workers.run(self._buffer.fill)

    def _wait(self, step: Any) -> None:
        buffer = self._buffer
        if self._workers is not None:
            self._workers.expect_here()

        def wake() -> None:
            with buffer.changed:
                buffer.changed.notify_all()

        remove = step.on_cancel(wake)
        try:
            with buffer.changed:
                while not buffer.found:
                    step.check()
                    buffer.changed.wait(None if step.deadline is None else 0.05)
        finally:
            remove()

    def save(self) -> Any:
        """The source's state after the buffered elements, and these."""
        buffer = self._buffer
        with buffer.changed:
            size, buffer.size = buffer.size, 0  # nothing more is fetched meanwhile
            while buffer.is_fetching:
                buffer.changed.wait()
            try:
                found = [None if isinstance(each, Exception) else each for each in buffer.found]
                return {"source": buffer.source.save(), "found": found, "ended": buffer.has_ended}
            finally:
                buffer.size = size
                buffer.changed.notify_all()

    def restore(self, step: Any, state: Any) -> None:
        source, size = self._buffer.source, self._buffer.size
        self._buffer.stop()
        self._buffer.wait()
        self.close()
        source.restore(step, state["source"])
        self._buffer, self._workers = _Buffer(source, size), None
        self._buffer.has_ended = state["ended"]
        self._buffer.found.extend(state["found"])
        if state["ended"]:
            self._workers = Workers(1, self._new_step)  # there is nothing left to fetch

    def close(self) -> None:
        if self._workers is not None:
            self._workers.stop()
        self._buffer.close()

    def __del__(self) -> None:
        self._buffer.stop()


def _make_prefetch(node: Node, env: Environment) -> Callable[..., Dataset]:
    new_step = env.new_step

    def make(source: Dataset, buffer_size: Any) -> Dataset:
        size = int(buffer_size)
        if size < _AUTOTUNE:
            raise invalid(f"buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning, not {size}")
        if size == 0:
            return source
        return Derived(source, lambda each: Prefetched(each, _CHOSEN if size < 0 else size, new_step))

    return make


prefetch_dataset_op = dataset_op(
    "PrefetchDataset", "input_dataset: variant, buffer_size: int64[]", _make_prefetch,
    "slack_period: int = 0 ; legacy_autotune: bool = true ; buffer_size_min: int = 0",
)  # fmt: skip
