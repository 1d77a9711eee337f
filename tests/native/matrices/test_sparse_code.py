"""The text of sparse products: a module for all types and widths of vectors, with and without a team."""

from __future__ import annotations

import pytest
import torch

from code_texts import shown_functions
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.matrices import sparse_code


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("types", [("float32", "int64"), ("float64", "int32")])
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_function(monkeypatch, lanes, types, team) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = sparse_code.product_code(*types, lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == set(sparse_code.PLACES)


@pytest.mark.parametrize(
    ("rows", "notes"), [([0, 0, 2, 2], [-1, -1]), ([0, 2, 1, 2], [-1, 2]), ([0, 1, 9, 2], [2, -1])]
)
def test_what_is_wrong_is_noted(rows: list[int], notes: list[int]) -> None:
    """The place of a row that falls, and of an element that is out of bounds."""
    library = CodeLibrary(
        lambda: sparse_code.product_code("float32", "int64", 4), sparse_code.WORDS, sparse_code.PLACES
    )
    found = torch.full((2,), -1)
    tensors = {
        "indices": torch.tensor([[row, 0] for row in rows]), "values": torch.ones(4),
        "dense": torch.ones(1, 1), "result": torch.zeros(3, 1), "notes": found,
    }  # fmt: skip
    words = {"threads": 1, "count": 4, "height": 3, "inner": 1, "columns": 1, "row": 0, "column": 1}
    library.call("multiply", words, tensors)
    assert found.tolist() == notes
