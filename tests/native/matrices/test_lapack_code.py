"""The text that calls LAPACK: valid for every function, with and without a team."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.codegen import host
from flowstone.native.matrices import lapack_code


@pytest.mark.parametrize("name", lapack_code.ARGUMENTS)
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_function(monkeypatch, name, team) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = lapack_code.lapack_code(name)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == {name}


def test_a_call_has_steps_for_all_arguments() -> None:
    for names in lapack_code.ARGUMENTS.values():
        assert len(names.split()) <= lapack_code.MOST
        assert len(set(names.split())) == len(names.split())
