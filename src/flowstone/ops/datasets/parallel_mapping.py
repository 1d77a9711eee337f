"""Datasets of what a function makes of each element, by several threads at once."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import Environment, FunctionCall
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.datasets.iteration import Dataset, Element, Iteration, OneInput, dataset_op
from flowstone.ops.datasets.mapping import AUTOTUNE, INPUTS
from flowstone.ops.datasets.selection import DerivedByFunction
from flowstone.ops.datasets.workers import Workers, in_worker

__all__: list[str] = []


class _Calls:
    """Calls that one worker makes one after the other: their elements and, once `is_done`, for each the
    results or the error."""

    __slots__ = ("elements", "is_done", "results")

    def __init__(self, elements: list[Element]) -> None:
        self.elements = elements
        self.results: deque[Element | Exception] = deque()
        self.is_done = False


class _Pace:
    """How many elements a worker is given `together`, and whether calls are so short that workers take turns.

    Short calls are Python's work, for which threads that run at once only wait for the interpreter.
    """

    def __init__(self) -> None:
        self.takes_turns = False
        self._together = self._waits = 1
        self._calls = 0
        self._least = math.inf

    @property
    def together(self) -> int:
        """How many elements to give a worker: one while the source is slow, so that none waits for others."""
        return 1 if self._waits else self._together

    def note_source(self, seconds: float) -> None:
        """Tells how long an element of the source took."""
        self._waits = _MOST_TOGETHER if seconds > _SLOW_SOURCE_SECONDS else max(self._waits - 1, 0)

    def note(self, seconds: float) -> None:
        """Tells how long a call took."""
        self._calls += 1
        # The least of late: others waited for the interpreter, or for a file.
        self._least = min(seconds, self._least * _FORGETTING)
        if self._calls > _CALLS_TO_JUDGE:
            self._together = max(1, min(_MOST_TOGETHER, int(_SHORT_SECONDS / seconds)))
            self.takes_turns = self._least < _TURN_SECONDS


_CALLS_TO_JUDGE = 32
_SHORT_SECONDS = 1e-3  # what one worker is given at a time
_MOST_TOGETHER = 64
_TURN_SECONDS = 3e-4
_SLOW_SOURCE_SECONDS = 1e-4
_FORGETTING = 1.1  # by which the least grows with each call
_PATIENCE_SECONDS = 0.05  # after which a worker does not wait for its turn: the other may wait for it


class MappedAtOnce(OneInput):
    """As `Mapped`, with `calls` workers that call the function at once; the order is the source's.

    A worker is given one element, or several if the function is so fast that handing them over costs more. In
    a thread that is ahead of the steps already, short calls are made at once.
    """

    def __init__(
        self, source: Iteration, function: FunctionCall, captured: Element, calls: int, new_step: Any
    ) -> None:
        super().__init__(source)
        self.function, self.captured, self.calls = function, captured, calls
        self._workers = Workers(calls, new_step)
        self._pending: deque[_Calls] = deque()
        self._changed = threading.Condition()
        self._has_ended = False
        self._pace = _Pace()
        self._turn = threading.Lock()

    def next(self, step: Any) -> Element | None:
        is_ahead = self._pace.takes_turns and in_worker()
        while not is_ahead and not self._has_ended and len(self._pending) < self.calls:
            self._take(step)
        while self._pending:
            calls = self._pending[0]
            self._wait(step, calls)
            if calls.results:
                result = calls.results.popleft()
                del calls.elements[:1]
                break
            self._pending.popleft()
            if not is_ahead and not self._has_ended:
                self._take(step)
        else:
            return self._call(step) if is_ahead else None
        if not isinstance(result, Exception):
            return result
        if isinstance(result, errors.OutOfRangeError):
            return None
        raise result

    def _call(self, step: Any) -> Element | None:
        """Computes an element in this thread, which already is ahead of who asks for elements."""
        element = None if self._has_ended else self.source.next(step)
        if element is None:
            self._has_ended = True
            return None
        began = time.perf_counter()
        try:
            return tuple(self.function(step, *element, *self.captured))
        except errors.OutOfRangeError:
            return None
        finally:
            self._pace.note(time.perf_counter() - began)

    def _take(self, step: Any) -> None:
        """Gives the next elements to a worker."""
        elements: list[Element] = []
        failed: _Calls | None = None
        try:
            while len(elements) < self._pace.together:
                began = time.perf_counter()
                element = self.source.next(step)
                if element is None:
                    self._has_ended = True
                    break
                self._pace.note_source(time.perf_counter() - began)
                elements.append(element)
        except errors.OpError as error:
            step.check()
            failed = _Calls([])  # in its turn
            failed.results.append(error)
            failed.is_done = True
        if elements:
            self._begin(_Calls(elements))
        if failed is not None:
            self._pending.append(failed)

    def _begin(self, calls: _Calls) -> None:
        self._pending.append(calls)
        changed, function, captured = self._changed, self.function, self.captured
        pace, turn = self._pace, self._turn

        def work(step: Any) -> None:
            has_turn = pace.takes_turns and turn.acquire(timeout=_PATIENCE_SECONDS)
            began = time.perf_counter()
            found: list[Element | Exception] = []
            for element in calls.elements:
                try:
                    found.append(tuple(function(step, *element, *captured)))
                except Exception as error:
                    found.append(error)
            pace.note((time.perf_counter() - began) / len(found))
            if has_turn:
                turn.release()
            with changed:
                calls.results.extend(found)
                calls.is_done = True
                changed.notify_all()

        self._workers.run(work)

    def _wait(self, step: Any, calls: _Calls) -> None:
        if calls.is_done:
            return
        self._workers.expect_here()
        remove = step.on_cancel(self._wake)
        try:
            with self._changed:
                while not calls.is_done:
                    step.check()
                    self._changed.wait(_remaining(step))
        finally:
            remove()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def save(self) -> Any:
        pending = [element for calls in self._pending for element in calls.elements]  # computed again
        return {**super().save(), "ended": self._has_ended, "pending": pending}

    def restore(self, step: Any, state: Any) -> None:
        super().restore(step, state)
        self._pending.clear()
        self._has_ended = state["ended"]
        for element in state["pending"]:
            self._begin(_Calls([element]))

    def close(self) -> None:
        super().close()
        self._workers.stop()


def _remaining(step: Any) -> float | None:
    """How long a wait may last until the step is to be checked."""
    return None if step.deadline is None else 0.05


def calls_at_once(number: torch.Tensor, what: str = "num_parallel_calls") -> int:
    """How many calls run at once: as many as asked for, or as there are threads."""
    calls = int(number)
    if calls == AUTOTUNE:
        return max(1, torch.get_num_threads())
    if calls < 1:
        raise invalid(f"{what} must be greater than zero.")
    return calls


def _make_parallel_map(node: Node, env: Environment) -> Callable[..., Dataset]:
    function, new_step = env.function(node, node.attributes["f"]), env.new_step

    def make(source: Dataset, *rest: Any) -> Dataset:
        *captured, number = rest
        calls = calls_at_once(number)
        return DerivedByFunction(
            source,
            function,
            lambda each, call: MappedAtOnce(each, call, tuple(captured), calls, new_step),
        )

    return make


parallel_map_dataset_op = dataset_op(
    "ParallelMapDataset", f"{INPUTS}, num_parallel_calls: int32", _make_parallel_map,
    "f: func ; Targuments: list(type) >= 0 ; use_inter_op_parallelism: bool = true ; "
    "sloppy: bool = false ; preserve_cardinality: bool = false", keeps=[1],
)  # fmt: skip
parallel_map_dataset_v2_op = dataset_op(
    "ParallelMapDatasetV2", f"{INPUTS}, num_parallel_calls: int64[]", _make_parallel_map,
    "f: func ; Targuments: list(type) >= 0 ; use_inter_op_parallelism: bool = true ; "
    "deterministic: string = 'default' ; preserve_cardinality: bool = false ; "
    "use_unbounded_threadpool: bool = false ; metadata: string = ''", keeps=[1],
)  # fmt: skip
