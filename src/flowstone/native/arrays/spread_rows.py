"""The row of each element's segment, scaled, by machine code on a host: gradients of sums over segments.

Element i takes row ``ids[i]`` of the data, over the size of its segment, or over the root of that. The ids
do not fall. `spread_filled` gives zeros where a segment is said to be empty. The code for some types is
compiled on a thread when it is first asked for; until then, and where there is no native tier, `spread_rows`
is None.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable

import torch

from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary, places_of, when_asked, words_of
from flowstone.native.codegen.emitter import KINDS, SIZES
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, load, store

__all__ = ["SpreadRows", "spread_rows", "spread_rows_code"]

WORDS = ("count", "segments", "columns", "pitch")
"""How many elements and segments there are; elements of a row, and from one of the data to the next."""
PLACES = {
    "spread": ("notes", "ids", "data", "out"),
    "spread_filled": ("notes", "ids", "empty", "data", "out"),
}
"""`out` [count, columns] is made of `data` [segments, columns]; `empty` (a byte) tells of each segment
whether its elements get zeros. A note, int64, becomes 1 where an id is out of bounds, or below the last."""
_TYPES = {torch.float32: "float32", torch.float64: "float64"}
_IDS = {torch.int32: "i32", torch.int64: "i64"}


class SpreadRows:
    """The functions for some types and a "sum", "mean" or "sqrtn"."""

    def __init__(self, how: str, dtype: str, index: str) -> None:
        lanes = host.lanes() * SIZES["float32"] // SIZES[dtype]
        self._library = CodeLibrary(lambda: spread_rows_code(how, dtype, index, lanes), WORDS, PLACES)

    def __call__(
        self, data: torch.Tensor, ids: torch.Tensor, empty: torch.Tensor | None = None
    ) -> torch.Tensor | None:
        """See `array_code.SpreadRows`."""
        sizes, count = data.shape[1:], ids.shape[0]
        columns = pitch = math.prod(sizes)
        # Data may be a part of each row of a matrix, as gradients of joined ones are.
        if data.ndim == 2 and data.stride(1) == 1:
            pitch = data.stride(0)
        else:
            data = data.contiguous()
        note, out = ctypes.c_int64(), torch.empty((count, *sizes), dtype=data.dtype)
        places: dict[str, torch.Tensor | int] = {
            "notes": ctypes.addressof(note), "ids": ids.contiguous(), "data": data, "out": out
        }  # fmt: skip
        name = "spread"
        if empty is not None:
            name, places["empty"] = "spread_filled", empty.contiguous()
        words = {"count": count, "segments": data.shape[0], "columns": columns, "pitch": pitch}
        self._library.call(name, words, places)
        return None if note.value else out


@functools.cache
def _asked(how: str, dtype: str, index: str) -> Callable[[], SpreadRows | None]:
    return when_asked(lambda: SpreadRows(how, dtype, index))


def spread_rows(how: str, dtype: torch.dtype | None, ids: torch.dtype | None) -> SpreadRows | None:
    """What spreads rows of a type by ids of a type; None if it is not there, or not yet."""
    if dtype not in _TYPES or ids not in _IDS:
        return None
    return _asked(how, _TYPES[dtype], _IDS[ids])()


# ---- text


def spread_rows_code(how: str, dtype: str, index: str, lanes: int) -> str:
    """LLVM's text, of rows of a type and ids that LLVM calls `index`."""
    declarations: dict[str, str] = {}
    texts = [_function(name, (how, dtype, index), lanes, declarations) for name in PLACES]
    return "\n".join([*declarations.values(), *texts])


def _function(name: str, kinds: tuple[str, str, str], lanes: int, declarations: dict[str, str]) -> str:
    how, dtype, index = kinds
    kind = KINDS[dtype]
    e = Code(name, ["ptr a"], lanes, declarations, is_public=True)
    a = places_of(e, PLACES[name])
    words = words_of(e, a["words"], WORDS)
    count, columns = words["count"], words["columns"]

    def segment(i: str) -> str:
        number = e.get(index, e.at(a["ids"], i, index))
        return number if index == "i64" else e.let(f"sext {index} {number} to i64")

    place = e.variable("i64", "0")
    with e.repeat() as leave:
        first = e.get("i64", place)
        leave(e.let(f"icmp sge i64 {first}, {count}"))
        number = segment(first)
        is_fine = e.within(number, words["segments"])
        with e.when(e.let(f"xor i1 {is_fine}, true")):
            e.set("i64", a["notes"], "1")
        leave(e.let(f"xor i1 {is_fine}, true"))
        end = e.variable("i64", first)
        with e.repeat() as stop:
            following = e.add(e.get("i64", end), 1)
            e.set("i64", end, following)
            stop(e.let(f"icmp sge i64 {following}, {count}"))
            stop(e.let(f"icmp ne i64 {segment(following)}, {number}"))
        last = e.get("i64", end)
        with (
            e.when(e.let(f"icmp slt i64 {last}, {count}")),
            e.when(e.let(f"icmp slt i64 {segment(last)}, {number}")),
        ):
            e.set("i64", a["notes"], "1")
        scale = _scale(e, how, dtype, e.sub(last, first))
        source = e.at(a["data"], e.mul(number, words["pitch"]), kind)
        is_empty = "false"
        if "empty" in a:
            is_empty = e.let(f"icmp ne i8 {e.get('i8', e.at(a['empty'], number, 'i8'))}, 0")
        with e.loop(first, last) as i:
            to, done = e.at(a["out"], e.mul(i, columns), kind), "0"
            for some in (e, e.one):
                whole = e.mul(e.quotient(columns, some.lanes), some.lanes)
                with e.loop(done, whole, some.lanes) as c:
                    value = load(some, dtype, source, c)
                    if scale:
                        value = some.binary("fmul", dtype, value, in_all_lanes(some, kind, scale))
                    if "empty" in a:
                        zero = some.constant(dtype, 0)
                        value = e.let(
                            f"select i1 {is_empty}, {some.type(dtype)} {zero}, {some.type(dtype)} {value}"
                        )
                    store(some, dtype, value, to, c)
                done = whole
        e.set("i64", place, last)
    return e.text()


def _scale(e: Code, how: str, dtype: str, count: str) -> str:
    """1 over the size of a segment, or over its square root; '' of sums."""
    if how == "sum":
        return ""
    size = e.let(f"sitofp i64 {count} to {KINDS[dtype]}")
    if how == "sqrtn":
        size = e.one.intrinsic("sqrt", dtype, size)
    return e.one.binary("fdiv", dtype, e.one.constant(dtype, 1), size)
