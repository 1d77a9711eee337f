"""Characters of UTF-8 counted, and base64 written and read, by machine code: CPython's objects of bytes are
read and made where they are, with Python's lock.

`ops/strings/packed.py` and `base64_text.py` have the same by NumPy. The code is compiled on a thread when it
is first asked for; until then, and where there is no native tier, `string_codecs` is None.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from flowstone.framework.machine.string_code import Texts
from flowstone.native.codegen import compiler
from flowstone.native.codegen.code_library import when_asked
from flowstone.native.codegen.structured import Code
from flowstone.native.strings.byte_strings import (
    STRING_DECLARATIONS,
    are_as_expected,
    bytes_of,
    each_string,
    items_of,
    put_string,
)

__all__ = ["StringCodecs", "string_codecs", "string_codecs_code"]

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_PAD = ord("=")
_STRANGE = 1 << 24  # the bits of what is no character
_PARAMETERS = ["ptr objects", "i64 count", "ptr type", "ptr table", "ptr out", "ptr failed", "i64 pads"]
_NAMES = ("count", "encode", "decode")


def string_codecs_code() -> str:
    """The text of ``count``, ``encode`` and ``decode``: ``failed`` becomes 0 if all strings were read."""
    return "\n".join([STRING_DECLARATIONS, _count_code(), _encode_code(), _decode_code()])


# ---- what they share


class _String:
    """A string that is read."""

    def __init__(self, e: Code, start: str, length: str) -> None:
        self.e, self.start, self.length = e, start, length

    def byte(self, place: str | int) -> str:
        """A byte of it as i64."""
        return _byte(self.e, self.e.at(self.start, place, "i8"))


def _byte(e: Code, address: str) -> str:
    return e.let(f"zext i8 {e.get('i8', address)} to i64")


@contextlib.contextmanager
def _each(e: Code) -> Iterator[tuple[str, _String, Callable[[str], None]]]:
    with each_string(e, "%failed") as (i, text, length, leave):
        yield i, _String(e, bytes_of(e, text), length), leave


def _made(e: Code, i: str, size: str, leave: Callable[[str], None]) -> str:
    """The place of the bytes of a new object of so many, which is the i-th of ``out`` from now on."""
    return bytes_of(e, put_string(e, e.at("%out", i, "ptr"), "null", size, leave))


def _put(e: Code, place: str, offset: int, bits: str) -> None:
    e.do(f"store i8 {e.let(f'trunc i64 {bits} to i8')}, ptr {e.at(place, offset, 'i8')}")


def _shifted(e: Code, how: str, bits: str, count: int) -> str:
    return e.let(f"{how} i64 {bits}, {count}")


def _joined(e: Code, *parts: str) -> str:
    found = parts[0]
    for part in parts[1:]:
        found = e.let(f"or i64 {found}, {part}")
    return found


# ---- characters


def _count_code() -> str:
    """``out`` (i64) becomes the number of bytes of each string that do not continue a character."""
    e = Code("count", _PARAMETERS, 1, {}, is_public=True)
    with _each(e) as (i, string, _):
        count = e.variable("i64", "0")
        with e.loop(0, string.length) as at:
            begins = e.let(f"icmp ne i64 {e.let(f'and i64 {string.byte(at)}, 192')}, 128")
            e.set("i64", count, e.add(e.get("i64", count), e.let(f"zext i1 {begins} to i64")))
        e.set("i64", e.at("%out", i, "i64"), e.get("i64", count))
    return e.text()


# ---- base64


def _encode_code() -> str:
    """``table`` (i16) has two characters for each twelve bits, the first one's byte first."""
    e = Code("encode", _PARAMETERS, 1, {}, is_public=True)
    with _each(e) as (i, string, leave):
        whole = e.quotient(string.length, 3)
        over = e.rest(string.length, 3)
        more = e.let(f"icmp ne i64 {over}, 0")
        open_size = e.select(more, "int64", e.add(over, 1), "0")
        last = e.select(e.let("icmp ne i64 %pads, 0"), "int64", e.select(more, "int64", "4", "0"), open_size)
        place = _made(e, i, e.add(e.mul(whole, 4), last), leave)
        with e.loop(0, whole) as at:
            _encode(e, string, e.mul(at, 3), e.at(place, e.mul(at, 4), "i8"), 3, "true")
        for count in (1, 2):
            with e.when(e.let(f"icmp eq i64 {over}, {count}")):
                pads = e.let("icmp ne i64 %pads, 0")
                _encode(e, string, e.mul(whole, 3), e.at(place, e.mul(whole, 4), "i8"), count, pads)
    return e.text()


def _encode(e: Code, string: _String, at: str, to: str, count: int, pads: str) -> None:
    """Writes the characters of three bytes, or of the last one or two of a string."""
    parts = [_shifted(e, "shl", string.byte(e.add(at, j)), 16 - 8 * j) for j in range(count)]
    bits = _joined(e, *parts)
    pairs = [_shifted(e, "lshr", bits, 12)]
    pairs += [e.let(f"and i64 {bits}, 4095")] * (count > 1)
    for j, pair in enumerate(pairs):
        both, place = e.get("i16", e.at("%table", pair, "i16")), e.at(to, 2 * j, "i8")
        if 2 * j < count:
            e.do(f"store i16 {both}, ptr {place}, align 1")
        else:
            e.do(f"store i8 {e.let(f'trunc i16 {both} to i8')}, ptr {place}")
    if count < 3:
        with e.when(pads):
            for j in range(count + 1, 4):
                e.do(f"store i8 {_PAD}, ptr {e.at(to, j, 'i8')}")


def _decode_code() -> str:
    """``table`` (i32) has the six bits of each character."""
    e = Code("decode", _PARAMETERS, 1, {}, is_public=True)
    with _each(e) as (i, string, leave):
        length = e.variable("i64", string.length)
        is_four = e.let(f"icmp eq i64 {e.rest(string.length, 4)}, 0")
        some = e.let(f"icmp ne i64 {string.length}, 0")
        with e.when(e.let(f"and i1 {is_four}, {some}")):
            for _ in range(2):
                shorter = e.sub(e.get("i64", length), 1)
                pads = e.let(f"icmp eq i64 {string.byte(shorter)}, {_PAD}")
                e.set("i64", length, e.select(pads, "int64", shorter, e.get("i64", length)))
        size = e.get("i64", length)
        over = e.rest(size, 4)
        leave(e.let(f"icmp eq i64 {over}, 1"))
        whole = e.quotient(size, 4)
        rest = e.most(e.sub(over, 1), 0)
        place = _made(e, i, e.add(e.mul(whole, 3), rest), leave)
        seen = e.variable("i64", "0")
        with e.loop(0, whole) as at:
            _decode(e, string, e.mul(at, 4), e.at(place, e.mul(at, 3), "i8"), 4, seen)
        for count in (2, 3):
            with e.when(e.let(f"icmp eq i64 {over}, {count}")):
                _decode(e, string, e.mul(whole, 4), e.at(place, e.mul(whole, 3), "i8"), count, seen)
        leave(e.let(f"icmp uge i64 {e.get('i64', seen)}, {_STRANGE}"))
    return e.text()


def _decode(e: Code, string: _String, at: str, to: str, count: int, seen: str) -> None:
    """Writes the bytes of four characters, or of the last two or three of a string."""
    parts = []
    for j in range(count):
        entry = e.get("i32", e.at("%table", string.byte(e.add(at, j)), "i32"))
        parts.append(_shifted(e, "shl", e.let(f"zext i32 {entry} to i64"), 18 - 6 * j))
    bits = _joined(e, *parts)
    e.set("i64", seen, _joined(e, e.get("i64", seen), bits))
    for j in range(count - 1):
        _put(e, to, j, _shifted(e, "lshr", bits, 16 - 8 * j))


def _pair_table() -> np.ndarray[Any, Any]:
    alphabet = np.frombuffer(_ALPHABET, np.uint8)
    pairs = np.empty((64, 64, 2), np.uint8)
    pairs[..., 0], pairs[..., 1] = alphabet[:, None], alphabet
    return pairs


def _bits_table() -> np.ndarray[Any, Any]:
    table = np.full(256, _STRANGE, np.int32)
    table[np.frombuffer(_ALPHABET, np.uint8)] = np.arange(64)
    return table


class StringCodecs:
    """`string_code.StringCodecs` by machine code."""

    def __init__(self) -> None:
        self._module = compiler.compiled(string_codecs_code(), list(_NAMES))
        self._code = {
            name: ctypes.PYFUNCTYPE(None, *[ctypes.c_int64] * len(_PARAMETERS))(self._module.address(name))
            for name in _NAMES
        }
        self._pairs, self._bits = _pair_table(), _bits_table()

    def character_counts(self, strings: Texts) -> np.ndarray[Any, Any] | None:
        return self._called("count", strings, np.empty(len(strings), np.int64), 0)

    def encoded(self, strings: list[bytes], pads: bool) -> np.ndarray[Any, Any] | None:
        return self._called("encode", strings, np.empty(len(strings), object), self._pairs.ctypes.data, pads)

    def decoded(self, strings: list[bytes]) -> np.ndarray[Any, Any] | None:
        return self._called("decode", strings, np.empty(len(strings), object), self._bits.ctypes.data)

    def _called(
        self, name: str, strings: Texts, out: np.ndarray[Any, Any], table: int, pads: bool = False
    ) -> np.ndarray[Any, Any] | None:
        failed = ctypes.c_int64()
        objects, places = items_of(strings), (out.ctypes.data, ctypes.addressof(failed))
        self._code[name](objects, len(strings), id(bytes), table, *places, pads)
        return None if failed.value else out


string_codecs = when_asked(lambda: StringCodecs() if are_as_expected() else None)
"""The machine code, if it is there by now."""
