"""The text of incomplete functions and zeta: a module for all widths of vectors, with and without a team."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.codegen import host
from flowstone.native.numerics import incomplete_function_code


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_function(monkeypatch, lanes: int, team: bool) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    monkeypatch.setattr(host, "lanes", lambda: 2 * lanes)
    text = incomplete_function_code.incomplete_function_code(lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == set(incomplete_function_code.PLACES)
