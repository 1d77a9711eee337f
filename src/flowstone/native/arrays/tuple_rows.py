"""Rows that tuples of indices pick, copied by machine code on a host: what GatherNd does.

The code for a type of indices is compiled on a thread when it is first asked for; until then, and where there
is no native tier, `tuple_rows` is None. Every index is compared with its size before its row is read.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Sequence

import torch

from flowstone.native.codegen.code_library import CodeLibrary, places_of, when_asked, words_of
from flowstone.native.codegen.structured import Code

__all__ = ["TupleRows", "tuple_rows", "tuple_rows_code"]

WORDS = ("count", "depth", "size")
PLACES = {"pick": ("notes", "sizes", "indices", "rows", "out")}
"""`pick` copies `count` rows of `size` bytes; a tuple is `depth` indices, of dimensions of `sizes` (int64). A
note, 0 at first, becomes 1 if an index is out of bounds."""
_INDICES = {torch.int32: "i32", torch.int64: "i64"}
_MUCH = 1 << 21  # bytes from which ATen's threads are faster
_MEMCPY = "llvm.memcpy.p0.p0.i64"


class TupleRows:
    """The function for a type of indices."""

    def __init__(self, index: str) -> None:
        self._library = CodeLibrary(lambda: tuple_rows_code(index), WORDS, PLACES)

    def __call__(
        self, params: torch.Tensor, indices: torch.Tensor, dims: Sequence[int]
    ) -> torch.Tensor | None:
        """The rows of `params` by `indices` [..., depth], in this shape; None where one is out of bounds, or
        so much memory is copied that threads should."""
        depth, count = indices.shape[-1], math.prod(indices.shape[:-1])
        size = math.prod(params.shape[depth:]) * params.itemsize
        if count * size >= _MUCH:
            return None
        out = torch.empty(tuple(dims), dtype=params.dtype)
        note, sizes = ctypes.c_int64(), (ctypes.c_int64 * depth)(*params.shape[:depth])
        places: dict[str, torch.Tensor | int] = {
            "notes": ctypes.addressof(note), "sizes": ctypes.addressof(sizes),
            "indices": indices.contiguous(), "rows": params.contiguous(), "out": out,
        }  # fmt: skip
        self._library.call("pick", {"count": count, "depth": depth, "size": size}, places)
        return None if note.value else out


@functools.cache
def _asked(index: str) -> Callable[[], TupleRows | None]:
    return when_asked(lambda: TupleRows(index))


def tuple_rows(index: torch.dtype | None) -> TupleRows | None:
    """What picks rows by tuples of such indices; None if it is not there, or not yet."""
    return _asked(_INDICES[index])() if index in _INDICES else None


def tuple_rows_code(index: str) -> str:
    """LLVM's text, of indices that LLVM calls so."""
    declarations = {_MEMCPY: f"declare void @{_MEMCPY}(ptr, ptr, i64, i1)"}
    e = Code("pick", ["ptr a"], 1, declarations, is_public=True)
    a = places_of(e, PLACES["pick"])
    words = words_of(e, a["words"], WORDS)
    size, is_word = words["size"], e.let(f"icmp eq i64 {words['size']}, 4")
    place, fits = e.variable("i64", "0"), e.variable("i1", "true")
    with e.loop(0, words["count"]) as i:
        e.set("i64", place, "0")
        e.set("i1", fits, "true")
        first = e.mul(i, words["depth"])
        with e.loop(0, words["depth"]) as d:
            number = e.get(index, e.at(a["indices"], e.add(first, d), index))
            number = number if index == "i64" else e.let(f"sext {index} {number} to i64")
            limit = e.get("i64", e.at(a["sizes"], d, "i64"))
            e.set("i1", fits, e.let(f"and i1 {e.get('i1', fits)}, {e.within(number, limit)}"))
            e.set("i64", place, e.add(e.mul(e.get("i64", place), limit), number))
        is_inside = e.get("i1", fits)
        with e.when(e.let(f"xor i1 {is_inside}, true")):
            e.set("i64", a["notes"], "1")
        with e.when(e.let(f"and i1 {is_inside}, {is_word}")):
            found = e.get("i32", e.at(a["rows"], e.get("i64", place), "i32"))
            e.do(f"store i32 {found}, ptr {e.at(a['out'], i, 'i32')}, align 1")
        with e.when(e.let(f"and i1 {is_inside}, {e.let(f'xor i1 {is_word}, true')}")):
            to = e.at(a["out"], e.mul(i, size), "i8")
            source = e.at(a["rows"], e.mul(e.get("i64", place), size), "i8")
            e.do(f"call void @{_MEMCPY}(ptr {to}, ptr {source}, i64 {size}, i1 false)")
    return "\n".join([*declarations.values(), e.text()])
