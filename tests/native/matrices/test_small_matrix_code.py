"""The text of elimination for small matrices: a module for all types and widths, with and without a team."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.codegen import host
from flowstone.native.matrices import small_matrix_code


@pytest.mark.parametrize(
    ("dtype", "lanes"), [("float32", 4), ("float32", 16), ("float64", 2), ("float64", 8)]
)
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_functions(monkeypatch, dtype, lanes, team) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = small_matrix_code.small_matrix_code(dtype, lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == set(small_matrix_code.PLACES)
