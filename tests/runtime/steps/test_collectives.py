"""Steps that take part in collective operations of one process: they wait without a thread, end early, leave
nothing."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
import torch

from flowstone.framework import errors
from flowstone.ops.collectives.offers import REDUCE, Offer
from flowstone.runtime.steps.collectives import Collectives
from flowstone.runtime.steps.step import Step

TASK = "/job:localhost/replica:0/task:0"


def offer(member: int, value: float, instance: int = 1) -> Offer:
    return Offer(
        REDUCE, 1, 2, instance, f"{TASK}/device:CPU:{member}", f"n{member}", "float32", (1,), "sum",
        value=torch.tensor([value]),
    )  # fmt: skip


class Report:
    """What a kernel was told, which is to be once."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.has_come = threading.Event()

    def __call__(self, outputs: Any, error: Any) -> None:
        self.told.append(error if error is not None else outputs[0].tolist())
        self.has_come.set()


@pytest.fixture
def collectives() -> Collectives:
    return Collectives(TASK)


def test_two_steps_meet(collectives: Collectives) -> None:
    steps, reports = [Step(), Step()], [Report(), Report()]
    for i in range(2):
        assert not reports[0].told
        collectives.join(steps[i], reports[i], offer(i, 1.0 + i))
    assert [report.told for report in reports] == [[[3.0]], [[3.0]]]


def test_a_step_ends_with_its_memory(collectives: Collectives) -> None:
    for _ in range(3):
        step = Step()
        for i in range(2):
            collectives.join(step, Report(), offer(i, 1.0))
        assert len(collectives) == 1
        del step
        assert len(collectives) == 0


def test_a_cancelled_step_leaves(collectives: Collectives) -> None:
    first, report = Step(), Report()
    collectives.join(first, report, offer(0, 1.0))
    first.cancel(errors.CancelledError(None, None, "closed"))
    assert isinstance(report.told[0], errors.CancelledError)
    later, others = [Step(), Step()], [Report(), Report()]
    for i in range(2):
        collectives.join(later[i], others[i], offer(i, 5.0))
    assert [other.told for other in others] == [[[10.0]], [[10.0]]]
    assert len(report.told) == 1


def test_a_step_that_is_over_fails_nobody(collectives: Collectives) -> None:
    steps = [Step(), Step()]
    for i in range(2):
        collectives.join(steps[i], Report(), offer(i, 1.0))
    waiting = Report()
    collectives.join(steps[1], waiting, offer(1, 1.0, instance=2))
    steps[0].is_over = True
    steps[0].cancel(errors.AbortedError(None, None, "over"))
    assert not waiting.told
    steps[1].cancel(ValueError("a kernel's own"))
    assert isinstance(waiting.told[0], errors.CancelledError)
    assert "a kernel's own" in waiting.told[0].message


def test_an_offer_has_a_time_limit(collectives: Collectives) -> None:
    step, report = Step(), Report()
    begun = time.monotonic()
    collectives.join(step, report, offer(0, 1.0), timeout_s=0.05)
    assert report.has_come.wait(10)
    assert time.monotonic() - begun >= 0.04
    assert isinstance(report.told[0], errors.DeadlineExceededError)
    assert "have not joined the group yet" in report.told[0].message


def test_the_end_of_all(collectives: Collectives) -> None:
    step, report = Step(), Report()
    collectives.join(step, report, offer(0, 1.0))
    collectives.end(errors.CancelledError(None, None, "shutting down"))
    assert isinstance(report.told[0], errors.CancelledError)


def test_errors_of_several_nodes_are_objects_of_their_own(collectives: Collectives) -> None:
    steps, reports = [Step(), Step()], [Report(), Report()]
    collectives.join(steps[0], reports[0], offer(0, 1.0))
    collectives.join(steps[1], reports[1], offer(1, 1.0)._replace(dims=(2,)))
    one, other = reports[0].told[0], reports[1].told[0]
    assert isinstance(one, errors.InvalidArgumentError)
    assert one is not other
    assert one.message == other.message
