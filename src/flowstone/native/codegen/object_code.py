"""Object code in memory without LLVM: for a process that finds all its machine code in the cache.

LLVM's library takes 45 MB and a tenth of a second to load. A relocatable file that it wrote (ELF, x86-64)
needs little: its sections are copied, one behind the other, the addresses of what they refer to are put in,
and the memory may be executed, and no more be written. `loaded` does that; what it does not know, of the file
or of the machine, is `Unsupported`, and LLVM loads the file.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

__all__ = ["Loaded", "Unsupported", "loaded"]

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_X86_64, _RELOCATABLE = 62, 1
_SYMBOLS, _RELOCATIONS, _ZEROS = 2, 4, 8  # types of sections
_ALLOCATED, _WRITABLE = 2, 1  # flags of sections
_UNDEFINED, _ABSOLUTE = 0, 0xFFF1  # instead of a symbol's section
_ADDRESS, _DISTANCES = 1, (2, 4)  # types of relocations
_LEFT_OUT = (".eh_frame",)  # for debuggers, and for exceptions, of which there are none


class Unsupported(Exception):
    """What is in the file, or the machine, is not known here."""


class Loaded(NamedTuple):
    """Memory with machine code, which must live as long as it is used, and where each function is."""

    memory: mmap.mmap
    addresses: dict[str, int]


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


def loaded(code: bytes, symbols: Mapping[str, int], names: Sequence[str]) -> Loaded:
    """The functions `names` of a relocatable file; `symbols`: the addresses of what it may refer to."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        raise Unsupported(platform.machine())
    try:
        return _loaded(code, symbols, names)
    except (struct.error, IndexError, ValueError, OSError) as error:
        raise Unsupported(str(error)) from error


def _loaded(code: bytes, symbols: Mapping[str, int], names: Sequence[str]) -> Loaded:
    sections = _sections(code)
    places, size = _layout(code, sections)
    memory = mmap.mmap(-1, size, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for i, place in places.items():
        if sections[i].kind != _ZEROS:
            memory[place : place + sections[i].size] = code[sections[i].offset :][: sections[i].size]
    table = _Symbols(code, sections, {i: start + place for i, place in places.items()}, symbols)
    for section in sections:
        if section.kind == _RELOCATIONS and section.info in places:
            for offset, info, addend in _entries(_RELOCATION, code, section):
                place = places[section.info] + offset
                value = table.address(info >> 32) + addend
                _relocate(memory, info & 0xFFFFFFFF, place, start, value)
    addresses = table.functions()
    if _protect(start, size) or any(name not in addresses for name in names):
        raise Unsupported("memory that can be executed")
    return Loaded(memory, {name: addresses[name] for name in names})


def _sections(code: bytes) -> list[_Section]:
    word, kind, machine, *_, offset, _, _, _, _, _, count, _ = _HEADER.unpack_from(code)
    if not word.startswith(b"\x7fELF\x02\x01") or (kind, machine) != (_RELOCATABLE, _X86_64):
        raise Unsupported("another format")
    return [_Section(*_SECTION.unpack_from(code, offset + i * _SECTION.size)) for i in range(count)]


def _layout(code: bytes, sections: Sequence[_Section]) -> tuple[dict[int, int], int]:
    """Where each section that is needed goes, by its number, and the length of all."""
    (names,) = struct.unpack_from("<H", code, 62)
    places: dict[int, int] = {}
    end = 0
    for i, section in enumerate(sections):
        name = _text(code, sections[names], section.name)
        if not section.flags & _ALLOCATED or name in _LEFT_OUT:
            continue
        if section.flags & _WRITABLE and section.size:
            raise Unsupported(f"{name} can be written")
        alignment = max(section.alignment, 64)
        places[i] = end = -(-end // alignment) * alignment
        end += section.size
    return places, max(end, 1)


def _entries(layout: struct.Struct, code: bytes, section: _Section) -> Iterator[tuple[int, ...]]:
    return layout.iter_unpack(code[section.offset : section.offset + section.size])


def _text(code: bytes, section: _Section, offset: int) -> str:
    start = section.offset + offset
    return code[start : code.index(b"\0", start)].decode()


def _relocate(memory: mmap.mmap, kind: int, place: int, start: int, value: int) -> None:
    if kind == _ADDRESS:
        struct.pack_into("<Q", memory, place, value)
    elif kind in _DISTANCES:
        struct.pack_into("<i", memory, place, value - (start + place))
    else:
        raise Unsupported(f"relocation {kind}")


class _Symbols:
    """The symbols of a file, whose sections are at these addresses by their number."""

    def __init__(
        self,
        code: bytes,
        sections: Sequence[_Section],
        starts: Mapping[int, int],
        others: Mapping[str, int],
    ) -> None:
        (table,) = [section for section in sections if section.kind == _SYMBOLS]
        self._entries = list(_entries(_SYMBOL, code, table))
        self._names = [_text(code, sections[table.link], entry[0]) for entry in self._entries]
        self._starts, self._others = starts, others

    def address(self, i: int) -> int:
        """That of a symbol by its number."""
        _, _, _, section, value, _ = self._entries[i]
        if section == _ABSOLUTE:
            return value
        if section != _UNDEFINED:
            if section not in self._starts:
                raise Unsupported(f"section {section}")
            return self._starts[section] + value
        name = self._names[i]
        return self._others[name] if name in self._others else _library_function(name)

    def functions(self) -> dict[str, int]:
        """Those that the file defines, by their names."""
        return {
            name: self._starts[entry[3]] + entry[4]
            for name, entry in zip(self._names, self._entries)
            if name and entry[3] in self._starts
        }


def _library_function(name: str) -> int:
    """One that the process has anyway, such as memset."""
    try:
        found = ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value
    except AttributeError:
        raise Unsupported(name) from None
    if found is None:
        raise Unsupported(name)
    return found


def _protect(start: int, size: int) -> int:
    """Lets the memory be executed, and no more be written; 0 if that was done."""
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return int(protect(start, size, mmap.PROT_READ | mmap.PROT_EXEC))
