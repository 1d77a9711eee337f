"""One-hot arrays by machine code: all places are filled, block by block, and then those of the indices.
Blocks of what fills the caches are made beside the array, and copied past the caches.

The code for a type of indices and a size of elements is compiled on a thread when it is first asked for;
until then, and where there is no native tier, `hot_places` is None. Threads share what is worth it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from flowstone.framework.machine import machine
from flowstone.native.arrays.framed_rows import copy_row
from flowstone.native.codegen.code_library import CodeLibrary, my_part, places_of, share, when_asked, words_of
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes

__all__ = ["HotPlaces", "hot_places", "hot_places_code"]

WORDS = ("threads", "outer", "depth", "inner", "block", "by_inner", "streams")
"""Indices [outer, inner], results [outer, depth, inner], of which `block` times the outer are filled at once.
Threads have parts of the outer or, `by_inner`, of the inner. `streams`: blocks are copied past the caches."""
PLACES = {"place": ("indices", "on", "off", "out")}
_BLOCK = 4096  # elements that the nearest cache keeps between both passes
_INDICES = {
    torch.uint8: ("i8", "zext"), torch.int8: ("i8", "sext"), torch.int32: ("i32", "sext"),
    torch.int64: ("i64", ""),
}  # fmt: skip
_SIZES = (1, 2, 4, 8)  # bytes of an element


class HotPlaces:
    """The function for a type of indices and a size of elements."""

    def __init__(self, library: CodeLibrary) -> None:
        self._library = library

    def __call__(
        self, indices: torch.Tensor, depth: int, at: int, on: torch.Tensor, off: torch.Tensor
    ) -> torch.Tensor:
        """`on` where the index is the place's number along a new axis of `depth` before axis `at`, else
        `off`."""
        dims = tuple(indices.shape)
        out = torch.empty((*dims[:at], depth, *dims[at:]), dtype=on.dtype)
        outer, inner = (
            functools.reduce(int.__mul__, dims[:at], 1),
            functools.reduce(int.__mul__, dims[at:], 1),
        )
        profile = machine.current().profile
        threads = torch.get_num_threads() if out.numel() >= profile.native_team else 1
        streams = out.nbytes >= profile.streamed_copies and depth * inner <= _BLOCK and outer >= threads
        words = {
            "threads": threads, "outer": outer, "depth": depth, "inner": inner,
            "block": max(1, _BLOCK // max(1, depth * inner)), "by_inner": int(outer < threads),
            "streams": int(streams),
        }  # fmt: skip
        places = {"indices": indices.contiguous(), "on": on, "off": off, "out": out}
        self._library.call("place", words, places)
        return out


@functools.cache
def _asked(index: torch.dtype, size: int) -> Callable[[], HotPlaces | None]:
    def make() -> HotPlaces:
        text = hot_places_code(*_INDICES[index], 8 * size, 64 // size)
        library = CodeLibrary(lambda: text, WORDS, PLACES)
        return HotPlaces(library)

    return when_asked(make)


def hot_places(index: torch.dtype | None, dtype: torch.dtype | None) -> HotPlaces | None:
    """What makes one-hot arrays of a type; None if it is not there, or not yet."""
    if index not in _INDICES or dtype is None or dtype.itemsize not in _SIZES:
        return None
    return _asked(index, dtype.itemsize)()


# ---- text


def hot_places_code(index: str, extension: str, bits: int, lanes: int) -> str:
    """LLVM's text: indices of a type that an `extension` makes i64 of, elements of so many bits."""
    declarations: dict[str, str] = {}
    e = Code("place_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["place"])
    words = words_of(e, a["words"], WORDS)
    depth, inner, element = words["depth"], words["inner"], f"i{bits}"
    by_inner, streams = (e.let(f"icmp ne i64 {words[name]}, 0") for name in ("by_inner", "streams"))
    beside = e.array(element, _BLOCK)

    def either(this: str, that: str) -> str:
        return e.let(f"select i1 {by_inner}, i64 {this}, i64 {that}")

    _, start, end = my_part(e, either(inner, words["outer"]))
    first, last = either("0", start), either(words["outer"], end)
    left, right = either(start, "0"), either(end, inner)
    rows = e.mul(depth, inner)
    on, off = (e.get(element, a[name]) for name in ("on", "off"))
    with e.loop(first, last, either("1", words["block"])) as i:
        until = e.least(e.add(i, either("1", words["block"])), last)
        count = either(e.sub(right, left), e.mul(e.sub(until, i), rows))
        final = e.at(a["out"], e.mul(i, rows), element)
        block = e.let(f"select i1 {streams}, ptr {beside}, ptr {final}")
        with e.loop(0, either(depth, "1")) as j:
            _fill(e, e.at(block, e.add(e.mul(j, inner), left), element), count, off, element)
        with e.loop(i, until) as row, e.loop(left, right) as column:
            given = e.get(index, e.at(a["indices"], e.add(e.mul(row, inner), column), index))
            place = e.let(f"{extension} {index} {given} to i64") if extension else given
            with e.when(e.within(place, depth)):
                place = e.add(e.mul(e.add(e.mul(e.sub(row, i), depth), place), inner), column)
                e.set(element, e.at(block, place, element), on)
        with e.when(streams):
            copy_row(e, f"int{bits}", words["streams"], final, beside, count)
    e.do("fence seq_cst")  # what went past the caches has arrived
    parts = [e.text()]
    e = Code("place", ["ptr a"], lanes, declarations, is_public=True)
    share(e, "place_some")
    return "\n".join([*declarations.values(), *parts, e.text()])


def _fill(e: Code, address: str, count: str, value: str, element: str) -> None:
    """Writes a value to so many places."""
    wide, vector = in_all_lanes(e, element, value), e.vector(element)
    whole = e.mul(e.quotient(count, e.lanes), e.lanes)
    with e.loop(0, whole, e.lanes) as i:
        e.do(f"store {vector} {wide}, ptr {e.at(address, i, element)}, align 1")
    with e.loop(whole, count) as i:
        e.set(element, e.at(address, i, element), value)
