"""`benchmarks/cluster_scaling.py`: a row for each number of workers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_steps_are_measured_and_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import cluster_scaling

    try:
        rows = cluster_scaling.table([1], [1, 30], seconds=0.01).splitlines()[2:]
    finally:
        sys.modules.pop("cluster_scaling", None)
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert [row[:2] for row in cells] == [
        ["1", "measured"], ["1", "simulated master"], ["30", "simulated master"],
    ]  # fmt: skip
    assert all(float(row[2]) > 0 for row in cells)
