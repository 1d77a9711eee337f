"""The text of a step of LSTM cells: a module for every width of vectors, with and without a team."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.codegen import host
from flowstone.native.networks import lstm_code


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_functions(monkeypatch, lanes, team) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = lstm_code.lstm_code(lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == set(lstm_code.PLACES)
