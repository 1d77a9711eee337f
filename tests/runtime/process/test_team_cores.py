"""A team's other threads are kept off one core, and let go as they were."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.codegen.team_members import TeamMembers
from flowstone.runtime.process import process, team_cores
from flowstone.runtime.process.threads import limit


class System:
    """A system with four cores, the caller on the first; where its threads may run, by their ids."""

    def __init__(self, cores: dict[int, int], allowed: int = 0b1111) -> None:
        self.masks, self.allowed, self.at = dict(cores), allowed, 0

    def core(self) -> int:
        return self.at

    def cores(self, thread: int) -> int:
        return self.masks.get(thread, 0)

    def run_on(self, thread: int, cores: int) -> bool:
        if thread not in self.masks or not cores & self.allowed:
            return False
        self.masks[thread] = cores & self.allowed
        return True


@pytest.fixture
def team(monkeypatch: pytest.MonkeyPatch):
    """A function that makes a team on a system; all its threads are there."""

    def made(system: System) -> team_cores._Team:
        monkeypatch.setattr(team_cores._Calls, "made", staticmethod(lambda: system))
        monkeypatch.setattr(team_cores.os.path, "exists", lambda _: True)
        monkeypatch.setattr(team_cores._Releasing, "watch", lambda _: None)
        return team_cores._Team()

    return made


def test_the_others_are_kept_off_the_core_of_the_caller_wherever_that_goes(team) -> None:
    system = System({7: 0b1111, 8: 0b1111, 9: 0b1111})
    threads = team(system)
    threads.part(0.0, lambda: [7, 8, 9])
    assert system.masks == {7: 0b1111, 8: 0b1110, 9: 0b1110}
    system.at = 2
    threads.part(0.1)
    assert system.masks == {7: 0b1111, 8: 0b1011, 9: 0b1011}
    threads.release()
    assert system.masks == {7: 0b1111, 8: 0b1111, 9: 0b1111}


def test_known_threads_are_kept_off_before_they_are_woken(team) -> None:
    system = System({7: 0b1111, 8: 0b1111})
    threads, seen = team(system), []

    def members() -> list[int]:
        seen.append(system.masks[8])
        return [7, 8]

    threads.part(0.0, members)
    threads.release()
    threads.part(1.0, members)
    assert seen == [0b1111, 0b1110]


def test_threads_that_are_bound_or_have_no_other_core_are_left_alone(team) -> None:
    masks = {7: 0b1111, 8: 0b0001, 9: 0b0100, 10: 0b0011}
    system = System(masks)
    threads = team(system)
    threads.part(0.0, lambda: list(masks))
    assert system.masks == {**masks, 10: 0b0010}
    threads.release()
    assert system.masks == masks


def test_where_somebody_has_put_a_thread_meanwhile_it_stays(team) -> None:
    system = System({7: 0b1111, 8: 0b1111})
    threads = team(system)
    threads.part(0.0, lambda: [7, 8])
    system.masks[8] = 0b1000
    threads.release()
    assert system.masks[8] == 0b1000


def test_a_team_that_has_changed_is_known_again(team) -> None:
    system = System({7: 0b1111, 8: 0b1111, 9: 0b1111})
    threads = team(system)
    threads.part(0.0, lambda: [7, 8])
    del system.masks[8]
    threads.part(1.0, lambda: [7, 9])
    assert system.masks == {7: 0b1111, 9: 0b1110}


def test_large_teams_are_left_alone(team) -> None:
    system = System(dict.fromkeys(range(7, 20), 0b1111))
    team(system).part(0.0, lambda: list(range(7, 20)))
    assert set(system.masks.values()) == {0b1111}


def test_a_look_is_due_every_millisecond_and_a_rest_wakes_the_team(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[float, bool]] = []

    class Team:
        is_known = True

        def part(self, now: float, members: object = None) -> None:
            calls.append((now, members is not None))

    monkeypatch.setattr(team_cores, "_team_of_this_thread", Team)
    monkeypatch.setattr(team_cores, "team_members", lambda: list)
    monkeypatch.setattr(process, "_is_tuned", True)
    part = team_cores.Parting()
    for now in (1.0, 1.002, 1.004, 1.1):
        assert now > part.due
        part(now)
        assert now < part.due < now + 0.01
    assert calls == [(1.002, False), (1.004, False), (1.1, True)]
    monkeypatch.setattr(process, "_is_tuned", False)
    part(2.0)
    assert len(calls) == 3


def test_who_is_in_a_team_is_asked_at_the_first_look(team, monkeypatch: pytest.MonkeyPatch) -> None:
    system = System({7: 0b1111, 8: 0b1111})
    threads = team(system)
    monkeypatch.setattr(team_cores, "_team_of_this_thread", lambda: threads)
    monkeypatch.setattr(team_cores, "team_members", lambda: lambda: [7, 8])
    monkeypatch.setattr(process, "_is_tuned", True)
    part = team_cores.Parting()
    part(1.0)
    assert not threads.is_known
    part(1.002)
    assert threads.is_known and system.masks == {7: 0b1111, 8: 0b1110}


def test_the_first_living_thread_that_asks_has_the_team(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team_cores, "_first", None)
    answers: list[bool] = []

    def asks(*threads: threading.Thread) -> threading.Thread:
        def ask() -> None:
            answers.append(team_cores.has_the_team())
            for each in threads:
                each.start()
                each.join()
            answers.append(team_cores.has_the_team())

        return threading.Thread(target=ask)

    for thread in (asks(asks(), asks()), asks()):
        thread.start()
        thread.join()
    assert answers == [True, False, False, False, False, True, True, True]


IS_HERE = host.has("GOMP_parallel") and host.has("gettid") and limit() is not None
FEW_CORES = not team_cores.is_possible() or len(os.sched_getaffinity(0)) < 2


@pytest.mark.skipif(not IS_HERE or FEW_CORES, reason="no team of GNU's OpenMP on several cores of Linux")
def test_a_real_team_is_parted_and_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team_cores, "_RELEASED", 0.05)
    found: list[object] = []

    def work() -> None:  # in a thread of its own, whose number of threads nobody else sees
        limit()(2)
        members, threads = TeamMembers(), team_cores._Team()
        _, other = members()
        before = os.sched_getaffinity(other)
        threads.part(team_cores.clock(), members)
        (kept,) = threads._kept
        during = os.sched_getaffinity(other)
        end = time.monotonic() + 20
        while os.sched_getaffinity(other) != before and time.monotonic() < end:
            time.sleep(0.01)
        found.extend([kept.thread == other, before - during, os.sched_getaffinity(other) == before])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0] and len(found[1]) == 1 and found[2]


@pytest.mark.skipif(not team_cores.is_possible(), reason="another system, or one core")
@pytest.mark.parametrize(("units", "threads", "expected"), [(512, 0, 1), (512, 1, 0), (2, 0, 0), (10, 0, 0)])
def test_only_steps_that_start_a_team_ask(monkeypatch, units: int, threads: int, expected: int) -> None:
    made: list[object] = []

    class Parting(team_cores.Parting):
        def __call__(self, now: float) -> None:
            made.append(now)

    monkeypatch.setattr(team_cores, "Parting", Parting)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [128, units])
        y = tf.matmul(x, tf.ones([units, units]))
        config = tf.ConfigProto(intra_op_parallelism_threads=threads)
        with tf.Session(config=config) as session:
            value = session.run(y, {x: np.ones([128, units])})
            session.run(y, {x: np.ones([128, units])})
    assert np.all(value == units) and len(made) == 2 * expected


def test_flags_say_that_the_process_is_left_alone() -> None:
    assert process.is_tuned() is flags.TUNE_PROCESS
