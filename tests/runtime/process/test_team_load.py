"""A team whose threads wait for cores is left to rest, and tried again after longer and longer pauses."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from flowstone.native.codegen import host, parts
from flowstone.runtime.process import team_load
from flowstone.runtime.process.team_load import Load


class Waits:
    """How long threads have waited, by their ids: always so much of the time."""

    def __init__(self) -> None:
        self.parts: dict[int, float] = {}
        self.now = 0.0

    def __call__(self, thread: int) -> float:
        return self.parts[thread] * self.now


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    made = Waits()
    monkeypatch.setattr(team_load, "_waited_s", made)
    monkeypatch.setattr(host, "ALONE", type(host.ALONE)(0))
    monkeypatch.setattr(parts, "_asked", set())
    return made


def looked(load: Load, waits: Waits, start: float, end: float) -> list[float]:
    """The times, in ms, at which the caller begins and ends to work alone."""
    changes: list[float] = []
    for ms in range(int(start), int(end)):
        waits.now = ms / 1000
        before = load.is_alone
        load.look(waits.now, list(waits.parts))
        if load.is_alone != before:
            changes.append(ms)
        assert bool(host.ALONE.value) == load.is_alone
    return changes


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([0.1], False), ([0.4], True), ([0.4, 0.0], False), ([0.6, 0.0], True), ([0.6, 0.6, 0.6], False),
        ([0.7, 0.1, 0.0], True), ([], False),
    ],
)  # fmt: skip
def test_it_rests_if_its_caller_alone_is_faster(waits: Waits, parts: list[float], expected: bool) -> None:
    waits.parts = dict(enumerate(parts, 7))
    assert bool(looked(load := Load(), waits, 100, 220)) == expected == load.is_alone


def test_it_is_tried_again_after_longer_and_longer_pauses(waits: Waits) -> None:
    waits.parts = {7: 0.5}
    changes = looked(Load(), waits, 100, 8000)
    pauses = [end - start for start, end in zip(changes[::2], changes[1::2])]
    assert pauses[:7] == pytest.approx([100, 200, 400, 800, 1600, 1600, 1600], abs=1)
    tries = [start - end for end, start in zip(changes[1::2], changes[2::2])]
    assert tries == pytest.approx([50] * len(tries), abs=1)


def test_a_good_try_is_the_end_of_it(waits: Waits) -> None:
    waits.parts = {7: 0.5}
    load = Load()
    assert len(looked(load, waits, 100, 400)) == 3
    waits.parts = {7: 0.0}
    looked(load, waits, 700, 3000)
    assert not load.is_alone
    waits.parts = {7: 0.5}
    changes = looked(load, waits, 3000, 3500)
    assert changes[1] - changes[0] == pytest.approx(100, abs=1)


def test_one_wait_is_no_reason(waits: Waits) -> None:
    """Half of the windows, but no two in a row."""
    load = Load()
    for start in range(100, 2000, 100):
        waits.parts = {7: 0.9}
        looked(load, waits, start, start + 50)
        waits.parts = {7: 0.9 * (start + 50) / (start + 100)}  # no more until the end of this window
        assert not looked(load, waits, start + 50, start + 100)


def test_one_team_that_rests_is_enough_and_nobody_looks_for_ever(waits: Waits) -> None:
    waits.parts = {7: 0.5}
    one, other = Load(), Load()
    looked(one, waits, 100, 220)
    other.release()
    assert one.is_alone and host.ALONE.value
    one.release()
    assert not one.is_alone and not host.ALONE.value


def test_other_threads_are_no_measure(waits: Waits) -> None:
    waits.parts = {7: 0.5}
    load = Load()
    waits.now = 0.1
    load.look(0.1, [7])
    waits.parts, waits.now = {8: 0.9}, 0.2
    load.look(0.2, [8])
    assert not load.is_alone


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_child_has_no_teams(waits: Waits) -> None:
    waits.parts = {7: 0.5}
    looked(Load(), waits, 100, 220)
    child = os.fork()
    if not child:
        os._exit(int(host.ALONE.value != 0 or bool(parts._asked)))
    assert os.waitpid(child, 0)[1] == 0 and host.ALONE.value


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux says so")
def test_what_the_system_tells() -> None:
    assert 0 <= team_load._waited_s(threading.get_native_id()) < 1e6
    assert team_load._waited_s(1 << 30) == 0.0
