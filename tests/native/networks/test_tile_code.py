"""The text of convolutions in tiles: that it is a module of LLVM's for every width of vectors."""

from __future__ import annotations

import pytest
from llvmlite import binding as llvm

from flowstone.native.codegen import host
from flowstone.native.networks import tile_code

LANES = (4, 8, 16)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("taps", [2, 3, 4, 5])
def test_the_text_is_valid_and_has_its_functions(lanes, taps) -> None:
    module = llvm.parse_assembly(tile_code.tile_code(taps, lanes))
    module.verify()
    defined = {each.name for each in module.functions if not each.is_declaration}
    shown = {each.name for each in module.functions if each.linkage == llvm.Linkage.external} & defined
    assert shown == set(tile_code.ENTRIES) == set(tile_code.PLACES)


@pytest.mark.parametrize("lanes", LANES)
def test_products_fill_the_registers(lanes) -> None:
    registers = 32 if lanes == 16 else 16
    for vectors, rows in tile_code.row_counts(lanes).items():
        assert registers // 2 < vectors * (rows + 1) + 1 <= registers


def test_without_a_team_one_thread_does_it_all(monkeypatch) -> None:
    monkeypatch.setattr(host, "has", lambda name: False)
    text = tile_code.tile_code(3, 8)
    assert "GOMP" not in text and "omp_get" not in text
    llvm.parse_assembly(text).verify()
