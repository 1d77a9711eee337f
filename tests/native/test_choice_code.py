"""The text of the choice of boxes: a module for all widths of vectors."""

from __future__ import annotations

import pytest

from flowstone.native import choice_code, compiler, host


@pytest.mark.parametrize("softly", [False, True])
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_the_text_is_valid_and_has_its_function(monkeypatch, lanes: int, softly: bool) -> None:
    monkeypatch.setattr(host, "lanes", lambda: lanes)
    text = choice_code.choice_code(softly, lanes)
    llvm = compiler._llvm()
    module = llvm.parse_assembly(text)
    module.verify()
    defined = {each.name for each in module.functions if not each.is_declaration}
    shown = {each.name for each in module.functions if each.linkage == llvm.Linkage.external} & defined
    assert shown == ({"choose_softly"} if softly else {"choose", "choose_each"})
