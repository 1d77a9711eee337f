"""Where a step's values meet: pushed, asked for, early, late, twice, and after a connection broke."""

from __future__ import annotations

from typing import Any

import pytest

from flowstone.distributed.workers.step_rendezvous import StepRendezvous, incarnation_of, rendezvous_key
from flowstone.framework import errors

A, B = "/job:a/replica:0/task:0/device:CPU:0", "/job:b/replica:0/task:0/device:CPU:0"
HERE, THERE = "/job:a/replica:0/task:0", "/job:b/replica:0/task:0"


class Others:
    """The other tasks; takes what is pushed if it `listens`."""

    def __init__(self, listens: bool) -> None:
        self.listens = listens
        self.pushed: list[tuple[str, str, Any]] = []
        self.expected: list[str] = []

    def push(self, task: str, key: str, value: Any) -> bool:
        if self.listens:
            self.pushed.append((task, key, value))
        return self.listens

    def expect(self, task: str, key: str, meeting: StepRendezvous) -> None:
        self.expected.append(key)


def meeting(listens: bool = True) -> tuple[StepRendezvous, Others, list[Any]]:
    others, found = Others(listens), list[Any]()
    return StepRendezvous(HERE, {A: 10, B: 11}, others), others, found


def sent(name: str) -> Any:
    return (name, A, B), ()


def received(name: str) -> Any:
    return (name, B, A), ()


def text(name: str, source: str, incarnation: int, target: str) -> str:
    return rendezvous_key(source, incarnation, target, name)


def test_keys_are_tensorflows() -> None:
    key = rendezvous_key(A, 255, B, "x:0", (("loop", 2), ("inner", 0)))
    assert key == f"{A};00000000000000ff;{B};x:0;loop:2/inner:0"
    assert incarnation_of(key) == (A, 255)
    for noise in ("", "a;b", f"{A};xyz;{B};x:0;0:0"):
        with pytest.raises(errors.InvalidArgumentError, match="Invalid rendezvous key"):
            incarnation_of(noise)


def test_a_value_is_pushed_or_waits_to_be_asked_for() -> None:
    step, others, found = meeting()
    step.send(sent("x"), 1)
    assert others.pushed == [(THERE, text("x", A, 10, B), 1)]
    step, others, found = meeting(listens=False)
    step.send(sent("x"), 2)
    step.answer(text("x", A, 10, B), lambda *answer: found.append(answer))
    assert found == [((2,), None)]


def test_who_asked_before_gets_the_value() -> None:
    step, others, found = meeting()
    step.answer(text("x", A, 10, B), lambda *answer: found.append(answer))
    step.send(sent("x"), 3)
    assert found == [((3,), None)] and not others.pushed


def test_a_value_that_came_early_is_there() -> None:
    step, others, found = meeting()
    step.arrived(text("x", B, 11, A), 4)
    step.arrived(text("x", B, 11, A), 5)  # asked for and pushed: the first counts
    step.receive(received("x"), lambda *answer: found.append(answer))
    assert found == [((4,), None)] and not others.expected
    assert set(step.arrivals) == {text("x", B, 11, A)}


def test_a_value_that_is_expected() -> None:
    step, others, found = meeting()
    step.receive(received("x"), lambda *answer: found.append(answer))
    key = text("x", B, 11, A)
    assert others.expected == [key] and step.is_expected(key) and not found
    step.arrived(key, 6)
    assert found == [((6,), None)] and not step.is_expected(key)


def test_values_of_this_task_do_not_leave_it() -> None:
    step, others, found = meeting()
    step.send((("x", A, A), ()), 7)
    step.receive((("x", A, A), ()), lambda *answer: found.append(answer))
    assert found == [((7,), None)] and not others.pushed and not others.expected


def test_a_connection_that_broke() -> None:
    step, _, found = meeting()
    step.receive(received("x"), lambda values, error: found.append(type(error)))
    step.send(sent("y"), 8)
    step.lost(THERE, errors.UnavailableError(None, None, "it broke"))
    assert found == [errors.UnavailableError]
    step.answer(text("y", A, 10, B), lambda values, error: found.append(type(error)))  # it may have come
    assert found == [errors.UnavailableError] * 2


def test_a_failure_of_one_value_and_the_end_of_all() -> None:
    step, _, found = meeting()
    for name in ("x", "y"):
        step.receive(received(name), lambda values, error: found.append(type(error)))
    step.failed(text("x", B, 11, A), errors.NotFoundError(None, None, "no"))
    step.failed(text("x", B, 11, A), errors.NotFoundError(None, None, "twice"))
    step.cancel(errors.CancelledError(None, None, "over"))
    assert found == [errors.NotFoundError, errors.CancelledError]
