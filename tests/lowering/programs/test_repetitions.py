"""Where sequences repeat themselves, and pieces that are equal there."""

from __future__ import annotations

import random

import pytest

from flowstone.lowering.programs.repetitions import ends, sections


def pieces(keys: str, most: int, alike: int = 2) -> list[str]:
    found = ends(keys, [1] * len(keys), most, alike)
    return [keys[start:end] for start, end in zip([0, *found], found)]


def test_sections() -> None:
    assert sections("abcdef", 2) == []
    assert sections("abababab", 2) == [(0, 8, 2)]
    assert sections("xxabcabcabcyyyabdabdabdz", 3) == [(2, 11, 3), (14, 23, 3)]
    assert sections("", 2) == sections("a", 2) == []


def test_pieces_of_a_repetition_are_equal() -> None:
    assert pieces("xyabcabcabcabcq", 3) == ["xy", "abc", "abc", "abc", "abc", "q"]
    assert pieces("xyabcabcabcabcq", 8) == ["xy", "abcabc", "abcabc", "q"]
    assert pieces("abcdefabcdefabcdef", 4) == ["abcd", "ef"] * 3


def test_two_repetitions_are_cut_into_as_many_layers() -> None:
    """What one hands to the other then lies at the same place of every pack."""
    found = pieces("ab" * 9 + "-" + "vwxyz" * 9, 11)
    assert found == ["abab"] * 4 + ["ab", "-"] + ["vwxyzvwxyz"] * 4 + ["vwxyz"]


def test_a_repetition_that_weighs_nothing_is_one_piece() -> None:
    """Reshapes of an unrolled network have no statements."""
    assert ends("abababab", [0] * 8, 4, 2) == [8]


@pytest.mark.parametrize("seed", range(20))
def test_pieces_are_all_of_it_and_not_too_heavy(seed: int) -> None:
    draw = random.Random(seed)
    keys: list[int] = []
    while len(keys) < 300:
        keys += [draw.randrange(3) for _ in range(draw.randrange(1, 30))] * draw.choice([1, 1, 9])
    weights = [draw.choice([0, 1, 1, 5, 30]) for _ in keys]
    most = draw.choice([20, 60, 10_000])
    found = ends(keys, weights, most, 4)
    assert found == sorted(set(found)) and found[-1] == len(keys)
    for start, end in zip([0, *found], found):
        assert sum(weights[start:end]) <= max(most, max(weights[start:end]))
