"""Numbers, sizes, unknown fields and keys are read as protobuf writes them, up to the last byte."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from flowstone.io.checkpoint_files.encodings import varint
from flowstone.native.codegen import compiler
from flowstone.native.codegen.structured import Code
from flowstone.native.records import wire_code

UNUSUAL = -1


def function(write):
    """What `write` reads, as a function of bytes: the result and how many bytes it took, or UNUSUAL."""
    e = Code("read", ["ptr at", "ptr end", "ptr table", "ptr out"], 1, {}, is_public=True)
    with wire_code.unless_unusual(e, "%out") as unusual:
        cursor = e.variable("ptr", "%at")
        e.set("i64", e.at("%out", 1, "i64"), write(e, cursor, "%end", unusual))
        e.set("i64", e.at("%out", 2, "i64"), wire_code.left(e, cursor, "%end"))
    module = compiler.compiled(e.text(), ["read"])
    read = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)(module.address("read"))

    def call(data: bytes, table=None):
        memory = ctypes.create_string_buffer(data, len(data) + 1)
        out = (ctypes.c_int64 * 3)()
        start = ctypes.addressof(memory)
        read(start, start + len(data), 0 if table is None else table.ctypes.data, ctypes.addressof(out))
        _ = module
        return UNUSUAL if out[0] else (out[1], len(data) - out[2])

    return call


NUMBERS = [0, 1, 127, 128, 300, 2**14, 2**28 - 1, 2**35 - 1]


@pytest.mark.parametrize("longest", [5, 10])
def test_numbers(longest):
    read = function(lambda *found: wire_code.number(*found, longest))
    numbers = NUMBERS + [2**35, 2**63, 2**64 - 1] * (longest == 10)
    for each in numbers:
        data = varint(each)
        signed = each - 2**64 if each >= 2**63 else each
        assert read(data) == (signed, len(data))
        assert read(data + b"\x80") == (signed, len(data))
        assert read(data[:-1]) == UNUSUAL
    assert read(b"\x85\x00") == (5, 2)  # longer than it need be
    assert read(b"\x80" * longest + b"\x00") == UNUSUAL
    if longest == 10:
        assert read(b"\xff" * 9 + b"\x02") == UNUSUAL


def test_sizes_are_of_bytes_that_are_there():
    read = function(wire_code.size)
    assert read(b"\x03abc") == (3, 1)
    assert read(b"\x00") == (0, 1)
    for data in (b"\x04abc", b"", b"\xff\xff\xff\xff\x7fabc"):
        assert read(data) == UNUSUAL


def skipped(e, cursor, end, unusual):
    tag = wire_code.number(e, cursor, end, unusual, 5)
    wire_code.skip_field(e, cursor, end, tag, unusual)
    return tag


def test_unknown_fields_are_skipped():
    read = function(skipped)
    for data in (b"\x10\x96\x01", b"\x11" + b"a" * 8, b"\x12\x03abc", b"\x15abcd", b"\xfa\x01\x00"):
        assert read(data + b"z")[1] == len(data)
        assert read(data[:-1]) == UNUSUAL
    for data in (b"\x13\x14", b"\x14", b"\x02\x00", b"\x16", b"\x17", b"\xfa\xff\xff\xff\x7f\x00"):
        assert read(data) == UNUSUAL


KEYS = [b"", b"a", b"b", b"ab", b"abc", b"abd", b"abcd", b"abce", b"abcdefg", b"abcdefgh", b"abcdefghi"]
KEYS += [b"a" * 16, b"a" * 17, b"a" * 8 + b"b" + b"a" * 16, b"a" * 25, "\u00fc\u4e2d".encode(), b"x" * 100]


def looked_up(e, cursor, end, unusual):
    length = wire_code.left(e, cursor, end)
    key = e.get("ptr", cursor)
    number, words = wire_code.found_key(e, key, length, "%table", unusual)
    kind = e.variable("i64", "0")
    with e.when(e.let(f"icmp sge i64 {number}, 0")):
        e.set("i64", kind, e.word(words, wire_code.KEY_WORDS.index("kind")))
    return e.add(e.mul(number, 10), e.get("i64", kind))


def test_keys_are_found_by_all_their_bytes():
    read = function(looked_up)
    table = wire_code.key_table({key: i % 3 + 1 for i, key in enumerate(KEYS)})
    for i, key in enumerate(KEYS):
        assert read(key, table) == (10 * i + i % 3 + 1, 0)
        for place in range(len(key)):
            other = key[:place] + bytes([key[place] ^ 2]) + key[place + 1 :]
            if other not in KEYS:
                assert read(other, table) in ((-10, 0), UNUSUAL)
                assert (read(other, table) == UNUSUAL) == (not other.isascii())
    for key in (b"ba", b"aaaa", b"x" * 99, b"x" * 101):
        assert read(key, table) == (-10, 0)
    assert read(b"a" * 10 + b"\xff" + b"a" * 10, table) == UNUSUAL


def test_many_keys():
    read = function(looked_up)
    random = np.random.default_rng(0)
    keys = list({random.bytes(int(n)).hex().encode() for n in random.integers(1, 12, 500)})
    for some in (keys, keys[:1], []):
        table = wire_code.key_table(dict.fromkeys(some, 2))
        for i, key in enumerate(keys):
            assert read(key, table) == ((10 * i + 2, 0) if i < len(some) else (-10, 0))
