"""The text of sums of picked rows: a module for all types, reductions and widths, with and without a team."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.arrays import segment_code
from flowstone.native.codegen import host

TYPES = [("float32", "int32", "int64"), ("float64", "int64", "int32"), ("int8", "int32", "int32")]


@pytest.mark.parametrize("lanes", [2, 8, 16])
@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("how", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_functions(monkeypatch, lanes, types, how, team) -> None:
    if how != "sum" and types[0] == "int8":
        pytest.skip("whole numbers have no means")
    monkeypatch.setattr(host, "has", lambda name: team)
    text = segment_code.segment_code(how, types, lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == set(segment_code.PLACES)


@pytest.mark.parametrize("lanes", [2, 8, 16])
@pytest.mark.parametrize(
    "types", [("float16", "int64"), ("float32", "int64"), ("float64", "int32"), ("uint8", "int32")]
)
@pytest.mark.parametrize("how", segment_code.ROWS)
@pytest.mark.parametrize("team", [False, True])
def test_so_is_that_of_all_rows(monkeypatch, lanes, types, how, team) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = segment_code.row_code(how, types, lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == {"gather_up"}
