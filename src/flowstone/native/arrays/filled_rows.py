"""Rows of a sparse tensor that have no element get one, by machine code on a host, in one pass.

The elements are ordered by rows; `fill` takes all, `fill_kept` those that a mask keeps. Values move as
numbers of their size. The code for a size is compiled on a thread when it is first asked for; until then, and
where there is no native tier, `filled_rows` is None.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import torch

from flowstone.native.codegen.code_library import CodeLibrary, places_of, when_asked, words_of
from flowstone.native.codegen.structured import Code

__all__ = ["FilledRows", "filled_rows", "filled_rows_code"]

WORDS = ("count", "rank", "rows")
"""How many elements there are, numbers of an index, and rows."""
PLACES = {
    "fill": ("notes", "indices", "values", "default", "found", "elements", "empty", "places"),
    "fill_kept": ("notes", "indices", "values", "keep", "default", "found", "elements", "empty", "segments"),
}
"""`found` (int64, `rank` numbers each) and `elements` are the new indices and values, at most `count` and
`rows` of them; `empty` (a byte) tells of each row whether it had no element, `places` (int64) of each element
where it went, `segments` (int32) of each new one its row. The first of `notes` (int64) becomes 1 where a row
is out of bounds or below the one before, the second how many new elements there are."""
_VALUES = {4: "i32", 8: "i64"}
_MOST = 1 << 22  # new elements: memory is taken for as many as there can be
_TRUE, _FALSE = "1", "0"


class FilledRows:
    """The functions for values of a size."""

    def __init__(self, kind: str) -> None:
        self._library = CodeLibrary(lambda: filled_rows_code(kind), WORDS, PLACES)

    def __call__(
        self,
        indices: torch.Tensor,
        values: torch.Tensor,
        rows: int,
        default: torch.Tensor,
        keep: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor] | None:
        """See `array_code.FilledRows`."""
        count, rank = indices.shape
        most = count + rows
        if not 0 <= rows <= most <= _MOST:
            return None
        found = torch.empty((most, rank), dtype=torch.int64)
        elements = torch.empty(most, dtype=values.dtype)
        empty, notes = torch.empty(rows, dtype=torch.bool), (ctypes.c_int64 * 2)()
        places: dict[str, torch.Tensor | int] = {
            "notes": ctypes.addressof(notes), "indices": indices.contiguous(), "values": values.contiguous(),
            "default": default, "found": found, "elements": elements, "empty": empty,
        }  # fmt: skip
        if keep is None:
            name = "fill"
            numbers = places["places"] = torch.empty(count, dtype=torch.int64)
        else:
            name, places["keep"] = "fill_kept", keep.contiguous()
            numbers = places["segments"] = torch.empty(most, dtype=torch.int32)
        self._library.call(name, {"count": count, "rank": rank, "rows": rows}, places)
        if notes[0]:
            return None
        total = notes[1]
        if keep is not None:
            numbers.resize_(total)
        return found.resize_(total, rank), elements.resize_(total), empty, numbers


@functools.cache
def _asked(kind: str) -> Callable[[], FilledRows | None]:
    return when_asked(lambda: FilledRows(kind))


def filled_rows(dtype: torch.dtype | None) -> FilledRows | None:
    """What fills rows with values of a type; None if it is not there, or not yet."""
    kind = None if dtype is None else _VALUES.get(dtype.itemsize)
    return None if kind is None else _asked(kind)()


# ---- text


def filled_rows_code(kind: str) -> str:
    """LLVM's text, of values that move as LLVM's type `kind`."""
    declarations: dict[str, str] = {}
    texts = [_function(name, kind, declarations) for name in PLACES]
    return "\n".join([*declarations.values(), *texts])


def _function(name: str, kind: str, declarations: dict[str, str]) -> str:
    e = Code(name, ["ptr a"], 1, declarations, is_public=True)
    a = places_of(e, PLACES[name])
    words = words_of(e, a["words"], WORDS)
    next_row, total, fine = e.variable("i64", "0"), e.variable("i64", "0"), e.variable("i1", "true")
    default = e.get(kind, a["default"])

    def put(row: str, value: str) -> str:
        """Writes an element but for the rest of its index; gives its place."""
        place = e.get("i64", total)
        e.set("i64", e.at(a["found"], e.mul(place, words["rank"]), "i64"), row)
        e.set(kind, e.at(a["elements"], place, kind), value)
        if "segments" in a:
            e.set("i32", e.at(a["segments"], place, "i32"), e.let(f"trunc i64 {row} to i32"))
        e.set("i64", total, e.add(place, 1))
        return place

    def put_default(row: str) -> None:
        place = put(row, default)
        with e.loop(1, words["rank"]) as axis:
            e.set("i64", e.at(a["found"], e.add(e.mul(place, words["rank"]), axis), "i64"), "0")
        e.set("i8", e.at(a["empty"], row, "i8"), _TRUE)

    with e.loop(0, words["count"]) as i:
        is_kept = "true"
        if "keep" in a:
            is_kept = e.let(f"icmp ne i8 {e.get('i8', e.at(a['keep'], i, 'i8'))}, 0")
        start = e.mul(i, words["rank"])
        row = e.get("i64", e.at(a["indices"], start, "i64"))
        is_ordered = e.let(f"icmp sge i64 {e.add(row, 1)}, {e.get('i64', next_row)}")
        is_fine = e.let(f"and i1 {e.within(row, words['rows'])}, {is_ordered}")
        wrong = e.let(f"and i1 {is_kept}, {e.let(f'xor i1 {is_fine}, true')}")
        with e.when(wrong):
            e.set("i1", fine, "false")
        with e.when(e.let(f"and i1 {is_kept}, {is_fine}")):
            with e.loop(e.get("i64", next_row), row) as missing:
                put_default(missing)
            e.set("i64", next_row, e.add(row, 1))
            e.set("i8", e.at(a["empty"], row, "i8"), _FALSE)
            place = put(row, e.get(kind, e.at(a["values"], i, kind)))
            to = e.mul(place, words["rank"])
            with e.loop(1, words["rank"]) as axis:
                number = e.get("i64", e.at(a["indices"], e.add(start, axis), "i64"))
                e.set("i64", e.at(a["found"], e.add(to, axis), "i64"), number)
            if "places" in a:
                e.set("i64", e.at(a["places"], i, "i64"), place)
    with e.when(e.get("i1", fine)), e.loop(e.get("i64", next_row), words["rows"]) as missing:
        put_default(missing)
    with e.when(e.let(f"xor i1 {e.get('i1', fine)}, true")):
        e.set("i64", a["notes"], "1")
    e.set("i64", e.at(a["notes"], 1, "i64"), e.get("i64", total))
    return e.text()
