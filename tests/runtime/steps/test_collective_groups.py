"""Who meets whom in collective operations: given these events, expect these instructions."""

from __future__ import annotations

import random
from typing import Any

import pytest

from flowstone.framework import errors
from flowstone.ops.collectives.offers import BROADCAST, GATHER, REDUCE, Offer
from flowstone.runtime.steps.collective_groups import CollectiveGroups, Instruction, Meet, rank_key

LOST = errors.UnavailableError(None, None, "gone")
FAILED = errors.InvalidArgumentError(None, None, "wrong")


def task(number: int) -> str:
    return f"/job:worker/replica:0/task:{number}"


def offer(member: int, instance: int = 1, size: int = 2, **fields: Any) -> Offer:
    fields = {"kind": REDUCE, "dtype": "float32", "dims": (3,), "merge": "sum", "node": "n", **fields}
    return Offer(group=7, size=size, instance=instance, member=f"{task(member)}/device:CPU:0", **fields)


class Play:
    """The groups, with a log; every state is checked. Steps are (member, number), tickets have the instance
    as well."""

    def __init__(self) -> None:
        self.groups = CollectiveGroups(keeps_story=True)

    def join(self, member: int, step: int = 0, instance: int = 1, size: int = 2, **fields: Any) -> list[Any]:
        wanted = offer(member, instance, size, **fields)
        return self.told(self.groups.join((member, step), task(member), (member, step, instance), wanted))

    def fail(self, member: int, step: int = 0, error: Any = FAILED) -> list[Any]:
        return self.told(self.groups.fail((member, step), error))

    def end(self, member: int, step: int = 0) -> None:
        self.groups.end((member, step))
        self.groups.validate()

    def lost(self, member: int) -> list[Any]:
        return self.told(self.groups.lost(task(member), LOST))

    def told(self, instructions: list[Instruction]) -> list[Any]:
        """Instructions as comparable tuples."""
        self.groups.validate()
        return [
            ("meet", each.tickets) if isinstance(each, Meet) else (type(each.error).__name__, each.ticket)
            for each in instructions
        ]


@pytest.fixture
def play() -> Play:
    return Play()


def test_members_meet_in_the_order_of_their_ranks(play: Play) -> None:
    assert play.join(10, size=3) == []
    assert play.join(2, size=3) == []
    assert play.join(1, size=3) == [("meet", [(1, 0, 1), (2, 0, 1), (10, 0, 1)])]


def test_a_member_alone_meets_itself(play: Play) -> None:
    assert play.join(0, size=1) == [("meet", [(0, 0, 1)])]


def test_operations_do_not_mix(play: Play) -> None:
    assert play.join(0, instance=1) == []
    assert play.join(1, instance=2) == []
    assert play.join(1, instance=1) == [("meet", [(0, 0, 1), (1, 0, 1)])]


def test_steps_meet_in_their_order(play: Play) -> None:
    """A member may be ahead, with other steps or with the same one, in a loop."""
    for step in range(3):
        assert play.join(0, step) == []
    assert play.join(0, 2) == []
    for step in range(3):
        assert play.join(1, step) == [("meet", [(0, step, 1), (1, step, 1)])]
    assert play.join(1, 2) == [("meet", [(0, 2, 1), (1, 2, 1)])]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"dims": (2,)}, "InvalidArgumentError"),
        ({"dtype": "int32"}, "InternalError"),
        ({"kind": GATHER}, "InternalError"),
        ({"merge": "max"}, "InternalError"),
        ({"is_mean": True}, "InternalError"),
        ({"stays": True}, "InternalError"),
    ],
)
def test_members_that_disagree_are_all_refused(play: Play, fields: dict[str, Any], kind: str) -> None:
    play.join(0)
    assert play.join(1, **fields) == [(kind, (0, 0, 1)), (kind, (1, 0, 1))]


def test_a_member_that_comes_later_hears_of_a_failure(play: Play) -> None:
    """Of the step that it would have met; not of the one after it."""
    for member in range(3):
        play.join(member, size=3)
    play.join(0, 1, size=3)
    assert len(play.join(1, 1, size=3, dims=(9,))) == 2
    for member in (0, 1):
        play.fail(member, 1)
        play.end(member, 1)
    play.join(0, 2, size=3)
    assert play.join(2, 1, size=3) == [("InvalidArgumentError", (2, 1, 1))]
    play.join(1, 2, size=3)
    assert play.join(2, 2, size=3) == [("meet", [(0, 2, 1), (1, 2, 1), (2, 2, 1)])]


def test_a_new_program_does_not_hear_of_past_failures(play: Play) -> None:
    test_a_member_that_comes_later_hears_of_a_failure(play)
    play.join(0, 3, size=3)
    play.join(1, 3, size=3, dims=(9,))
    for member in range(3):
        for step in range(4):
            play.end(member, step)
    play.groups.forget_failures(task(0))
    play.groups.validate()
    assert play.join(2, 9, size=2) == []
    assert play.join(1, 9, size=2) == [("meet", [(1, 9, 1), (2, 9, 1)])]


@pytest.mark.parametrize(
    ("sources", "told"), [((0,), "meet"), ((), "InternalError"), ((0, 1), "InternalError")]
)
def test_a_broadcast_has_one_source(play: Play, sources: tuple[int, ...], told: str) -> None:
    play.join(0, kind=BROADCAST, is_source=0 in sources)
    assert {each[0] for each in play.join(1, kind=BROADCAST, is_source=1 in sources)} == {told}


def test_two_nodes_of_a_step_cannot_have_the_same_keys(play: Play) -> None:
    play.join(0, node="a")
    refused = play.join(0, node="b")
    assert ("InternalError", (0, 0, 1)) in refused


def test_a_group_has_one_size(play: Play) -> None:
    play.join(0, size=2)
    assert play.join(1, size=3) == [("InternalError", (1, 0, 1)), ("InternalError", (0, 0, 1))]


def test_a_group_is_full(play: Play) -> None:
    play.join(0)
    play.join(1)
    assert play.join(2) == [("InternalError", (2, 0, 1))]


def test_a_group_without_steps_is_forgotten(play: Play) -> None:
    play.join(0)
    play.join(1)
    play.end(0)
    play.end(1)
    assert len(play.groups) == 0
    assert play.join(5, 1, size=3) == []


def test_a_step_that_waits_may_leave(play: Play) -> None:
    play.join(0)
    assert play.fail(0) == [("InvalidArgumentError", (0, 0, 1))]
    assert play.join(0) == [("InvalidArgumentError", (0, 0, 1))], "a failed step joins nothing"
    assert play.join(1) == []
    assert play.join(0, 1) == [("meet", [(0, 1, 1), (1, 0, 1)])]


def test_steps_that_have_met_fail_together(play: Play) -> None:
    play.join(0)
    play.join(1)
    assert play.join(1, instance=2) == []
    assert play.fail(0) == [("AbortedError", (1, 0, 2))]
    assert play.join(1, instance=3) == [("AbortedError", (1, 0, 3))]
    assert play.fail(0) == []
    assert play.join(1, 1) == []
    assert play.join(0, 1) == [("meet", [(0, 1, 1), (1, 1, 1)])]


def test_a_step_that_ended_well_fails_nobody(play: Play) -> None:
    play.join(0)
    play.join(1)
    play.join(1, instance=2)
    play.end(0)
    assert play.fail(0) == []
    assert play.join(0, 1, instance=2) == [("meet", [(0, 1, 2), (1, 0, 2)])]


def test_a_failure_goes_from_step_to_step(play: Play) -> None:
    """0 has met 1 in one group, 1 has met 2 in another."""
    wanted = {member: offer(member)._replace(group=8) for member in (1, 2)}
    play.join(0)
    play.join(1)
    for member in (1, 2):
        play.groups.join((member, 0), task(member), (member, 0, 1), wanted[member])
    play.groups.join((2, 0), task(2), "waits", wanted[2]._replace(instance=5))
    assert ("AbortedError", "waits") in play.fail(0)


def test_a_lost_task_fails_those_that_wait_for_it(play: Play) -> None:
    play.join(0)
    play.join(1)
    for member in (0, 1):
        play.end(member)
    play.join(0, 1)
    assert play.lost(1) == [], "the group had been forgotten: nobody knows that it is the one awaited"
    play.join(1, 1)
    play.join(0, 2)
    assert play.lost(1) == [("UnavailableError", (0, 2, 1))]
    assert play.join(0, 3) == []
    assert play.join(1, 9) == [("meet", [(0, 3, 1), (1, 9, 1)])]


@pytest.mark.parametrize("begins", [False, True])
def test_a_task_lost_between_steps_is_heard_of_once(play: Play, begins: bool) -> None:
    """A step that waited for its replacement would go on with a task that has begun anew. A program that
    begins afterwards may."""
    for member in range(3):
        play.join(member, size=3)
    assert play.lost(2) == []
    for member in (0, 1):
        play.end(member)
        if begins:
            play.groups.forget_failures(task(member))
    if not begins:
        assert play.join(0, 1, size=3) == [("UnavailableError", (0, 1, 1))]
        assert play.join(0, 1, instance=2, size=3) == [("UnavailableError", (0, 1, 2))]
        assert play.join(2, 7, size=3) == [], "the replacement waits"
        assert play.join(1, 1, size=3) == [("UnavailableError", (1, 1, 1))]
    else:
        assert play.join(2, 7, size=3) == []
    assert play.join(0, 2, size=3) == []
    assert play.join(1, 2, size=3) == [("meet", [(0, 2, 1), (1, 2, 1), (2, 7, 1)])]


def test_a_task_that_heard_of_a_loss_in_one_group_does_not_in_another(play: Play) -> None:
    """0 waits for 1 in one group, while it is in another one with it."""
    for member in (0, 1):
        wanted = offer(member)._replace(group=8)
        play.groups.join((member, 0), task(member), (member, 0, 8), wanted)
    assert play.join(0) == []
    assert play.join(1, instance=2) == []
    assert play.lost(1) == [("UnavailableError", (0, 0, 1)), ("UnavailableError", (1, 0, 2))]
    play.end(0)
    assert play.groups.join((0, 1), task(0), (0, 1, 8), offer(0)._replace(group=8)) == []


def test_who_is_missing(play: Play) -> None:
    play.join(0, size=3)
    assert play.groups.missing(offer(0, size=3)) == ["2 that have not joined the group yet"]
    play.join(1, instance=2, size=3)
    found = play.groups.missing(offer(0, size=3))
    assert found == [f"{task(1)}/device:CPU:0", "1 that have not joined the group yet"]
    assert play.groups.missing(offer(0, instance=9, size=3)) == []


def test_ranks() -> None:
    names = [f"/job:{job}/replica:0/task:{i}/device:{kind}:{k}" for job in ("a", "b") for i in (0, 2, 10)
             for kind in ("CPU", "GPU") for k in (0, 9, 11)]  # fmt: skip
    shuffled = random.Random(0).sample(names, len(names))
    assert sorted(shuffled, key=rank_key) == names


def test_story(play: Play) -> None:
    play.join(0)
    play.join(1)
    assert [event.rpartition("/")[2] for event in play.groups.story(7)] == [
        "device:CPU:0 joins 1", "device:CPU:0 joins 1", "1 meets",
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(150))
def test_random_steps_with_failures(seed: int) -> None:
    """Members run steps of several operations each, which now and then fail: every offer is answered, values
    of different rounds never meet, and at the end nothing is kept."""
    chance = random.Random(seed)
    members, operations, rounds = chance.randint(2, 4), chance.randint(1, 3), 6
    groups = CollectiveGroups()
    rounds_made = [0] * members
    steps = [0] * members
    open_tickets: dict[int, set[int]] = {}
    met: dict[tuple[int, int], set[tuple[int, int]]] = {}
    failures = 5
    for _ in range(3000):
        if min(rounds_made) >= rounds:
            break
        member = chance.randrange(members)
        if rounds_made[member] >= rounds:
            continue
        key = member, steps[member]
        done = met.setdefault(key, set())
        waiting = open_tickets.setdefault(member, set())
        instructions: list[Instruction] = []
        todo = [i for i in range(operations) if i not in waiting and i not in {i for i, _ in done}]
        if failures and chance.random() < 0.05:
            failures -= 1
            instructions = groups.fail(key, FAILED)
            groups.end(key)
            steps[member] += 1
            open_tickets[member] = set()
        elif todo:
            instance = chance.choice(todo)
            waiting.add(instance)
            wanted = offer(member, instance, members)
            instructions = groups.join(key, task(member), (*key, instance), wanted)
        elif not waiting:
            groups.end(key)
            rounds_made[member] += 1
            steps[member] += 1
        for each in instructions:
            if isinstance(each, Meet):
                assert len({ticket[2] for ticket in each.tickets}) == 1
                for number, step, instance in each.tickets:
                    assert steps[number] == step, "a step met that was over"
                    met[number, step].add((instance, 0))
                    open_tickets[number].discard(instance)
            else:
                number, step, instance = each.ticket
                if steps[number] == step:  # it hears that its step is to end
                    groups.end((number, step))
                    steps[number] += 1
                    open_tickets[number] = set()
        groups.validate()
    else:
        # Those that have fewer rounds left to make may wait for others that have made theirs.
        assert failures < 5
    for member in range(members):
        groups.fail((member, steps[member]), FAILED)
        groups.end((member, steps[member]))
    assert len(groups) == 0
