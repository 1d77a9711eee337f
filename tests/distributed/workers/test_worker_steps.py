from __future__ import annotations

import pytest

from flowstone.distributed.workers import worker_steps
from flowstone.distributed.workers.worker_steps import WorkerSteps
from flowstone.framework import errors

BAD = errors.InternalError(None, None, "bad")


def steps() -> WorkerSteps[str]:
    return WorkerSteps(lambda number: f"meeting {number}", keeps_story=True)


def test_a_step_comes_runs_and_goes() -> None:
    known = steps()
    assert known.begun(1) == "meeting 1"
    known.ended(1)
    assert len(known) == 1 and known.cleaned(1) == "meeting 1"
    known.validate()
    assert len(known) == 0 and known.story(1) == ["begun", "ended", "cleaned", "gone"]


def test_a_value_may_be_asked_for_before_the_step_begins() -> None:
    known = steps()
    meeting = known.asked(1)
    assert known.begun(1) is meeting


def test_a_step_that_is_cleaned_leaves_when_its_part_has_ended() -> None:
    known = steps()
    known.begun(1)
    known.cleaned(1)
    known.validate()
    assert len(known) == 1
    known.ended(1)
    known.validate()
    assert len(known) == 0


def test_what_comes_after_the_end_is_refused() -> None:
    known = steps()
    assert known.cleaned(1) is None  # nothing was known of it
    for call in (known.begun, known.asked):
        with pytest.raises(errors.AbortedError, match="is over"):
            call(1)
    known.begun(2)
    known.cleaned(2)
    with pytest.raises(errors.AbortedError, match="is over"):
        known.asked(2)


def test_a_part_begins_once() -> None:
    known = steps()
    known.begun(1)
    with pytest.raises(errors.AbortedError, match="has begun already"):
        known.begun(1)
    known.ended(1)
    with pytest.raises(errors.AbortedError, match="has begun already"):
        known.begun(1)


def test_a_step_fails_once_and_does_not_begin_afterwards() -> None:
    known = steps()
    meeting = known.asked(1)
    assert known.failed(1, BAD) is meeting and known.failed(1, BAD) is None
    with pytest.raises(errors.AbortedError, match="has failed: bad"):
        known.begun(1)


def test_a_failure_may_overtake_the_request_to_begin() -> None:
    known = steps()
    assert known.failed(1, BAD) == "meeting 1"
    with pytest.raises(errors.AbortedError, match="has failed: bad"):
        known.begun(1)
    known.cleaned(1)
    assert len(known) == 0 and known.failed(1, BAD) is None and len(known) == 0


def test_only_the_latest_steps_that_are_gone_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_steps, "_REMEMBERED", 3)
    known = steps()
    for number in range(10):
        known.cleaned(number)
    known.validate()
    with pytest.raises(errors.AbortedError):
        known.asked(9)
    assert known.asked(0) == "meeting 0"
    assert known.all() == [(0, "meeting 0")]
