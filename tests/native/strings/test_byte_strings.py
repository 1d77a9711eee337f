"""Strings read and made by machine code are those that Python would read and make, of any length."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest

from flowstone.framework import flags
from flowstone.framework.machine import string_code
from flowstone.native import offers
from flowstone.native.strings.byte_strings import StringCode

LENGTHS = (0, 1, 2, 7, 8, 15, 16, 31, 100, 5000)


@pytest.fixture(scope="module")
def code() -> StringCode:
    return StringCode()


def strings(count: int) -> list[bytes]:
    draw = random.Random(count)
    return [draw.randbytes(draw.choice(LENGTHS)) for _ in range(count)]


@pytest.mark.parametrize("count", [0, 1, 2, 300])
def test_strings_are_packed_with_a_zero_between(code, count):
    given = strings(count)
    packed = code.packed(given, 8)
    assert packed is not None
    buffer, starts, lengths = packed
    assert buffer.tobytes() == b"\0".join(given) + bytes(8)
    assert lengths.tolist() == [len(each) for each in given]
    assert [buffer[a : a + n].tobytes() for a, n in zip(starts, lengths)] == given


def test_what_is_no_bytes_is_not_packed(code):
    for strange in ("text", None, 3, np.bytes_(b"x")):
        assert code.packed([b"a", strange, b"b"], 8) is None
        assert code.lengths([strange]) is None


@pytest.mark.parametrize("count", [0, 1, 300])
def test_pieces_are_bytes_of_their_own(code, count):
    given = strings(count)
    buffer, starts, lengths = code.packed(given, 8)
    found = code.pieces(buffer, starts, lengths)
    assert found.dtype == object and found.tolist() == given
    buffer[:] = 1
    assert found.tolist() == given


def test_pieces_are_counted_once(code):
    buffer = np.frombuffer(b"some longer text", np.uint8)
    found = code.pieces(buffer, np.array([0, 5]), np.array([4, 6]))
    assert found.tolist() == [b"some", b"longer"]
    by_python = np.array([b"%d longer" % len(found), b"%d texts" % len(found)], object)
    assert [sys.getrefcount(each) for each in found] == [sys.getrefcount(each) for each in by_python]


def test_pieces_of_other_layouts(code):
    buffer = np.frombuffer(b"abcdefgh", np.uint8)
    starts, lengths = np.arange(8, dtype=np.int32)[::2], np.array([2, 1, 2, 1], np.int16)
    assert code.pieces(buffer, starts, lengths).tolist() == [b"ab", b"c", b"ef", b"g"]


def test_kernels_are_offered_it_where_there_is_a_native_tier(monkeypatch):
    offers.offer_all()
    monkeypatch.setattr(flags, "NATIVE", 2)
    assert isinstance(string_code.byte_strings(), StringCode)
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert string_code.byte_strings() is None
