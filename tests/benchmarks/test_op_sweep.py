"""The page of the sweep of ops: how many are within a ratio, the slowest, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def op_sweep(monkeypatch: pytest.MonkeyPatch) -> Any:
    benchmarks = Path(__file__).parents[2] / "benchmarks"
    monkeypatch.syspath_prepend(str(benchmarks))
    monkeypatch.syspath_prepend(str(benchmarks / "workloads"))
    import op_sweep

    return op_sweep


def line(ours: float, theirs: float) -> dict[str, Any]:
    return {"way": 0, "seconds": {"flowstone": ours, "tensorflow": theirs}}


def test_the_page_counts_names_and_explains(op_sweep: Any) -> None:
    lines = {"Add": line(1e-3, 2e-3), "IFFT2D": line(4e-3, 2e-3), "Odd": line(9e-3, 3e-3)}
    page = op_sweep.report(lines | {"Left": {"faults": ["no"]}}, 1_000_000)
    assert "Of 3 ops that a peer has, 1 within 1 x, 1 within 1.5 x, 2 within 2 x, 3 within 3 x" in page
    assert [row.split(" | ")[0] for row in page.splitlines() if row.startswith("| ")][2:] == [
        "| Odd",
        "| IFFT2D",
        "| Add",
    ]
    assert f"- `IFFT2D`: {op_sweep.REASONS['FFT2D']}" in page
    assert "- `Odd`: Not looked into." in page and "`Add`" not in page
    assert "do not grow together: Left." in page


def test_nothing_is_explained_where_nothing_is_slow(op_sweep: Any) -> None:
    assert "x on:" not in op_sweep.report({"Add": line(1e-3, 2e-3)}, 1_000_000)
