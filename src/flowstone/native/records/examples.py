"""Serialised Examples read into tensors by machine code, in two steps: a walk and jobs.

The walk says how many values of each wanted feature each message has. From that a caller knows the sizes of
all outputs, makes them, and has them filled by jobs (`reading_code`). The code reads objects of bytes where
they are, and makes some, with Python's lock; without, where much memory is copied and no object made. It is
compiled on a thread when it is first asked for; until then, and where there is no native tier,
`example_reader` is None.
"""

from __future__ import annotations

import array
import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flowstone.framework.machine import machine
from flowstone.native.codegen import compiler
from flowstone.native.codegen.code_library import when_asked
from flowstone.native.records.example_code import BYTES, ENTRY, MESSAGE, SUMMARY, walk_code
from flowstone.native.records.reading_code import JOB, reading_code
from flowstone.native.records.wire_code import key_table

__all__ = ["ExampleCode", "Walk", "example_code", "example_reader"]

Array = np.ndarray[Any, Any]
_FUNCTIONS = {"walk": 6, "walk_lists": 6, "steps": 4, "read": 5}  # and how many words each takes
_DATA = 16  # in an object of an array, of the address of its elements


def example_code() -> str:
    """LLVM's text."""
    declarations: dict[str, str] = {}
    functions = [*walk_code(declarations), *reading_code(declarations)]
    return "\n".join([*declarations.values(), *functions])


class ExampleCode:
    """`record_code.ExampleReader` by machine code."""

    def __init__(self) -> None:
        self._module = compiler.compiled(example_code(), list(_FUNCTIONS))
        locked, unlocked = map(self._functions, (ctypes.PYFUNCTYPE, ctypes.CFUNCTYPE))
        self._walks = locked["walk"], unlocked["walk"]
        self._list_walks = locked["walk_lists"], unlocked["walk_lists"]
        self.steps, self.read, self.read_unlocked = locked["steps"], locked["read"], unlocked["read"]
        self._much = machine.current().profile.copies_unlocked

    def _functions(self, kind: Any) -> dict[str, Any]:
        word = ctypes.c_int64
        return {
            name: kind(None, *[word] * count)(self._module.address(name))
            for name, count in _FUNCTIONS.items()
        }

    def keys(self, kinds: Mapping[bytes, int]) -> Keys:
        return Keys(kinds)

    def walk(self, messages: Array, keys: Keys) -> Walk | None:
        return self._walk(self._walks, messages, keys)

    def walk_lists(self, messages: Array, keys: Keys) -> ListWalk | None:
        walk = self._walk(self._list_walks, messages, keys)
        return None if walk is None else ListWalk(self, walk, keys)

    def _walk(self, functions: tuple[Any, Any], messages: Array, keys: Keys) -> Walk | None:
        rows, features = len(messages), keys.count
        found = np.empty(1 + features * (len(SUMMARY) + rows * len(ENTRY)), np.int64)
        is_much = rows > 0 and isinstance(messages[0], bytes) and len(messages[0]) * rows >= self._much
        walk = functions[is_much]
        walk(_place(messages), rows, id(bytes), _place(keys.table), features, _place(found))
        return None if found[0] else Walk(self, messages, keys.kinds, found, is_much)


class Keys:
    """Features' keys and kinds."""

    def __init__(self, kinds: Mapping[bytes, int]) -> None:
        self.kinds, self.count, self.table = list(kinds.values()), len(kinds), key_table(kinds)


class Walk:
    """`record_code.Walk`; what its jobs write to is held until they are done."""

    def __init__(
        self, code: ExampleCode, messages: Array, kinds: Sequence[int], found: Array, is_much: bool
    ) -> None:
        self._code, self.messages, self._kinds, self._found = code, messages, kinds, found
        self._is_much = is_much
        start = 1 + len(kinds) * len(SUMMARY)
        numbers = found[1:start].tolist()
        self.totals, self.missing, self.most = numbers[::3], numbers[1::3], numbers[2::3]
        rows = (len(found) - start) // max(len(kinds) * len(ENTRY), 1)
        self.entries = found[start:].reshape(rows, len(kinds), len(ENTRY))
        self._jobs, self._held = list[int](), list[Any]()
        self._has_objects = False

    def counts(self, feature: int) -> Array:
        return np.maximum(self.entries[:, feature, 0], 0)

    def is_there(self, feature: int) -> Array:
        found: Array = self.entries[:, feature, 0] >= 0
        return found

    def fill_rows(self, feature: int, out: Array, width: int, fill: Array | None, step: int) -> None:
        self._add(feature, width, 0 if fill is None else _place(fill), step, _place(out), 0, 0, 0)
        self._held += (out, fill)

    def fill_list(
        self, feature: int, out: Array, places: Array | None = None, shape: Array | None = None
    ) -> None:
        places_and_shape = (0, 0, 0)
        if places is not None and shape is not None:
            places_and_shape = _place(places), len(shape), _place(shape)
        self._add(feature, -1, 0, 0, _place(out), *places_and_shape)
        self._held += (out, places, shape)

    def _add(self, feature: int, *words: int) -> None:
        kind = self._kinds[feature]
        if kind == BYTES:
            self._has_objects = True
        self._jobs += (feature, kind, *words)

    def read(self) -> None:
        read = self._code.read_unlocked if self._is_much and not self._has_objects else self._code.read
        jobs = array.array("q", self._jobs)
        rows, features, count = *self.entries.shape[:2], len(jobs) // len(JOB)
        read(_place(self._found), rows, features, jobs.buffer_info()[0], count)
        if self._found[0]:
            raise MemoryError("No memory for the values of features")


class ListWalk:
    """`record_code.ListWalk`."""

    def __init__(self, code: ExampleCode, walk: Walk, keys: Keys) -> None:
        self._code, self._walk, self._keys = code, walk, keys

    def steps(self, feature: int) -> Array:
        counts: Array = self._walk.entries[:, feature, 0]
        return counts

    def features(self, feature: int) -> Walk:
        walk, entries = self._walk, self._walk.entries
        found = np.empty(1 + len(SUMMARY) + walk.totals[feature] * len(ENTRY), np.int64)
        rows, pitch = len(entries), entries.shape[1] * len(ENTRY)
        self._code.steps(_place(entries[:, feature]), rows, pitch, _place(found))
        return Walk(self._code, walk.messages, [self._keys.kinds[feature]], found, False)


def _place(x: Array) -> int:
    """The address of the elements of a contiguous array."""
    return ctypes.c_int64.from_address(id(x) + _DATA).value


def _check() -> bool:
    """Whether objects of bytes and of arrays are laid out as the code takes them to be."""
    text, numbers = b"some bytes", np.arange(3)
    word = ctypes.c_int64.from_address
    if bytes.__basicsize__ != MESSAGE["bytes"] + 1 or _place(numbers) != numbers.ctypes.data:
        return False
    place = id(text)
    is_typed = word(place + MESSAGE["type"]).value == id(bytes)
    is_sized = word(place + MESSAGE["length"]).value == len(text)
    return is_typed and is_sized and ctypes.string_at(place + MESSAGE["bytes"], len(text)) == text


example_reader = when_asked(lambda: ExampleCode() if _check() else None)
"""The machine code, if it is there by now."""
