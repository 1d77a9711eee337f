"""Strings cut, split and mapped by machine code are those of Python."""

from __future__ import annotations

import random

import numpy as np
import pytest

from flowstone.native.strings.text_pieces import TextPieces


@pytest.fixture(scope="module")
def code() -> TextPieces:
    return TextPieces()


def strings() -> list[bytes]:
    draw = random.Random(1)
    return [bytes(draw.choices(b"ab,; \0\xff", k=n)) for n in range(60) for _ in range(5)]


@pytest.mark.parametrize("make", [list, lambda texts: np.array(texts, object)])
def test_parts(code, make):
    draw, texts = random.Random(2), strings()
    starts = np.array([draw.randint(-len(each), len(each)) for each in texts])
    sizes = np.array([draw.choice([-1, 0, 1, 5, 100, 2**62]) for _ in texts])
    expected = [
        each[start or 0 :][: None if size < 0 else size]
        for each, start, size in zip(texts, starts.tolist(), sizes.tolist())
    ]
    assert code.parts(make(texts), starts, sizes).tolist() == expected


def test_parts_of_characters(code):
    draw = random.Random(3)
    texts = ["".join(draw.choices("aä€𝄞", k=n)).encode() for n in range(40) for _ in range(5)]
    whole = [each.decode() for each in texts]
    starts = np.array([draw.randint(-len(each), len(each)) for each in whole])
    sizes = np.array([draw.choice([0, 1, 5, 100, 2**62, *([-1] if start >= 0 else [])]) for start in starts])
    expected = [
        each[start:][: max(size, 0)] if start else each[: max(size, 0)]
        for each, start, size in zip(whole, starts.tolist(), sizes.tolist())
    ]
    found = code.parts(texts, starts, sizes, in_bytes=False)
    assert [each.decode() for each in found] == expected
    assert code.parts([b"\x80\x80a"], np.array([1]), np.array([1]), in_bytes=False).tolist() == [b"a"]
    for start, size in ((2, 1), (-2, 1), (-1, -1)):
        assert code.parts(["ä".encode()], np.array([start]), np.array([size]), in_bytes=False) is None


@pytest.mark.parametrize("start", [4, -4, 2**62, -(2**63)])
def test_starts_beyond_a_string(code, start):
    assert code.parts([b"abc", b"abc"], np.array([0, start]), np.array([1, 1])) is None


def test_mapped(code):
    table = bytes(range(256)).upper()
    assert code.mapped(strings(), table).tolist() == [each.upper() for each in strings()]


@pytest.mark.parametrize("delimiters", [b",", b",; ", b"\0", b"\0,"])
@pytest.mark.parametrize("skip_empty", [True, False])
def test_split(code, delimiters, skip_empty):
    expected = []
    for each in strings():
        for one in delimiters[1:]:
            each = each.replace(bytes([one]), delimiters[:1])
        expected.append(
            [part for part in each.split(delimiters[:1]) if part or not skip_empty] if each else []
        )
    parts, counts = code.split(strings(), delimiters, skip_empty)
    assert counts.tolist() == list(map(len, expected))
    assert parts.tolist() == [part for row in expected for part in row]


def test_nothing_and_what_is_no_bytes(code):
    none = np.empty(0, np.int64)
    assert code.parts([], none, none).shape == code.mapped([], bytes(256)).shape == (0,)
    assert code.mapped(["a"], bytes(256)) is None
    assert code.split([b"a", 1], b",", True) is None
    assert code.parts(np.array([None], object), np.array([0]), np.array([1])) is None
