"""The text of counting functions."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.arrays import count_code
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")


@pytest.mark.parametrize("team", [False, True])
@pytest.mark.parametrize(("dtype", "lanes"), [("float32", 8), ("float64", 4), ("int32", 8), ("int64", 4)])
def test_the_text_of_bins_is_valid(monkeypatch, team, dtype, lanes) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = count_code.bins_code(dtype, lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == {"bins"}


@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("how", ["counted", "weighed", "marked"])
def test_the_text_of_groups_is_valid(rank, how) -> None:
    assert shown_functions(count_code.groups_code("int32", "float64", rank, how)) == {"groups"}
