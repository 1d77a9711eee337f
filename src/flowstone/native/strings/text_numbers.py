"""Decimal numbers read from many texts by machine code: CPython's objects of bytes, where they are, with
Python's lock.

`native/records/number_code.py` says which texts the code reads. It is compiled on a thread when it is first
asked for; until then, and where there is no native tier, `text_numbers` is None.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from flowstone.framework.machine.string_code import Texts
from flowstone.native.codegen import compiler
from flowstone.native.codegen.code_library import when_asked
from flowstone.native.codegen.structured import Code
from flowstone.native.records.number_code import float_text, integer_text, number_constants
from flowstone.native.strings.byte_strings import are_as_expected, bytes_of, each_string, items_of

__all__ = ["TextNumbers", "text_numbers", "text_numbers_code"]

_PARAMETERS = ["ptr objects", "i64 count", "ptr type", "ptr numbers", "ptr failed"]
_READ = {"floats": (float_text, "double", np.float64), "integers": (integer_text, "i64", np.int64)}


def text_numbers_code() -> str:
    """The text of ``floats`` and ``integers``: ``failed`` becomes 0 if all strings were read."""
    return "\n".join([number_constants(), *[_code(name) for name in _READ]])


def _code(name: str) -> str:
    read, kind, _ = _READ[name]
    e = Code(name, _PARAMETERS, 1, {}, is_public=True)
    with each_string(e, "%failed") as (i, text, length, leave):
        start = bytes_of(e, text)  # behind the last byte of an object is a zero
        e.set(kind, e.at("%numbers", i, kind), read(e, start, e.at(start, length, "i8"), leave))
    return e.text()


class TextNumbers:
    """`string_code.TextNumbers` by machine code."""

    def __init__(self) -> None:
        self._module = compiler.compiled(text_numbers_code(), list(_READ))
        kind = ctypes.PYFUNCTYPE(None, *[ctypes.c_int64] * len(_PARAMETERS))
        self._code = {name: kind(self._module.address(name)) for name in _READ}

    def floats(self, strings: Texts) -> np.ndarray[Any, Any] | None:
        return self._read("floats", strings)

    def integers(self, strings: Texts) -> np.ndarray[Any, Any] | None:
        return self._read("integers", strings)

    def _read(self, name: str, strings: Texts) -> np.ndarray[Any, Any] | None:
        numbers, failed = np.empty(len(strings), _READ[name][2]), ctypes.c_int64()
        places = (numbers.ctypes.data, ctypes.addressof(failed))
        self._code[name](items_of(strings), len(strings), id(bytes), *places)
        return None if failed.value else numbers


text_numbers = when_asked(lambda: TextNumbers() if are_as_expected() else None)
"""The machine code, if it is there by now."""
