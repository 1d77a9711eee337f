"""One execution: its deadline, its cancellation, and what ends with it."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.runtime.steps.step import UNLIMITED, Step


def test_a_step_without_a_limit_goes_on() -> None:
    step = Step()
    step.check()
    assert step.deadline is None and not step.cancelled and UNLIMITED.deadline is None


def test_a_step_ends_when_its_time_is_over() -> None:
    step = Step(timeout_ms=1000)
    step.check()
    step.deadline -= 1001
    with pytest.raises(tf.errors.DeadlineExceededError, match="time limit"):
        step.check()


def test_the_first_reason_counts_and_is_told_once() -> None:
    step, told = Step(), []
    step.on_cancel(lambda: told.append("a"))
    step.cancel()
    step.cancel(ValueError("later"))
    assert told == ["a"] and step.cancelled
    with pytest.raises(tf.errors.CancelledError):
        step.check()


def test_a_reason_of_ones_own() -> None:
    step, error = Step(), ValueError("mine")
    step.cancel(error)
    with pytest.raises(ValueError, match="mine"):
        step.check()


def test_who_has_stopped_waiting_is_not_told() -> None:
    step, told = Step(), []
    remove = step.on_cancel(lambda: told.append("a"))
    step.on_cancel(lambda: told.append("b"))
    remove()
    remove()
    step.cancel()
    assert told == ["b"]


def test_who_comes_late_is_told_at_once() -> None:
    step, told = Step(), []
    step.cancel()
    step.on_cancel(lambda: told.append("late"))()
    assert told == ["late"]


def test_cancellation_reaches_who_waits_for_another_device() -> None:
    step, received = Step(), []
    step.rendezvous.receive("key", lambda *arrived: received.append(arrived))
    step.cancel()
    ((value, error),) = received
    assert value is None
    assert isinstance(error, tf.errors.CancelledError)


def test_state_is_made_once_a_step() -> None:
    step = Step()
    made = step.state("stacks", list)
    assert step.state("stacks", dict) is made and Step().state("stacks", list) is not made
