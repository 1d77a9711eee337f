"""Matches of patterns rewritten in many texts by an automaton (`ops/strings/re2_rewriters.py`) in machine
code: CPython's objects of bytes, where they are, with Python's lock.

The code is compiled on a thread when it is first asked for; until then, and where there is no native tier,
`text_rewriters` is None.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowstone.framework.machine.string_code import RewritingAutomaton
from flowstone.native.codegen import compiler
from flowstone.native.codegen.code_library import when_asked
from flowstone.native.codegen.structured import Code
from flowstone.native.strings.byte_strings import StringCode, are_as_expected, bytes_of, each_string, items_of

__all__ = ["TextRewriters", "text_rewriters", "text_rewriters_code"]

_DEAD, _NO_CHARACTER, _END, _PLACE, _BEGIN = 0, 0, 1, 0, 2
_ASCII = 128
_PARAMETERS = [
    "ptr objects", "i64 count", "ptr type", "ptr bounds", "ptr classes", "i64 known", "ptr steps",
    "i64 kinds", "ptr copies", "ptr starts", "ptr registers", "ptr pieces", "i64 width", "ptr literals",
    "i64 once", "ptr out", "i64 room", "ptr lengths", "ptr failed",
]  # fmt: skip
"""`known` bounds, `kinds` of characters, `width` pieces: i32 triples (0, place, length) of literals and
(1, begin, end) of registers. `once`: the first match alone. `failed`: 1 if something was no bytes, 2 if the
`room` in `out` was too small."""
_COPY = "llvm.memcpy.p0.p0.i64"
_GROWTH = 4


def text_rewriters_code() -> str:
    """The text of ``rewrite``: what becomes of each string goes to ``out``, one behind the other, with their
    ``lengths``."""
    declarations = {_COPY: f"declare void @{_COPY}(ptr, ptr, i64, i1)"}
    rewriting = _Rewriting(declarations)
    return "\n".join([*declarations.values(), rewriting.text()])


class _Rewriting:
    """The function's text. Variables: where the text is read, up to where it is copied, where the last match
    ended, and where the next byte of the results goes."""

    def __init__(self, declarations: dict[str, str]) -> None:
        self.e = e = Code("rewrite", _PARAMETERS, 1, declarations, is_public=True)
        self.at, self.copied, self.last, self.to, self.state, self.place, self.kind, self.width = (
            e.variable("i64", "0") for _ in range(8)
        )

    def text(self) -> str:
        e = self.e
        with each_string(e, "%failed") as (i, text, length, leave):
            start, before = bytes_of(e, text), e.get("i64", self.to)
            self._leave = leave
            e.set("i64", self.at, "0")
            e.set("i64", self.copied, "0")
            e.set("i64", self.last, "-1")
            with e.repeat() as done:
                self.search(start, length)
                begin, end = (
                    e.let(f"sext i32 {e.get('i32', self.register(_BEGIN + i))} to i64") for i in (0, 1)
                )
                done(e.let(f"icmp slt i64 {begin}, 0"))
                copied = e.get("i64", self.copied)
                self.copy(e.at(start, copied, "i8"), e.sub(begin, copied))
                e.set("i64", self.copied, begin)
                is_empty = e.let(f"icmp eq i64 {begin}, {end}")
                follows = e.let(f"icmp eq i64 {end}, {e.get('i64', self.last)}")
                stays = e.let(f"and i1 {is_empty}, {follows}")
                with e.when(stays):  # after the character here
                    self.read(start, begin, length)
                    e.set("i64", self.at, e.add(begin, e.get("i64", self.width)))
                with e.when(e.let(f"xor i1 {stays}, true")):
                    self.put_pieces(start)
                    for each in (self.at, self.copied, self.last):
                        e.set("i64", each, end)
                done(e.let("icmp ne i64 %once, 0"))
                done(e.let(f"icmp sgt i64 {e.get('i64', self.at)}, {length}"))
            copied = e.get("i64", self.copied)
            self.copy(e.at(start, copied, "i8"), e.sub(length, copied))
            e.set("i64", e.at("%lengths", i, "i64"), e.sub(e.get("i64", self.to), before))
        return e.text()

    def register(self, number: str | int) -> str:
        return self.e.at("%registers", number, "i32")

    def entry(self, table: str, place: str | int) -> str:
        """A number of a table of i32."""
        e = self.e
        return e.let(f"sext i32 {e.get('i32', e.at(table, place, 'i32'))} to i64")

    def byte(self, start: str, place: str) -> str:
        e = self.e
        return e.let(f"zext i8 {e.get('i8', e.at(start, place, 'i8'))} to i64")

    def search(self, start: str, length: str) -> None:
        """Puts the next match into the registers: -1 as its begin if there is none."""
        e = self.e
        at = e.get("i64", self.at)
        earlier = self.byte(start, e.sub(at, 1))  # at the beginning, a byte of the object's head
        is_first = e.let(f"icmp eq i64 {at}, 0")
        e.set(
            "i64", self.state, self.entry("%starts", e.let(f"select i1 {is_first}, i64 256, i64 {earlier}"))
        )
        e.set("i32", self.register(_BEGIN), "-1")
        e.set("i64", self.place, at)
        with e.repeat() as done:
            here = e.get("i64", self.place)
            self.read(start, here, length)
            row = e.mul(e.get("i64", self.state), "%kinds")
            step = e.mul(e.add(row, e.get("i64", self.kind)), 2)
            copies = self.entry("%steps", e.add(step, 1))
            with e.when(e.let(f"icmp ne i64 {copies}, 0")):
                e.set("i32", self.register(_PLACE), e.let(f"trunc i64 {here} to i32"))
                with e.loop(0, self.entry("%copies", copies)) as i:
                    pair = e.add(e.add(copies, 1), e.mul(i, 2))
                    value = e.get("i32", self.register(self.entry("%copies", e.add(pair, 1))))
                    e.set("i32", self.register(self.entry("%copies", pair)), value)
            state = self.entry("%steps", step)
            e.set("i64", self.state, state)
            done(e.let(f"icmp eq i64 {state}, {_DEAD}"))
            e.set("i64", self.place, e.add(here, e.get("i64", self.width)))

    def read(self, start: str, place: str, length: str) -> None:
        """The class and the width of the character at a place."""
        e = self.e
        first = self.byte(start, place)
        is_short = e.let(f"icmp ult i64 {first}, {_ASCII}")
        e.set("i64", self.width, "1")
        kind = self.entry("%classes", e.let(f"select i1 {is_short}, i64 {first}, i64 0"))
        e.set("i64", self.kind, e.let(f"select i1 {is_short}, i64 {kind}, i64 {_NO_CHARACTER}"))
        with e.when(e.let(f"xor i1 {is_short}, true")):
            self.read_wide(start, place, length, first)
        with e.when(e.let(f"icmp eq i64 {place}, {length}")):
            e.set("i64", self.kind, str(_END))

    def read_wide(self, start: str, place: str, length: str, first: str) -> None:
        """The same of two to four bytes of UTF-8, where they are a character."""
        e = self.e
        for width, head, bits, least in (
            (2, 0xC0, 0xE0, 0x80),
            (3, 0xE0, 0xF0, 0x800),
            (4, 0xF0, 0xF8, 1 << 16),
        ):
            is_head = e.let(f"icmp eq i64 {e.let(f'and i64 {first}, {bits}')}, {head}")
            fits = e.let(f"icmp sle i64 {e.add(place, width)}, {length}")
            with e.when(e.let(f"and i1 {is_head}, {fits}")):
                point, whole = e.let(f"and i64 {first}, {0xFF & ~bits}"), "true"
                for i in range(1, width):
                    byte = self.byte(start, e.add(place, i))
                    goes_on = e.let(f"icmp eq i64 {e.let(f'and i64 {byte}, 192')}, 128")
                    whole = e.let(f"and i1 {whole}, {goes_on}")
                    point = e.add(e.mul(point, 64), e.let(f"and i64 {byte}, 63"))
                is_surrogate = e.let(f"icmp ult i64 {e.sub(point, 0xD800)}, {0x800}")
                for condition in (
                    e.let(f"icmp sge i64 {point}, {least}"), e.let(f"icmp sle i64 {point}, {0x10FFFF}"),
                    e.let(f"xor i1 {is_surrogate}, true"),
                ):  # fmt: skip
                    whole = e.let(f"and i1 {whole}, {condition}")
                with e.when(whole):
                    e.set("i64", self.width, str(width))
                    self.find_class(point)

    def find_class(self, point: str) -> None:
        """The class of a character beyond ASCII: that of the last bound that is not above it."""
        e = self.e
        low, high = e.variable("i64", str(_ASCII)), e.variable("i64", "%known")
        with e.repeat() as done:
            first, end = e.get("i64", low), e.get("i64", high)
            done(e.let(f"icmp sle i64 {e.sub(end, first)}, 1"))
            middle = e.quotient(e.add(first, end), 2)
            is_below = e.let(f"icmp sle i64 {self.entry('%bounds', middle)}, {point}")
            e.set("i64", low, e.let(f"select i1 {is_below}, i64 {middle}, i64 {first}"))
            e.set("i64", high, e.let(f"select i1 {is_below}, i64 {end}, i64 {middle}"))
        e.set("i64", self.kind, self.entry("%classes", e.get("i64", low)))

    def put_pieces(self, start: str) -> None:
        """What the match becomes."""
        e = self.e
        with e.loop(0, "%width") as i:
            is_group, first, second = (self.entry("%pieces", e.add(e.mul(i, 3), j)) for j in range(3))
            with e.when(e.let(f"icmp eq i64 {is_group}, 0")):
                self.copy(e.at("%literals", first, "i8"), second)
            with e.when(e.let(f"icmp ne i64 {is_group}, 0")):
                begin, end = (self.entry("%registers", each) for each in (first, second))
                self.copy(e.at(start, begin, "i8"), e.sub(end, begin))

    def copy(self, source: str, size: str) -> None:
        """Adds bytes to the results; leaves all where there is no room."""
        e = self.e
        to = e.get("i64", self.to)
        after = e.add(to, size)
        is_full = e.let(f"icmp sgt i64 {after}, %room")
        with e.when(is_full):
            e.set("i64", "%failed", "2")
        self._leave(is_full)
        e.do(f"call void @{_COPY}(ptr {e.at('%out', to, 'i8')}, ptr {source}, i64 {size}, i1 false)")
        e.set("i64", self.to, after)


class TextRewriters:
    """`string_code.TextRewriters` by machine code."""

    def __init__(self) -> None:
        self._module = compiler.compiled(text_rewriters_code(), ["rewrite"])
        kind = ctypes.PYFUNCTYPE(None, *[ctypes.c_int64] * len(_PARAMETERS))
        self._rewrite: Callable[..., None] = kind(self._module.address("rewrite"))
        self._strings = StringCode()

    def __call__(
        self, strings: list[bytes], automaton: RewritingAutomaton, pieces: Sequence[bytes | int], once: bool
    ) -> np.ndarray[Any, Any] | None:
        """See `string_code.TextRewriters`."""
        lengths = self._strings.lengths(strings)
        if lengths is None:
            return None
        literals, triples = b"", []
        for each in pieces:
            if isinstance(each, int):
                triples += [1, _BEGIN + 2 * each, _BEGIN + 2 * each + 1]
            else:
                triples += [0, len(literals), len(each)]
                literals += each
        registers = np.full(automaton.registers, -1, np.int32)
        rows = np.array(triples, np.int32)
        text = np.frombuffer(literals + b"\0", np.uint8)
        total = int(lengths.sum())
        room, failed = 2 * total + len(strings) * (len(literals) + 8), ctypes.c_int64(2)
        while failed.value == 2:
            out = np.empty(room, np.uint8)
            a = automaton
            self._rewrite(
                items_of(strings), len(strings), id(bytes), a.bounds.ctypes.data, a.classes.ctypes.data,
                len(a.bounds), a.steps.ctypes.data, a.steps.shape[1], a.copies.ctypes.data,
                a.starts.ctypes.data, registers.ctypes.data, rows.ctypes.data, len(pieces), text.ctypes.data,
                int(once), out.ctypes.data, room, lengths.ctypes.data, ctypes.addressof(failed),
            )  # fmt: skip
            room *= _GROWTH
        return self._strings.pieces(out, np.cumsum(lengths) - lengths, lengths)


text_rewriters = when_asked(lambda: TextRewriters() if are_as_expected() else None)
"""The machine code, if it is there by now."""
