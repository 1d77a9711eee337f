"""Times, sizes and names as text."""

from __future__ import annotations

import doctest

import pytest

from flowstone.runtime import quantities
from flowstone.runtime.quantities import WIDTH, aligned, bytes_text, clipped, listed, time_text


def test_examples() -> None:
    assert doctest.testmod(quantities).failed == 0


@pytest.mark.parametrize(
    ("ms", "text"), [(0.0, "0.0 us"), (0.9, "900.0 us"), (1, "1.00 ms"), (100, "100.0 ms"), (1000, "1.00 s")]
)
def test_times(ms: float, text: str) -> None:
    assert time_text(ms) == text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (2e6, "2.0 MB"), (3e9, "3.0 GB")]
)
def test_sizes(size: int, text: str) -> None:
    assert bytes_text(size) == text


def test_names_that_do_not_fit_are_counted() -> None:
    names = [f"name{i}" for i in range(40)]
    text = listed("of ", names)
    shown = text.count("name")
    assert len(text) <= WIDTH and text.endswith(f"… ({40 - shown} more)")
    assert len(listed("of ", ["x" * 200, "y"])) == WIDTH
    assert clipped("abcd", 4) == "abcd" and clipped("abcde", 4) == "abc…"


def test_columns() -> None:
    assert aligned([["a", "1"], ["bcd", "10"]], 1) == ["  a     1", "  bcd  10"]
