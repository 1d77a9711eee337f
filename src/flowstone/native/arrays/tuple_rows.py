"""Rows that tuples of indices pick, copied by machine code on a host: what GatherNd does; and their places.

The code for a type of indices is compiled on a thread when it is first asked for; until then, and where there
is no native tier, `tuple_rows` is None. Every index is compared with its size before its row is read. Threads
share what is worth it.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch

from flowstone.framework.machine import machine
from flowstone.native.codegen.code_library import CodeLibrary, my_part, places_of, share, when_asked, words_of
from flowstone.native.codegen.structured import Code

__all__ = ["TupleRows", "tuple_rows", "tuple_rows_code"]

WORDS = ("threads", "count", "depth", "size")
PLACES = {
    "pick": ("notes", "sizes", "indices", "rows", "out"),
    "number": ("notes", "sizes", "indices", "out"),
}
"""`pick` copies `count` rows of `size` bytes, `number` writes which rows (int64); a tuple is `depth` indices,
of dimensions of `sizes` (int64). A note, 0 at first, becomes 1 if an index is out of bounds."""
_INDICES = {torch.int32: "i32", torch.int64: "i64"}
_WORK = 8  # of a row's place and first bytes, in additions
_WORDS = {4: "i32", 8: "i64"}  # rows of so many bytes, as one number
_MEMCPY = "llvm.memcpy.p0.p0.i64"


class TupleRows:
    """The function for a type of indices."""

    def __init__(self, index: str) -> None:
        self._library = CodeLibrary(lambda: tuple_rows_code(index), WORDS, PLACES)

    def __call__(
        self, params: torch.Tensor, indices: torch.Tensor, dims: Sequence[int]
    ) -> torch.Tensor | None:
        """The rows of `params` by `indices` [..., depth], in this shape; None where one is out of bounds."""
        depth = indices.shape[-1]
        size = math.prod(params.shape[depth:]) * params.itemsize
        out = torch.empty(tuple(dims), dtype=params.dtype)
        arrays = {"rows": params.contiguous(), "out": out}
        return out if self._call("pick", indices, params.shape[:depth], size, arrays) else None

    def places(self, indices: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor | None:
        """The row-major numbers, int64, of `indices` [..., depth] in an array of these sizes, as a vector;
        None where one is out of bounds."""
        out = torch.empty(math.prod(indices.shape[:-1]), dtype=torch.int64)
        return out if self._call("number", indices, sizes, 0, {"out": out}) else None

    def _call(
        self,
        name: str,
        indices: torch.Tensor,
        dims: Sequence[int],
        size: int,
        arrays: Mapping[str, torch.Tensor],
    ) -> bool:
        depth, count = indices.shape[-1], math.prod(indices.shape[:-1])
        has_team = count * (_WORK + size // 4) >= machine.current().profile.native_team
        note, sizes = ctypes.c_int64(), (ctypes.c_int64 * depth)(*dims)
        places: dict[str, torch.Tensor | int] = {
            **arrays, "notes": ctypes.addressof(note), "sizes": ctypes.addressof(sizes),
            "indices": indices.contiguous(),
        }  # fmt: skip
        threads = torch.get_num_threads() if has_team else 1
        words = {"threads": threads, "count": count, "depth": depth, "size": size}
        self._library.call(name, words, places)
        return not note.value


@functools.cache
def _asked(index: str) -> Callable[[], TupleRows | None]:
    return when_asked(lambda: TupleRows(index))


def tuple_rows(index: torch.dtype | None) -> TupleRows | None:
    """What picks rows by tuples of such indices; None if it is not there, or not yet."""
    return _asked(_INDICES[index])() if index in _INDICES else None


def tuple_rows_code(index: str) -> str:
    """LLVM's text, of indices that LLVM calls so."""
    declarations = {_MEMCPY: f"declare void @{_MEMCPY}(ptr, ptr, i64, i1)"}
    texts = []
    for name, write in (("pick", _pick), ("number", _number)):
        some = Code(f"{name}_some", ["ptr a"], 1, declarations)
        write(some, index)
        public = Code(name, ["ptr a"], 1, declarations, is_public=True)
        share(public, f"{name}_some")
        texts += [some.text(), public.text()]
    return "\n".join([*declarations.values(), *texts])


def _number(e: Code, index: str) -> None:
    a = places_of(e, PLACES["number"])
    for i, place in _places(e, index, a, words_of(e, a["words"], WORDS)):
        e.set("i64", e.at(a["out"], i, "i64"), place)


def _pick(e: Code, index: str) -> None:
    a = places_of(e, PLACES["pick"])
    words = words_of(e, a["words"], WORDS)
    size = words["size"]
    is_long = e.let("or i1 true, true")
    for n, kind in _WORDS.items():
        is_word = e.let(f"icmp eq i64 {size}, {n}")
        is_long = e.let(f"and i1 {is_long}, {e.let(f'xor i1 {is_word}, true')}")
        with e.when(is_word):
            for i, place in _places(e, index, a, words):
                found = e.let(f"load {kind}, ptr {e.at(a['rows'], place, kind)}, align 1")
                e.do(f"store {kind} {found}, ptr {e.at(a['out'], i, kind)}, align 1")
    with e.when(is_long):
        for i, place in _places(e, index, a, words):
            to, source = e.at(a["out"], e.mul(i, size), "i8"), e.at(a["rows"], e.mul(place, size), "i8")
            e.do(f"call void @{_MEMCPY}(ptr {to}, ptr {source}, i64 {size}, i1 false)")


def _places(e: Code, index: str, a: Mapping[str, str], words: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What is written for it runs for each of this thread's tuples that is within its bounds: its number, and
    that of the row."""
    _, start, end = my_part(e, words["count"])
    place, fits = e.variable("i64", "0"), e.variable("i1", "true")
    with e.loop(start, end) as i:
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
        with e.when(is_inside):
            yield i, e.get("i64", place)
