"""Given these events, expect these instructions."""

from __future__ import annotations

import random

import pytest

from flowstone.distributed.launchers.cluster_description import ClusterDescription, Program, Task
from flowstone.distributed.launchers.supervision import End, Start, Supervision, exit_status_of

PS, FIRST, SECOND = Task("ps", 0), Task("worker", 0), Task("worker", 1)


def begun(restarts: int = 0) -> Supervision:
    supervision = Supervision(ClusterDescription({"ps": 1, "worker": 2}, Program("p"), restarts=restarts))
    assert supervision.begin() == [Start(PS), Start(FIRST), Start(SECOND)]
    return supervision


def test_servers_end_after_the_last_worker() -> None:
    supervision = begun()
    assert supervision.ended(FIRST, 0) == []
    assert supervision.ended(SECOND, 0) == [End(PS)]
    assert not supervision.is_over
    assert supervision.ended(PS, -15) == []
    assert (supervision.is_over, supervision.exit_status) == (True, 0)


def test_the_first_failure_ends_the_others_and_names_the_status() -> None:
    supervision = begun()
    assert supervision.ended(SECOND, 3) == [End(PS), End(FIRST)]
    assert supervision.ended(FIRST, 4) == [] == supervision.ended(PS, -9)
    assert (supervision.is_over, supervision.exit_status) == (True, 3)


def test_a_task_is_restarted_as_often_as_allowed() -> None:
    supervision = begun(restarts=2)
    assert supervision.ended(PS, -9) == [Start(PS)]
    assert supervision.ended(FIRST, 1) == [Start(FIRST)]
    assert supervision.ended(PS, -9) == [Start(PS)]
    assert supervision.restarts == {PS: 2, FIRST: 1, SECOND: 0}
    assert set(supervision.ended(PS, -9)) == {End(FIRST), End(SECOND)}
    assert supervision.exit_status == 137


def test_a_server_that_ends_by_itself_ends_nobody() -> None:
    supervision = begun()
    assert supervision.ended(PS, 0) == []
    assert supervision.ended(FIRST, 0) == []
    assert supervision.ended(SECOND, 0) == []
    assert supervision.is_over


def test_an_interruption_restarts_nobody() -> None:
    supervision = begun(restarts=9)
    assert supervision.interrupt(130) == [End(PS), End(FIRST), End(SECOND)]
    assert [supervision.ended(task, -15) for task in (PS, FIRST, SECOND)] == [[], [], []]
    assert (supervision.is_over, supervision.exit_status) == (True, 130)


def test_signals_count_as_in_a_shell() -> None:
    assert [exit_status_of(status) for status in (0, 3, -9, -15)] == [0, 3, 137, 143]


@pytest.mark.parametrize("seed", range(100))
def test_any_order_of_ends_comes_to_an_end(seed: int) -> None:
    """Whoever ends, however: nobody runs twice, restarts keep their limit, a failure shows in the status."""
    chance = random.Random(seed)
    jobs = {"ps": chance.randrange(3), "worker": chance.randrange(1, 4), "evaluator": chance.randrange(2)}
    description = ClusterDescription(jobs, Program("p"), restarts=chance.randrange(3))
    supervision = Supervision(description)
    running, failures, told = set(), 0, set()
    instructions = supervision.begin()
    while True:
        for instruction in instructions:
            if isinstance(instruction, Start):
                assert instruction.task not in running
                running.add(instruction.task)
            else:
                told.add(instruction.task)
        assert running == set(supervision.running)
        if supervision.is_over:
            break
        task = chance.choice(sorted(told & running or running, key=str))
        status = chance.choice([0, 0, 1, -9])
        failures += status != 0 and not supervision.is_ending
        running.remove(task)
        instructions = list(supervision.ended(task, status))
    restarts = sum(supervision.restarts.values())
    assert max(supervision.restarts.values()) <= description.restarts
    assert (supervision.exit_status != 0) == (failures > restarts)
