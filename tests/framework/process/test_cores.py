"""How many cores the process may use."""

from __future__ import annotations

import os

import pytest

from flowstone.framework.process.cores import usable_cores


def test_cores_of_the_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 5, 7}, raising=False)
    assert usable_cores() == 3


@pytest.mark.parametrize("told, expected", [(6, 6), (None, 1)])
def test_cores_of_a_system_without_affinities(
    told: int | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: told)
    assert usable_cores() == expected
