"""Hashes of strings in buckets by machine code: FarmHash's Fingerprint64, SipHash-2-4 and MurmurHash64A.

`ops/strings/fingerprints.py` has the same by NumPy. CPython's objects of bytes are read where they are, with
Python's lock. The code is compiled on a thread when it is first asked for; until then, and where there is no
native tier, `string_hashes` is None.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from flowstone.native.codegen import compiler
from flowstone.native.codegen.code_library import when_asked
from flowstone.native.codegen.structured import Code
from flowstone.native.strings.byte_strings import are_as_expected, bytes_of, each_string

__all__ = ["StringHashes", "Words", "fingerprint", "string_hashes", "string_hashes_code"]

_K0, _K1, _K2 = (k - (1 << 64) for k in (0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F))
_MURMUR, _MURMUR_SEED = 0xC6A4A7935BD1E995 - (1 << 64), 0xDECAFCAFFE
_SIP = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_ROUND = 64  # bytes that a round of FarmHash takes


def string_hashes_code() -> str:
    """The text of ``NAME(objects, count, type, buckets, out, k0, k1)`` for each hash: behind the buckets
    ``out`` becomes 0, or 1 where something is no bytes."""
    return "\n".join([_function(name, hashed) for name, hashed in _HASHES.items()])


def _function(name: str, hashed: Callable[[Words], str]) -> str:
    parameters = ["ptr objects", "i64 count", "ptr type", "i64 buckets", "ptr out", "i64 k0", "i64 k1"]
    e = Code(name, parameters, 1, {}, is_public=True)
    with each_string(e, e.at("%out", "%count", "i64")) as (i, text, length, _):
        found = hashed(Words(e, bytes_of(e, text), length))
        e.set("i64", e.at("%out", i, "i64"), e.let(f"urem i64 {found}, %buckets"))
    return e.text()


@contextlib.contextmanager
def _between(e: Code, length: str, low: int, high: int) -> Iterator[None]:
    with e.when(e.let(f"icmp ule i64 {e.sub(length, low)}, {high - low}")):
        yield


class Words:
    """A string's words, and what is done with such."""

    def __init__(self, e: Code, start: str, length: str) -> None:
        self.e, self.start, self.length = e, start, length
        self.multiplier = self.add(_K2, self.mul(length, 2))

    def first(self, place: int | str, kind: str = "i64") -> str:
        """The word that begins at a place."""
        word = self.e.let(f"load {kind}, ptr {self.e.at(self.start, place, 'i8')}, align 1")
        return word if kind == "i64" else self.e.let(f"zext {kind} {word} to i64")

    def last(self, before: int, kind: str = "i64") -> str:
        """The word that begins so many bytes before the end."""
        return self.first(self.e.sub(self.length, before), kind)

    def add(self, a: str | int, *more: str | int) -> str:
        for b in more:
            a = self.e.let(f"add i64 {a}, {b}")
        return str(a)

    def mul(self, a: str | int, b: str | int) -> str:
        return self.e.let(f"mul i64 {a}, {b}")

    def xor(self, a: str | int, *more: str | int) -> str:
        for b in more:
            a = self.e.let(f"xor i64 {a}, {b}")
        return str(a)

    def shift(self, a: str, bits: int | str) -> str:
        """To the left."""
        return self.e.let(f"shl i64 {a}, {bits}")

    def rotate(self, a: str, bits: int) -> str:
        """To the right."""
        return self.e.let(f"or i64 {self.e.let(f'lshr i64 {a}, {bits}')}, {self.shift(a, 64 - bits)}")

    def shift_mix(self, a: str) -> str:
        return self.xor(a, self.e.let(f"lshr i64 {a}, 47"))

    def mix(self, u: str, v: str, multiplier: str = "") -> str:
        """128 bits to 64."""
        by = multiplier or self.multiplier
        a = self.shift_mix(self.mul(self.xor(u, v), by))
        return self.mul(self.shift_mix(self.mul(self.xor(v, a), by)), by)

    def whole(self) -> str:
        """The number of bytes in whole words."""
        return self.e.let(f"and i64 {self.length}, -8")

    def tail(self) -> str:
        """The bytes behind the last whole word, as a number."""
        e = self.e
        found, over = e.variable("i64", "0"), e.let(f"and i64 {self.length}, 7")
        with e.loop(0, over) as i:
            byte = self.shift(self.first(e.add(self.whole(), i), "i8"), e.mul(i, 8))
            e.set("i64", found, self.e.let(f"or i64 {e.get('i64', found)}, {byte}"))
        return e.get("i64", found)


def _to_3(w: Words) -> str:
    half = w.e.let(f"lshr i64 {w.length}, 1")
    y = w.add(w.first(0, "i8"), w.shift(w.first(half, "i8"), 8))
    z = w.add(w.length, w.shift(w.last(1, "i8"), 2))
    return w.mul(w.shift_mix(w.xor(w.mul(y, _K2), w.mul(z, _K0))), _K2)


def _to_7(w: Words) -> str:
    return w.mix(w.add(w.length, w.shift(w.first(0, "i32"), 3)), w.last(4, "i32"))


def _to_16(w: Words) -> str:
    a, b = w.add(w.first(0), _K2), w.last(8)
    c = w.add(w.mul(w.rotate(b, 37), w.multiplier), a)
    return w.mix(c, w.mul(w.add(w.rotate(a, 25), b), w.multiplier))


def _ends(w: Words, factor: int) -> tuple[str, str, str, str, str]:
    """The sum that strings of more than 16 bytes begin with, and its terms."""
    a, b = w.mul(w.first(0), factor), w.first(8)
    c, d = w.mul(w.last(8), w.multiplier), w.mul(w.last(16), _K2)
    return w.add(w.rotate(w.add(a, b), 43), w.rotate(c, 30), d), a, b, c, d


def _to_32(w: Words) -> str:
    y, a, b, c, _ = _ends(w, _K1)
    return w.mix(y, w.add(a, w.rotate(w.add(b, _K2), 18), c))


def _to_64(w: Words) -> str:
    y, a, b, c, _ = _ends(w, _K2)
    z = w.mix(y, w.add(a, w.rotate(w.add(b, _K2), 18), c))
    e, f = w.mul(w.first(16), w.multiplier), w.first(24)
    g = w.mul(w.add(y, w.last(32)), w.multiplier)
    h = w.mul(w.add(z, w.last(24)), w.multiplier)
    u = w.add(w.rotate(w.add(e, f), 43), w.rotate(g, 30), h)
    return w.mix(u, w.add(e, w.rotate(w.add(f, a), 18), g))


def _beyond_64(w: Words) -> str:
    """Rounds of 64 bytes, the last of which ends with the string."""
    e = w.e
    second = str(81 * _K1 + 113)
    third = w.mul(w.shift_mix(w.add(w.mul(second, _K2), 113)), _K2)
    state = [w.add(w.first(0), 81 * _K2), second, third, *["0"] * 4]
    places = [e.variable("i64", each) for each in state]
    with e.loop(0, e.let(f"and i64 {e.sub(w.length, 1)}, {-_ROUND}"), _ROUND) as at:
        for place, value in zip(places, _farm_round(w, at, _all(e, places), _K1)):
            e.set("i64", place, value)
    state = _all(e, places)
    multiplier = w.add(w.shift(e.let(f"and i64 {state[2]}, 255"), 1), _K1)
    tail = e.let(f"and i64 {e.sub(w.length, 1)}, {_ROUND - 1}")
    x, y, z, v0, v1, w0, w1 = _farm_round(w, e.sub(w.length, _ROUND), state, multiplier, 9, tail)
    first = w.add(w.mix(v0, w0, multiplier), w.mul(w.shift_mix(y), _K0), z)
    return w.mix(first, w.add(w.mix(v1, w1, multiplier), x), multiplier)


def _all(e: Code, places: list[str]) -> list[str]:
    return [e.get("i64", place) for place in places]


def _farm_round(
    w: Words, at: str, state: list[str], multiplier: str | int, nine: int = 1, tail: str = ""
) -> tuple[str, ...]:
    """`fingerprints.farm_round`."""
    x, y, z, v0, v1, w0, w1 = state

    def word(offset: int) -> str:
        return w.first(w.add(at, offset))

    def weak_pair(offset: int, a: str, b: str) -> tuple[str, str]:
        a, last = w.add(a, word(offset)), word(offset + 24)
        b = w.rotate(w.add(b, a, last), 21)
        c, a = a, w.add(a, word(offset + 8), word(offset + 16))
        return w.add(a, last), w.add(b, w.rotate(a, 44), c)

    if tail:
        w0 = w.add(w0, tail)
        v0 = w.add(v0, w0)
        w0 = w.add(w0, v0)
    x = w.mul(w.rotate(w.add(x, y, v0, word(8)), 37), multiplier)
    y = w.mul(w.rotate(w.add(y, v1, word(48)), 42), multiplier)
    x = w.xor(x, w.mul(w1, nine))
    y = w.add(y, w.mul(v0, nine), word(40))
    z = w.mul(w.rotate(w.add(z, w0), 33), multiplier)
    v = weak_pair(0, w.mul(v1, multiplier), w.add(x, w0))
    pair = weak_pair(32, w.add(z, w1), w.add(y, word(16)))
    return z, y, x, *v, *pair


_CLASSES: tuple[tuple[int, int, Callable[[Words], str]], ...] = (
    (1, 3, _to_3), (4, 7, _to_7), (8, 16, _to_16), (17, 32, _to_32), (33, 64, _to_64),
    (65, (1 << 62), _beyond_64),
)  # fmt: skip
"""By the strings' lengths; the fingerprint of an empty one is a constant."""


def fingerprint(w: Words) -> str:
    """The string's Fingerprint64."""
    found = w.e.variable("i64", str(_K2))
    for low, high, write in _CLASSES:
        with _between(w.e, w.length, low, high):
            w.e.set("i64", found, write(w))
    return w.e.get("i64", found)


def _sip_hash(w: Words) -> str:
    """Under the key of ``k0`` and ``k1``."""
    e = w.e
    places = [e.variable("i64", w.xor(f"%k{i % 2}", word)) for i, word in enumerate(_SIP)]

    def compress(word: str) -> None:
        a, b, c, d = _all(e, places)
        a, b, c, d = _sip_rounds(w, (a, b, c, w.xor(d, word)), 2)
        for place, value in zip(places, (w.xor(a, word), b, c, d)):
            e.set("i64", place, value)

    with e.loop(0, w.whole(), 8) as at:
        compress(w.first(at))
    compress(e.let(f"or i64 {w.tail()}, {w.shift(w.length, 56)}"))
    a, b, c, d = _all(e, places)
    return w.xor(*_sip_rounds(w, (a, b, w.xor(c, 255), d), 4))


def _sip_rounds(w: Words, state: tuple[str, str, str, str], count: int) -> tuple[str, str, str, str]:
    a, b, c, d = state
    for _ in range(count):
        a, c = w.add(a, b), w.add(c, d)
        b, d = w.xor(w.rotate(b, 51), a), w.xor(w.rotate(d, 48), c)
        a = w.rotate(a, 32)
        c, a = w.add(c, b), w.add(a, d)
        b, d = w.xor(w.rotate(b, 47), c), w.xor(w.rotate(d, 43), a)
        c = w.rotate(c, 32)
    return a, b, c, d


def _murmur_hash(w: Words) -> str:
    e = w.e
    state = e.variable("i64", w.xor(w.mul(w.length, _MURMUR), _MURMUR_SEED))
    with e.loop(0, w.whole(), 8) as at:
        word = w.mul(w.shift_mix(w.mul(w.first(at), _MURMUR)), _MURMUR)
        e.set("i64", state, w.mul(w.xor(e.get("i64", state), word), _MURMUR))
    with e.when(e.let(f"icmp ne i64 {w.whole()}, {w.length}")):
        e.set("i64", state, w.mul(w.xor(e.get("i64", state), w.tail()), _MURMUR))
    return w.shift_mix(w.mul(w.shift_mix(e.get("i64", state)), _MURMUR))


_HASHES = {"fingerprint": fingerprint, "sip_hash": _sip_hash, "murmur_hash": _murmur_hash}


class StringHashes:
    """`string_code.StringHashes` by machine code."""

    def __init__(self) -> None:
        self._module = compiler.compiled(string_hashes_code(), list(_HASHES))
        self._code = {
            name: ctypes.PYFUNCTYPE(None, *[ctypes.c_int64] * 7)(self._module.address(name))
            for name in _HASHES
        }

    def __call__(
        self, name: str, strings: np.ndarray[Any, Any], buckets: int, key: tuple[int, int] = (0, 0)
    ) -> np.ndarray[Any, Any] | None:
        memory = np.empty(strings.size + 1, np.int64)
        place, out = strings.ctypes.data, memory.ctypes.data
        self._code[name](place, strings.size, id(bytes), buckets, out, *key)
        return None if memory[-1] else memory[:-1].reshape(strings.shape)


string_hashes = when_asked(lambda: StringHashes() if are_as_expected() else None)
"""The machine code, if it is there by now."""
