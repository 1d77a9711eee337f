"""The text of fractional pooling's gradients: a module for each type, with and without a team."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.codegen import host
from flowstone.native.networks.cut_window_code import PLACES, cut_window_code


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_functions(monkeypatch, dtype: str, team: bool) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = cut_window_code(dtype)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == (set(PLACES) if dtype.startswith("float") else {"to_largest"})
