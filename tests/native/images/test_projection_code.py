"""The text of projective transforms: a module for types, modes and widths of vectors."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.codegen import host
from flowstone.native.images import projection_code


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int64"])
@pytest.mark.parametrize("mode", ["CONSTANT", "REFLECT", "WRAP", "NEAREST"])
@pytest.mark.parametrize("nearest", [False, True])
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_function(monkeypatch, lanes, dtype, mode, nearest, team) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = projection_code.projection_code(dtype, mode, nearest, lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == set(projection_code.PLACES)
