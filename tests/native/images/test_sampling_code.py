"""The text of crops: a module for all types, methods and widths of vectors, with and without a team."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.codegen import host
from flowstone.native.images import sampling_code


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int64"])
@pytest.mark.parametrize("nearest", [False, True])
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_functions(monkeypatch, lanes, dtype, nearest, team) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = sampling_code.crop_code(dtype, nearest, lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == set(sampling_code.PLACES)
