"""Requests that wait are joined: which, and what each is given."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flowstone.serving.batching import Batches, BatchOptions


def until(condition: Callable[[], bool]) -> None:
    """Waits until something is so, which another thread does."""
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


class Step:
    """Doubles what it is given; its first run waits until it is let go. `sizes` are the rows of the runs."""

    def __init__(self, check: Callable[[Any], None] = lambda array: None) -> None:
        self.sizes: list[int] = []
        self.begun, self.go = threading.Event(), threading.Event()
        self._check = check

    def __call__(self, arrays: Any) -> list[Any]:
        self.sizes.append(len(arrays[0]))
        if len(self.sizes) == 1:
            self.begun.set()
            assert self.go.wait(10)
        self._check(arrays[0])
        return [arrays[0] * 2]


def outcomes(step: Step, options: BatchOptions, later: list[Any]) -> list[Any]:
    """Of requests that come while the first one, of one row, runs, in their order."""
    batches = Batches(step, options)
    found: list[Any] = [None] * (len(later) + 1)

    def ask(index: int, array: Any) -> None:
        try:
            found[index] = batches([array])[0]
        except ValueError as error:
            found[index] = error

    threads = [threading.Thread(target=ask, args=(0, np.zeros(1)))]
    threads[0].start()
    assert step.begun.wait(10)
    for index, array in enumerate(later):
        threads.append(threading.Thread(target=ask, args=(index + 1, array)))
        threads[-1].start()
        until(lambda: len(batches._waiting) == len(threads) - 1)
    step.go.set()
    for thread in threads:
        thread.join(10)
    return found[1:]


def test_what_waits_is_joined_and_split() -> None:
    step = Step()
    arrays = [np.array([1.0, 2.0]), np.array([3.0]), np.array([4.0, 5.0])]
    found = outcomes(step, BatchOptions(max_batch_size=8), arrays)
    assert [list(each) for each in found] == [[2, 4], [6], [8, 10]]
    assert step.sizes == [1, 5]


def test_no_more_rows_than_allowed() -> None:
    step = Step()
    found = outcomes(step, BatchOptions(max_batch_size=3), [np.ones(2), np.ones(2), np.ones(1), np.ones(7)])
    assert [len(each) for each in found] == [2, 2, 1, 7]
    assert step.sizes == [1, 2, 3, 7]


def test_other_types_and_shapes_are_not_joined() -> None:
    step = Step()
    arrays = [np.ones(1), np.ones((1, 2)), np.ones(1, np.int32), np.ones(1)]
    found = outcomes(step, BatchOptions(max_batch_size=8), arrays)
    assert [(each.dtype, each.shape) for each in found] == [(each.dtype, each.shape) for each in arrays]
    assert step.sizes == [1, 2, 1, 1]


def test_a_bad_request_fails_alone() -> None:
    def check(array: Any) -> None:
        if (array < 0).any():
            raise ValueError("negative")

    step = Step(check)
    good, bad, other = outcomes(step, BatchOptions(8), [np.ones(1), -np.ones(1), np.ones(2)])
    assert (list(good), list(other)) == ([2], [2, 2])
    assert str(bad) == "negative"
    assert step.sizes == [1, 4, 1, 1, 2]


def test_a_result_without_the_rows_is_made_for_each() -> None:
    step = Step()

    def total(arrays: Any) -> list[Any]:
        return [step(arrays)[0].sum(keepdims=True)]

    total.begun, total.go = step.begun, step.go  # type: ignore[attr-defined]
    found = outcomes(total, BatchOptions(8), [np.ones(2), np.ones(3)])  # type: ignore[arg-type]
    assert [list(each) for each in found] == [[4], [6]]


def test_the_first_waits_for_more() -> None:
    """Three rows fill the batch long before its time is over, though one comes after the first step."""
    step = Step()
    batches = Batches(step, BatchOptions(max_batch_size=3, timeout_s=60.0))
    threads = [threading.Thread(target=batches, args=([np.ones(1)],)) for _ in range(4)]
    threads[0].start()
    assert step.begun.wait(10)
    for thread in threads[1:3]:
        thread.start()
    until(lambda: len(batches._waiting) == 2)
    step.go.set()
    threads[0].join(10)
    assert step.sizes == [1]
    threads[3].start()
    for thread in threads:
        thread.join(10)
    assert step.sizes == [1, 3]


@pytest.mark.parametrize("arrays", [[], [np.ones(())], [np.ones(0)], [np.ones(1), np.ones(2)]])
def test_what_has_no_rows_is_not_joined(arrays: list[Any]) -> None:
    given = []
    batches = Batches(lambda each: given.append(each) or [], BatchOptions(8))  # type: ignore[func-returns-value]
    assert batches(arrays) == []
    assert given == [arrays]
