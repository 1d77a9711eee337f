"""The text of the choice of boxes: a module for all widths of vectors."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.codegen import host
from flowstone.native.images import choice_code


@pytest.mark.parametrize("softly", [False, True])
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_the_text_is_valid_and_has_its_function(monkeypatch, lanes: int, softly: bool) -> None:
    monkeypatch.setattr(host, "lanes", lambda: lanes)
    text = choice_code.choice_code(softly, lanes)
    assert shown_functions(text) == ({"choose_softly"} if softly else {"choose", "choose_each"})
