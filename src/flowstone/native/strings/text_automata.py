"""Texts read by an automaton in machine code: CPython's objects of bytes, where they are, with Python's lock.

`ops/strings/re2_automata.py` makes such from patterns. The code is compiled on a thread when it is first
asked for; until then, and where there is no native tier, `text_automata` is None.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from flowstone.native.codegen import compiler
from flowstone.native.codegen.code_library import when_asked
from flowstone.native.codegen.structured import Code
from flowstone.native.strings.byte_strings import are_as_expected, bytes_of, each_string, items_of

__all__ = ["TextAutomata", "text_automata", "text_automata_code"]

_FIRST = 2  # the state that a text begins in; those below are not left
_PARAMETERS = ["ptr objects", "i64 count", "ptr type", "ptr table", "ptr states", "ptr failed"]


def text_automata_code() -> str:
    """The text of ``read``: ``states`` (i32) become those after all bytes of each string, and ``failed`` 0 if
    all were bytes."""
    e = Code("read", _PARAMETERS, 1, {}, is_public=True)
    with each_string(e, "%failed") as (i, text, length, _):
        start, at = bytes_of(e, text), e.variable("i64", "0")
        state = e.variable("i64", str(_FIRST))
        with e.repeat() as end:
            place = e.get("i64", at)
            end(e.let(f"icmp sge i64 {place}, {length}"))
            before = e.get("i64", state)
            end(e.let(f"icmp slt i64 {before}, {_FIRST}"))
            byte = e.let(f"zext i8 {e.get('i8', e.at(start, place, 'i8'))} to i64")
            entry = e.add(e.mul(before, 256), byte)
            e.set("i64", state, e.let(f"sext i32 {e.get('i32', e.at('%table', entry, 'i32'))} to i64"))
            e.set("i64", at, e.add(place, 1))
        e.set("i32", e.at("%states", i, "i32"), e.let(f"trunc i64 {e.get('i64', state)} to i32"))
    return e.text()


class TextAutomata:
    """`string_code.TextAutomata` by machine code."""

    def __init__(self) -> None:
        self._module = compiler.compiled(text_automata_code(), ["read"])
        kind = ctypes.PYFUNCTYPE(None, *[ctypes.c_int64] * len(_PARAMETERS))
        self._read = kind(self._module.address("read"))

    def __call__(self, strings: list[bytes], table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
        states, failed = np.empty(len(strings), np.int32), ctypes.c_int64()
        places = (table.ctypes.data, states.ctypes.data, ctypes.addressof(failed))
        self._read(items_of(strings), len(strings), id(bytes), *places)
        return None if failed.value else states


text_automata = when_asked(lambda: TextAutomata() if are_as_expected() else None)
"""The machine code, if it is there by now."""
