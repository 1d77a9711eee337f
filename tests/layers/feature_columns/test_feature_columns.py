"""Programs of feature columns give what TensorFlow 1.15.5 gives; `make_feature_column_goldens.py` asks it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.layers.feature_columns import column_errors, column_programs

import flowstone as tf

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "layers" / "feature_columns.json").read_text(encoding="utf-8")
)


def close(found: Any, expected: Any) -> bool:
    if isinstance(expected, float) or isinstance(found, float):
        return bool(found == pytest.approx(expected, rel=1e-4, abs=2e-4))
    if isinstance(expected, list) and isinstance(found, list):
        return len(found) == len(expected) and all(close(a, b) for a, b in zip(found, expected))
    return bool(found == expected)


@pytest.mark.parametrize("name", column_programs.PROGRAMS)
def test_program_is_tensorflows(name: str, tmp_path: Path) -> None:
    found, expected = column_programs.run(tf, name, tmp_path), GOLDEN[name]
    for what in ("variables", "collections", "tables"):
        assert found[what] == expected[what]
    assert len(found["values"]) == len(expected["values"])
    for value, wanted in zip(found["values"], expected["values"]):
        assert close(value, wanted), (value, wanted)


def as_compared(error: list[str]) -> list[str]:
    """The error's class and what stands before a column's class, whose module has another name."""
    return [error[0], error[1].partition("<class")[0].strip()]


def test_errors_are_tensorflows(tmp_path: Path) -> None:
    found = column_errors.run(tf, tmp_path)
    different = {
        name: (found[name], expected)
        for name, expected in GOLDEN["errors"].items()
        if as_compared(found[name]) != as_compared(expected)
    }
    assert set(found) == set(GOLDEN["errors"])
    assert not different
