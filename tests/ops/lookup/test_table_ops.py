"""Programs with look-up tables give what TensorFlow's do, and fail as they do."""

from __future__ import annotations

import json
import pathlib

import pytest

import flowstone as tf
import table_programs
from flowstone.framework.operation import F

GOLDEN = json.loads((pathlib.Path(__file__).parents[2] / "golden" / "lookup" / "programs.json").read_text())
OTHER_WORDS = {"Read less bytes than requested": "Finished reading 0 of lines"}


@pytest.mark.parametrize("name", sorted(table_programs.PROGRAMS))
def test_programs(name: str, tmp_path: pathlib.Path) -> None:
    table_programs.write_files(tmp_path)
    outcomes = table_programs.evaluate(tf, F, name, tmp_path)
    assert [outcome[:2] for outcome in outcomes if outcome[0] != "gives"] == [
        outcome[:2] for outcome in GOLDEN[name] if outcome[0] != "gives"
    ]
    for step, (outcome, expected) in enumerate(zip(outcomes, GOLDEN[name], strict=True)):
        if expected[0] == "gives":
            assert outcome == expected, step
        else:
            message = expected[2].replace("FOLDER", str(tmp_path))
            assert _words(OTHER_WORDS.get(message, message)) <= _words(outcome[2]), (step, outcome)


def _words(message: str) -> set[str]:
    """The words of a message, but for the names that tables without one are given."""
    return {word for word in message.split() if not word.startswith("_")}
