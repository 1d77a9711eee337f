from __future__ import annotations

import random

import pytest

from flowstone.distributed.masters.master_step import AbortPart, CleanUp, Finish, MasterStep, RunPart
from flowstone.framework import errors

A, B, C = "a", "b", "c"
BAD = errors.InvalidArgumentError(None, None, "bad")
GONE = errors.AbortedError(None, None, "aborted")


def test_a_step_ends_when_all_parts_have() -> None:
    step = MasterStep([A, B])
    assert step.begin() == [RunPart(A), RunPart(B)]
    assert step.ended(B, 2) == []
    assert step.ended(A, 1) == [CleanUp(A), CleanUp(B), Finish({B: 2, A: 1}, None)]
    step.validate()
    assert step.went_well and step.story() == ["begin", "b ended", "a ended", "over"]


def test_the_first_failure_aborts_the_others_and_waits_for_them() -> None:
    step = MasterStep([A, B, C])
    step.begin()
    assert step.ended(A, 1) == []
    assert step.failed(B, BAD) == [AbortPart(C, BAD)]
    assert step.failed(C, GONE) == [CleanUp(A), CleanUp(B), CleanUp(C), Finish({}, BAD)]
    assert not step.went_well


def test_the_cause_counts_even_if_what_it_caused_came_first() -> None:
    step = MasterStep([A, B])
    step.begin()
    assert step.failed(A, GONE) == [AbortPart(B, GONE)]
    assert step.failed(B, BAD)[-1] == Finish({}, BAD)


def test_a_cancelled_step_waits_for_its_parts() -> None:
    step = MasterStep([A])
    step.begin()
    assert step.cancelled(BAD) == [AbortPart(A, BAD)]
    assert step.ended(A, 1) == [CleanUp(A), Finish({}, BAD)]
    assert step.cancelled(BAD) == []


def test_answers_that_come_twice_count_once() -> None:
    step = MasterStep([A, B])
    step.begin()
    step.ended(A, 1)
    assert step.ended(A, 5) == [] and step.failed(A, BAD) == []
    assert step.ended(B, 2)[-1] == Finish({A: 1, B: 2}, None)


def test_a_step_without_parts_is_over_at_once() -> None:
    assert MasterStep([]).begin() == [Finish({}, None)]


@pytest.mark.parametrize("seed", range(50))
def test_any_order_of_events_ends_once(seed: int) -> None:
    choose = random.Random(seed)
    tasks = [str(i) for i in range(choose.randint(1, 6))]
    step = MasterStep(tasks)
    instructions = step.begin()
    open_ones = list(tasks)
    while open_ones:
        task = choose.choice(open_ones)
        kind = choose.choice(("ended", "ended", "failed", "cancelled", "twice"))
        if kind == "cancelled":
            instructions += step.cancelled(GONE)
            continue
        for _ in range(2 if kind == "twice" else 1):
            instructions += step.failed(task, BAD) if kind == "failed" else step.ended(task, task)
        open_ones.remove(task)
        step.validate()
    finishes = [each for each in instructions if isinstance(each, Finish)]
    assert len(finishes) == 1 and (finishes[0].error is None) == step.went_well
    assert {each.task for each in instructions if isinstance(each, CleanUp)} == set(tasks)
