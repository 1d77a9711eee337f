"""The text of changes of colours: a module for all widths, with and without a team."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.codegen import host
from flowstone.native.images import colour_code


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_functions(monkeypatch, lanes: int, team: bool) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = colour_code.colour_code(lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == set(colour_code.PLACES)
