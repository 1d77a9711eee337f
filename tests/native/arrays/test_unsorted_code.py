"""The text of reductions of rows in any order, for all types and reductions, with and without a team."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.arrays import unsorted_code
from flowstone.native.codegen import host


@pytest.mark.parametrize("lanes", [2, 8, 16])
@pytest.mark.parametrize(
    "types", [("float16", "int64"), ("float32", "int64"), ("float64", "int32"), ("uint8", "int32")]
)
@pytest.mark.parametrize("how", unsorted_code.REDUCTIONS)
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_function(monkeypatch, lanes, types, how, team) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = unsorted_code.unsorted_code(how, *types, lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == {"reduce"}
    for with_absent in (False, True) if how == "sum" else ():
        text = unsorted_code.unsorted_code(how, *types, lanes, "int32", with_absent)
        assert shown_functions(text) == {"pick"}
