"""Sorted tables, their numbers and keys, and Snappy's compression."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowstone.framework import errors
from flowstone.io.checkpoint_files.encodings import read_varint, slice_key, varint
from flowstone.io.checkpoint_files.slices import TensorSlice
from flowstone.io.checkpoint_files.snappy import decompress
from flowstone.io.checkpoint_files.tables import Table, TableWriter


def written(entries: dict[bytes, bytes]) -> bytes:
    file = io.BytesIO()
    table = TableWriter(file)
    for key in sorted(entries):
        table.add(key, entries[key])
    table.finish()
    return file.getvalue()


def opened(data: bytes) -> Table:
    return Table(lambda offset, size: data[offset : offset + size], len(data), "t")


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.binary(max_size=6), st.binary(max_size=9) | st.just(b"v" * 100_000), max_size=60))
def test_tables(entries: dict[bytes, bytes]) -> None:
    table = opened(written(entries))
    assert list(table) == sorted(entries.items())
    assert all(table.get(key) == value for key, value in entries.items())
    assert table.get(b"not there") is None and table.get(b"\xff" * 9) is None


def test_keys_come_in_order() -> None:
    table = TableWriter(io.BytesIO())
    table.add(b"b", b"")
    for key in (b"a", b"b"):
        with pytest.raises(ValueError, match="comes after"):
            table.add(key, b"")


@settings(max_examples=300)
@given(st.binary(max_size=120), st.integers(0, 48))
def test_any_bytes(data: bytes, tail: int) -> None:
    whole = written({b"a": b"1"})
    try:
        assert len(list(opened(data + whole[len(whole) - tail :]))) < 200
    except errors.DataLossError as error:
        assert error.message.startswith("t; corrupt at")


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3))
def test_numbers(number: int, before: bytes) -> None:
    text = varint(number)
    assert read_varint(before + text + b"\x05", len(before)) == (number, len(before) + len(text))
    with pytest.raises(ValueError, match="no variable-length integer"):
        read_varint(text[:-1], 0)


extents = st.lists(st.tuples(st.integers(0, 2**62), st.integers(-1, 2**62)), min_size=2, max_size=2)


@given(st.lists(extents, min_size=2, max_size=2))
def test_keys_sort_as_places(places: list[list[tuple[int, int]]]) -> None:
    """In the order of starts and lengths, dimension by dimension."""
    first, second = places
    assert (slice_key("v", first) < slice_key("v", second)) == (first < second)


def test_keys_of_tensorflow() -> None:
    # From tests/golden/checkpoints/v2.index.
    key = b"\x00cube\x00\x01\x01\x03\x80\x7f\x80\x83\x83\x81"
    assert slice_key("cube", TensorSlice.parse("-:0,3:3,1").extents) == key


@given(
    st.lists(
        st.tuples(st.binary(min_size=1, max_size=80), st.integers(0, 70), st.integers(1, 30)), max_size=20
    )
)
def test_snappy(steps: list[tuple[bytes, int, int]]) -> None:
    """Bytes as they are, then a copy, again and again."""
    plain, body = bytearray(), bytearray()
    for literal, length, back in steps:
        size = len(literal) - 1
        body += bytes([size << 2]) if size < 60 else bytes([60 << 2, size])
        body += literal
        plain += literal
        back = min(back, len(plain))
        if 4 <= length <= 11:
            body += bytes([(length - 4) << 2 | 1 | (back >> 8) << 5, back & 255])
        elif 1 <= length <= 64:
            body += bytes([(length - 1) << 2 | 2]) + back.to_bytes(2, "little")
        else:
            continue
        for _ in range(length):
            plain.append(plain[-back])
    assert decompress(varint(len(plain)) + bytes(body)) == plain


@settings(max_examples=500)
@given(st.binary(max_size=60))
def test_snappy_of_any_bytes(data: bytes) -> None:
    try:
        assert len(decompress(data)) <= 32 * len(data)
    except ValueError as error:
        assert str(error)


@pytest.mark.parametrize("text", ["1", "1,2,3", "a", "-1,2", "1,0", "1,-1", ":", "-:"])
def test_what_is_no_slice(text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Expected a pair of numbers or '-' but got"):
        TensorSlice.parse(text)


def test_slices() -> None:
    assert TensorSlice.parse("") == TensorSlice.full(0) == TensorSlice(())
    part = TensorSlice.parse("-:1,2")
    assert TensorSlice.from_proto(part.as_proto()) == part
    assert part.as_proto().SerializeToString().hex() == "0a000a0408011002"
    assert TensorSlice.parse("0,2:0,3").is_full((2, 3)) and not part.is_full((2, 3))
    assert part.fits((5, 3)) and not part.fits((5, 2)) and not part.fits((5,))
    assert part.intersection(TensorSlice.parse("-:0,1"), (5, 3)) is None
