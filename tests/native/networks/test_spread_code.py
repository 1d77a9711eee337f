"""The text of convolutions with few results a position: valid, with and without a team."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.codegen import host
from flowstone.native.networks.spread_code import PLACES, spread_code


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_function(monkeypatch, lanes: int, team: bool) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = spread_code(lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == set(PLACES)
