"""The ids of a team's threads: those of this process, the caller's first, each once."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import torch

from code_texts import shown_functions
from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.codegen.team_members import TeamMembers, members_code, team_members
from flowstone.runtime.process.threads import limit

pytestmark = pytest.mark.skipif(
    not host.has("GOMP_parallel") or not host.has("gettid") or limit() is None,
    reason="no team of GNU's OpenMP",
)


def test_the_text_is_valid() -> None:
    assert shown_functions(members_code()) == {"gather"}


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_team_says_who_is_in_it(count: int) -> None:
    found: list[list[int]] = []

    def work() -> None:  # in a thread of its own, whose number of threads nobody else sees
        torch.get_num_threads()
        limit()(count)
        members = TeamMembers()
        found.append([threading.get_native_id()])
        found.extend([members(), members()])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    (own,), first, again = found
    assert first == again and first[0] == own and len(set(first)) == count


def test_they_are_threads_of_this_process() -> None:
    tasks = {int(path.name) for path in Path("/proc/self/task").iterdir()}
    members = TeamMembers()()
    assert members[0] == os.getpid() or members[0] in tasks
    assert set(members) <= {int(path.name) for path in Path("/proc/self/task").iterdir()}


def test_nobody_is_asked_without_the_native_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert team_members() is None
    monkeypatch.setattr(flags, "NATIVE", 2)
    assert isinstance(team_members(), TeamMembers)
