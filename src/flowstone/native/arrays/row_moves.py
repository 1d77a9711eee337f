"""Rows of a shuffling queue moved by machine code: where they are, their order, and copies of many at once.

`RowMoves` has the functions. They take addresses and whole numbers, and check nothing. All but copies of much
memory keep Python's lock: they take less time than giving it away and getting it back. The code is compiled
on a thread when it is first asked for; until then, and where there is no native tier, `row_moves` is None.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

from flowstone.framework.machine import machine, machine_code
from flowstone.native.codegen import compiler
from flowstone.native.codegen.code_library import when_asked
from flowstone.native.codegen.structured import Code

__all__ = ["RowMoves", "row_moves", "row_moves_text"]

_MEMCPY = "llvm.memcpy.p0.p0.i64"
_FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "mix": ("ptr slots", "i64 first", "i64 filled", "ptr draws"),
    "note": ("ptr addresses", "ptr owners", "ptr slots", "i64 count", "i64 start", "i64 pitch", "i64 owner"),
    "release": ("ptr owners", "ptr left", "ptr slots", "i64 count", "ptr ended"),
    "collect": ("ptr addresses", "ptr slots", "i64 count", "i64 size", "ptr out"),
    "pick": ("ptr rows", "ptr slots", "i64 count", "i64 size", "ptr out"),
    "place": ("ptr rows", "ptr slots", "i64 count", "i64 size", "ptr values"),
}


def row_moves_text() -> str:
    """LLVM's text."""
    declarations = {_MEMCPY: f"declare void @{_MEMCPY}(ptr, ptr, i64, i1)"}
    functions = []
    for name, write in (
        ("mix", _mix), ("note", _note), ("release", _release),
        ("collect", _collect), ("pick", _pick), ("place", _place),
    ):  # fmt: skip
        e = Code(name, _FUNCTIONS[name], 1, declarations, is_public=True)
        write(e)
        functions.append(e.text())
    return "\n".join([*declarations.values(), *functions])


def _mix(e: Code) -> None:
    """Exchanges each slot from place `first` on with one drawn from those up to it."""
    with e.loop("%first", "%filled") as i:
        draw = e.get("double", e.at("%draws", e.sub(i, "%first"), "double"))
        size = e.let(f"sitofp i64 {e.add(i, 1)} to double")
        place = e.let(f"fptosi double {e.let(f'fmul double {draw}, {size}')} to i64")
        both = [e.at("%slots", each, "i64") for each in (i, place)]
        here, there = (e.get("i64", each) for each in both)
        e.set("i64", both[0], there)
        e.set("i64", both[1], here)


def _note(e: Code) -> None:
    """Says of slots that their rows follow each other from an address on, and whose they are."""
    with e.loop(0, "%count") as i:
        slot = e.get("i64", e.at("%slots", i, "i64"))
        e.set("i64", e.at("%addresses", slot, "i64"), e.add("%start", e.mul(i, "%pitch")))
        e.set("i64", e.at("%owners", slot, "i64"), "%owner")


def _release(e: Code) -> None:
    """Takes slots from their owners; `ended` becomes how many of these have nothing left, and then which."""
    e.set("i64", "%ended", "0")
    with e.loop(0, "%count") as i:
        owned = e.at("%owners", e.get("i64", e.at("%slots", i, "i64")), "i64")
        owner = e.get("i64", owned)
        e.set("i64", owned, "-1")
        place = e.at("%left", owner, "i64")
        left = e.sub(e.get("i64", place), 1)
        e.set("i64", place, left)
        with e.when(e.let(f"icmp eq i64 {left}, 0")):
            number = e.add(e.get("i64", "%ended"), 1)
            e.set("i64", "%ended", number)
            e.set("i64", e.at("%ended", number, "i64"), owner)


def _collect(e: Code) -> None:
    """Copies the rows at the addresses of slots, one after the other."""
    with e.loop(0, "%count") as i:
        address = e.get("i64", e.at("%addresses", e.get("i64", e.at("%slots", i, "i64")), "i64"))
        _copy(e, e.at("%out", e.mul(i, "%size"), "i8"), e.let(f"inttoptr i64 {address} to ptr"))


def _pick(e: Code) -> None:
    """Copies the rows at slots, one after the other."""
    with e.loop(0, "%count") as i:
        slot = e.get("i64", e.at("%slots", i, "i64"))
        _copy(e, e.at("%out", e.mul(i, "%size"), "i8"), e.at("%rows", e.mul(slot, "%size"), "i8"))


def _place(e: Code) -> None:
    """Copies rows, one after the other, to slots."""
    with e.loop(0, "%count") as i:
        slot = e.get("i64", e.at("%slots", i, "i64"))
        _copy(e, e.at("%rows", e.mul(slot, "%size"), "i8"), e.at("%values", e.mul(i, "%size"), "i8"))


def _copy(e: Code, to: str, source: str) -> None:
    e.do(f"call void @{_MEMCPY}(ptr {to}, ptr {source}, i64 %size, i1 false)")


class RowMoves:
    """`machine_code.RowMoves` by machine code."""

    def __init__(self) -> None:
        self._module = compiler.compiled(row_moves_text(), list(_FUNCTIONS))
        self.mix, self.note, self.release, self.place = map(
            self._function, ("mix", "note", "release", "place")
        )
        self._collect, self._pick = self._function("collect"), self._function("pick")
        self._collect_much = self._function("collect", True)
        self._much = machine.current().profile.copies_unlocked

    def _function(self, name: str, frees_lock: bool = False) -> machine_code.Move:
        kind = ctypes.CFUNCTYPE if frees_lock else ctypes.PYFUNCTYPE
        return kind(None, *[ctypes.c_int64] * len(_FUNCTIONS[name]))(self._module.address(name))

    @property
    def pick(self) -> machine_code.Move:
        return self._pick

    def collect(self, addresses: int, slots: int, count: int, size: int, out: int) -> None:
        copy = self._collect if count * size < self._much else self._collect_much
        copy(addresses, slots, count, size, out)


row_moves = when_asked(RowMoves)
"""The machine code, if it is there by now."""
