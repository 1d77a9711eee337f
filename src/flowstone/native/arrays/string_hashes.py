"""FarmHash's Fingerprint64 of short strings, in buckets, by machine code: CPython's objects of bytes are read
where they are, with Python's lock.

`ops/strings/fingerprints.py` has the same for strings of any length. The code is compiled on a thread when it
is first asked for; until then, and where there is no native tier, `string_hashes` is None.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from flowstone.native.arrays.byte_strings import OBJECT, are_as_expected
from flowstone.native.codegen import compiler
from flowstone.native.codegen.code_library import when_asked
from flowstone.native.codegen.structured import Code

__all__ = ["StringHashes", "string_hashes", "string_hashes_code"]

_K0, _K1, _K2 = (k - (1 << 64) for k in (0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F))
_LONGEST = 64  # bytes


def string_hashes_code() -> str:
    """The text of ``hash(objects, count, type, buckets, out)``: behind the buckets ``out`` becomes 0, or 1
    where a string is longer, or none."""
    e = Code(
        "hash", ["ptr objects", "i64 count", "ptr type", "i64 buckets", "ptr out"], 1, {}, is_public=True
    )  # fmt: skip
    status = e.at("%out", "%count", "i64")
    e.set("i64", status, "1")
    with e.repeat() as leave:
        with e.loop(0, "%count") as i:
            text = e.get("ptr", e.at("%objects", i, "ptr"))
            kind = e.get("ptr", e.at(text, OBJECT["type"], "i8"))
            leave(e.let(f"icmp ne ptr {kind}, %type"))
            length = e.get("i64", e.at(text, OBJECT["length"], "i8"))
            leave(e.let(f"icmp ugt i64 {length}, {_LONGEST}"))
            found = e.variable("i64", str(_K2))
            start = e.at(text, OBJECT["bytes"], "i8")
            for low, high, write in _CLASSES:
                with _between(e, length, low, high):
                    e.set("i64", found, write(_Words(e, start, length)))
            bucket = e.let(f"urem i64 {e.get('i64', found)}, %buckets")
            e.set("i64", e.at("%out", i, "i64"), bucket)
        e.set("i64", status, "0")
        leave("true")
    return e.text()


@contextlib.contextmanager
def _between(e: Code, length: str, low: int, high: int) -> Iterator[None]:
    with e.when(e.let(f"icmp ule i64 {e.sub(length, low)}, {high - low}")):
        yield


class _Words:
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

    def xor(self, a: str, b: str) -> str:
        return self.e.let(f"xor i64 {a}, {b}")

    def shift(self, a: str, bits: int) -> str:
        """To the left."""
        return self.e.let(f"shl i64 {a}, {bits}")

    def rotate(self, a: str, bits: int) -> str:
        """To the right."""
        return self.e.let(f"or i64 {self.e.let(f'lshr i64 {a}, {bits}')}, {self.shift(a, 64 - bits)}")

    def shift_mix(self, a: str) -> str:
        return self.xor(a, self.e.let(f"lshr i64 {a}, 47"))

    def mix(self, u: str, v: str) -> str:
        """128 bits to 64."""
        a = self.shift_mix(self.mul(self.xor(u, v), self.multiplier))
        return self.mul(self.shift_mix(self.mul(self.xor(v, a), self.multiplier)), self.multiplier)


def _to_3(w: _Words) -> str:
    half = w.e.let(f"lshr i64 {w.length}, 1")
    y = w.add(w.first(0, "i8"), w.shift(w.first(half, "i8"), 8))
    z = w.add(w.length, w.shift(w.last(1, "i8"), 2))
    return w.mul(w.shift_mix(w.xor(w.mul(y, _K2), w.mul(z, _K0))), _K2)


def _to_7(w: _Words) -> str:
    return w.mix(w.add(w.length, w.shift(w.first(0, "i32"), 3)), w.last(4, "i32"))


def _to_16(w: _Words) -> str:
    a, b = w.add(w.first(0), _K2), w.last(8)
    c = w.add(w.mul(w.rotate(b, 37), w.multiplier), a)
    return w.mix(c, w.mul(w.add(w.rotate(a, 25), b), w.multiplier))


def _ends(w: _Words, factor: int) -> tuple[str, str, str, str, str]:
    """The sum that strings of more than 16 bytes begin with, and its terms."""
    a, b = w.mul(w.first(0), factor), w.first(8)
    c, d = w.mul(w.last(8), w.multiplier), w.mul(w.last(16), _K2)
    return w.add(w.rotate(w.add(a, b), 43), w.rotate(c, 30), d), a, b, c, d


def _to_32(w: _Words) -> str:
    y, a, b, c, _ = _ends(w, _K1)
    return w.mix(y, w.add(a, w.rotate(w.add(b, _K2), 18), c))


def _to_64(w: _Words) -> str:
    y, a, b, c, _ = _ends(w, _K2)
    z = w.mix(y, w.add(a, w.rotate(w.add(b, _K2), 18), c))
    e, f = w.mul(w.first(16), w.multiplier), w.first(24)
    g = w.mul(w.add(y, w.last(32)), w.multiplier)
    h = w.mul(w.add(z, w.last(24)), w.multiplier)
    u = w.add(w.rotate(w.add(e, f), 43), w.rotate(g, 30), h)
    return w.mix(u, w.add(e, w.rotate(w.add(f, a), 18), g))


_CLASSES: tuple[tuple[int, int, Callable[[_Words], str]], ...] = (
    (1, 3, _to_3), (4, 7, _to_7), (8, 16, _to_16), (17, 32, _to_32), (33, _LONGEST, _to_64),
)  # fmt: skip
"""By the strings' lengths; the fingerprint of an empty one is a constant."""


class StringHashes:
    """`array_code.StringHashes` by machine code."""

    def __init__(self) -> None:
        self._module = compiler.compiled(string_hashes_code(), ["hash"])
        self._hash = ctypes.PYFUNCTYPE(None, *[ctypes.c_int64] * 5)(self._module.address("hash"))

    def __call__(self, strings: np.ndarray[Any, Any], buckets: int) -> np.ndarray[Any, Any] | None:
        memory = np.empty(strings.size + 1, np.int64)
        self._hash(strings.ctypes.data, strings.size, id(bytes), buckets, memory.ctypes.data)
        return None if memory[-1] else memory[:-1].reshape(strings.shape)


string_hashes = when_asked(lambda: StringHashes() if are_as_expected() else None)
"""The machine code, if it is there by now."""
