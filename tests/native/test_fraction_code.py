"""The text of the continued fraction: a module for all widths of vectors, with and without a team."""

from __future__ import annotations

import pytest

from flowstone.native import compiler, fraction_code, host


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_function(monkeypatch, lanes: int, team: bool) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = fraction_code.fraction_code(lanes)
    assert ("GOMP_parallel" in text) == team
    llvm = compiler._llvm()
    module = llvm.parse_assembly(text)
    module.verify()
    defined = {each.name for each in module.functions if not each.is_declaration}
    shown = {each.name for each in module.functions if each.linkage == llvm.Linkage.external} & defined
    assert shown == set(fraction_code.PLACES)
