"""The text of gamma and Poisson values: a module with and without a team, and streams of Philox's words."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.codegen import host
from flowstone.native.randomness.rejection_code import PLACES, rejection_code


@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_functions(monkeypatch, team: bool) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = rejection_code()
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == set(PLACES)
