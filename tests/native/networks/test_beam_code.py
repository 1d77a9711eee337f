"""The text of prefix beam search."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.codegen import host
from flowstone.native.networks import beam_code


@pytest.mark.parametrize("team", [False, True])
@pytest.mark.parametrize(("dtype", "lanes"), [("float32", 16), ("float64", 4)])
def test_the_text_is_valid(monkeypatch, team, dtype, lanes) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    monkeypatch.setattr(host, "lanes", lambda: lanes if dtype == "float32" else 2 * lanes)
    text = beam_code.beams_code(dtype, lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == {"search"}
