"""Loops that do not end by themselves end by a signal, and with their step."""

from __future__ import annotations

import signal
import threading
from types import FrameType

import pytest
import torch

from flowstone.framework import errors
from flowstone.native.programs.programs import Builder
from flowstone.runtime.steps.step import UNLIMITED, Step
from small_programs import kernel_of, run


def endless(builder: Builder, x: int) -> list[int]:
    true = builder.constant("bool", (), [True])
    builder.begin_loop()
    state = builder.value("float32", ())
    builder.begin_body()
    following = builder.add("Neg", [state], ("float32", ()))
    builder.end_loop([(x, state, following)], true, ())
    builder.leave(state)
    return [state]


def test_a_signal_ends_a_loop_that_does_not_end() -> None:
    class Ended(Exception):
        pass

    def end(number: int, frame: FrameType | None) -> None:
        raise Ended

    kernel = kernel_of([torch.tensor(1.0)], endless)
    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(Ended):
            kernel(UNLIMITED, torch.tensor(1.0))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    (after,) = run([torch.ones(3)], lambda e, x: [e.add("Neg", [x], ("float32", (3,)))])
    assert torch.equal(after, -torch.ones(3))


@pytest.mark.parametrize("timeout_ms", [0, 200])
def test_the_end_of_its_step_ends_a_loop(timeout_ms: int) -> None:
    kernel, step = kernel_of([torch.tensor(1.0)], endless), Step(timeout_ms)
    timer = threading.Timer(0.2, lambda: timeout_ms or step.cancel())
    timer.start()
    with pytest.raises(errors.DeadlineExceededError if timeout_ms else errors.CancelledError):
        kernel(step, torch.tensor(1.0))
    timer.join()
