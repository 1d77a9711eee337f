"""The text of gradients with descents: a module for every width of vectors, with and without a team."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.codegen import host
from flowstone.native.products import descent_code


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_functions(monkeypatch, lanes, team) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = descent_code.descent_code(lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == set(descent_code.PLACES)
