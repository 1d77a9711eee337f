"""The text of drawn boxes: a module for widths of vectors and counts of channels, with and without a team."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.codegen import host
from flowstone.native.images import drawing_code


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_function(monkeypatch, lanes: int, channels: int, team: bool) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = drawing_code.drawing_code("i16", channels, lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == set(drawing_code.PLACES)
