"""The text of passes of quantisation: a module for all types and widths, with and without a team."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.arrays import step_code
from flowstone.native.codegen import host

TEXTS = {
    "float": lambda lanes: step_code.float_code(lanes),
    "u8": lambda lanes: step_code.integer_code("i8", False, lanes),
    "i32": lambda lanes: step_code.integer_code("i32", True, lanes),
    "i16": lambda lanes: step_code.integer_code("i16", True, lanes),
}


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_functions(monkeypatch, lanes: int, name: str, team: bool) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = TEXTS[name](lanes)
    assert ("GOMP_parallel" in text) == team
    shown = shown_functions(text)
    of_floats = {"round", "round_range", "round_rows", "masked", "passed_range", "passed_rows"}
    of_floats |= {"scaled_even", "scaled_up"}
    assert shown == (of_floats if name == "float" else set(step_code.PLACES) - of_floats - {"requantize"})


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("old", [("i8", False), ("i16", True), ("i32", True)])
@pytest.mark.parametrize("new", ["i8", "i16", "i32"])
def test_so_is_that_between_two_types(lanes: int, old: tuple[str, bool], new: str) -> None:
    assert shown_functions(step_code.requantization_code(old, new, lanes)) == {"requantize"}
