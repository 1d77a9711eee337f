"""Rows that are copied, or of which a part is and the rest is one value, by machine code on a host: padded
arrays, bands of matrices, and arrays side by side, written once. What fills the caches goes past them: a
processor reads a line of memory before it writes there, unless it is told not to keep it.

The code for a size of elements is compiled on a thread when it is first asked for; until then, and where
there is no native tier, `framed_rows` is None. Threads share the rows where that is worth it.
"""

from __future__ import annotations

import array
import functools
import math
from collections.abc import Callable, Mapping, Sequence

import torch

from flowstone.framework.machine import machine
from flowstone.native.codegen.code_library import CodeLibrary, my_part, places_of, share, when_asked, words_of
from flowstone.native.codegen.emitter import SIZES
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import load, read_one, store

__all__ = ["FramedRows", "copy_row", "framed_rows", "framed_rows_code"]

WORDS = (
    "threads", "streams", "count", "columns", "rank", "before", "inner", "rows", "lower", "upper", "pitch",
    "total",
)  # fmt: skip
"""How many rows of how many columns are written, and whether past the caches. Padded ones: how many
dimensions are before the columns, of which `inner` are copied after the `before` first ones. Bands: of how
many rows a matrix is, and how many diagonals below and above the main one are kept. Rows put elsewhere: from
one to the next there, and how many elements they have in all, which the last row may not have."""
PLACES = {
    "pad": ("sizes", "befores", "inners", "value", "x", "out"),
    "band": ("value", "x", "out"),
    "put": ("x", "out"),
    "fill": ("value", "out"),
}
"""`sizes`, `befores` and `inners` are int64 [rank], of the dimensions before the columns."""
_KINDS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
_SHORTEST = 256  # bytes of a row; shorter ones are written faster by two passes
_LINE = 64  # bytes of memory that move together, as many as a vector has here
_PIECE = 1 << 16  # bytes of what one thread copies of a single row


class FramedRows:
    """The functions for a size of elements."""

    def __init__(self, size: int) -> None:
        self._library = CodeLibrary(lambda: framed_rows_code(_KINDS[size], 64 // size), WORDS, PLACES)

    def pad(
        self, x: torch.Tensor, pairs: Sequence[Sequence[int]], value: torch.Tensor
    ) -> torch.Tensor | None:
        """x with so much of the value, of its type, before and after each dimension; None for short rows,
        so few that threads could not share them, and other layouts."""
        dims = [n + before + after for n, (before, after) in zip(x.shape, pairs)]
        sizes, befores, inners = _merged(dims, x.shape, pairs)
        columns, count = sizes[-1], math.prod(sizes[:-1])
        if not self._suits(x, count, columns):
            return None
        lists = [array.array("q", each[:-1] or [0]) for each in (sizes, befores, inners)]
        words = {
            "count": count, "columns": columns, "rank": len(sizes) - 1, "before": befores[-1],
            "inner": inners[-1],
        }  # fmt: skip
        places = dict(zip(("sizes", "befores", "inners"), [each.buffer_info()[0] for each in lists]))
        return self._written("pad", x, x.new_empty(dims), value, words, places)

    def band(self, x: torch.Tensor, lower: int, upper: int) -> torch.Tensor | None:
        """Matrices with zeros but for so many diagonals below and above the main one; None for short rows,
        so few that threads could not share them, and other layouts."""
        rows, columns = x.shape[-2:]
        count = math.prod(x.shape[:-1])
        if not self._suits(x, count, columns):
            return None
        words = {"count": count, "columns": columns, "rows": rows, "lower": lower, "upper": upper}
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        return self._written("band", x, out, torch.zeros((), dtype=x.dtype), words, {})

    def join(self, xs: Sequence[torch.Tensor], axis: int, is_new: bool) -> torch.Tensor | None:
        """Arrays one after the other along an axis, or a new one; None for short rows and other layouts, and
        where sizes do not go together."""
        first = xs[0]
        axis %= first.ndim + is_new
        start, end = first.shape[:axis], first.shape[axis + (not is_new) :]
        for x in xs:
            if not x.is_contiguous() or x.shape[:axis] != start or x.shape[axis + (not is_new) :] != end:
                return None
        columns = [math.prod(x.shape[axis:]) for x in xs]
        if min(columns) * first.itemsize < _SHORTEST:
            return None
        count, pitch = math.prod(start), sum(columns)
        out = first.new_empty((*start, len(xs) if is_new else sum(x.shape[axis] for x in xs), *end))
        to, words = out.data_ptr(), self._words(out)
        for x, width in zip(xs, columns):
            words |= {"count": count, "columns": width, "pitch": pitch, "total": x.numel()}
            if count == 1:
                piece = _PIECE // x.itemsize
                words |= {"count": -(-width // piece), "columns": piece, "pitch": piece}
            self._library.call("put", words, {"x": x, "out": to})
            to += width * x.itemsize
        return out

    def fill(self, out: torch.Tensor, value: torch.Tensor) -> None:
        """Writes the value, of its type, all over contiguous memory."""
        piece = _PIECE // out.itemsize
        words = {"count": -(-out.numel() // piece), "columns": piece, "pitch": piece, "total": out.numel()}
        self._library.call("fill", {**words, **self._words(out)}, {"value": value, "out": out})

    def _words(self, out: torch.Tensor) -> dict[str, int]:
        """How many threads write it, and whether past the caches."""
        profile = machine.current().profile
        has_team = out.numel() >= profile.native_team
        streams = out.numel() * out.itemsize >= profile.streamed_copies
        return {"threads": torch.get_num_threads() if has_team else 1, "streams": int(streams)}

    def _suits(self, x: torch.Tensor, count: int, columns: int) -> bool:
        is_long = columns * x.itemsize >= _SHORTEST
        return is_long and x.is_contiguous() and count >= torch.get_num_threads()

    def _written(
        self,
        name: str,
        x: torch.Tensor,
        out: torch.Tensor,
        value: torch.Tensor,
        words: Mapping[str, int],
        places: Mapping[str, int | torch.Tensor],
    ) -> torch.Tensor:
        arrays = {**places, "x": x, "out": out, "value": value}
        self._library.call(name, {**words, **self._words(out)}, arrays)
        return out


def _merged(
    dims: Sequence[int], inners: Sequence[int], pairs: Sequence[Sequence[int]]
) -> tuple[list[int], list[int], list[int]]:
    """The sizes, what comes before and the inner sizes, where dimensions without padding are one with that
    before them."""
    sizes, befores, kept = [1], [0], [1]
    for size, inner, (before, after) in zip(dims, inners, pairs):
        if before or after or kept[-1] == sizes[-1] == 1:
            sizes.append(size)
            befores.append(before)
            kept.append(inner)
        else:
            sizes[-1], befores[-1], kept[-1] = sizes[-1] * size, befores[-1] * size, kept[-1] * size
    return sizes, befores, kept


@functools.cache
def _asked(size: int) -> Callable[[], FramedRows | None]:
    return when_asked(lambda: FramedRows(size))


def framed_rows(size: int) -> FramedRows | None:
    """The functions for elements of so many bytes; None if there are none, or not yet."""
    return _asked(size)() if size in _KINDS else None


# ---- text


def framed_rows_code(kind: str, lanes: int) -> str:
    """LLVM's text, of elements of a type and vectors of so many."""
    declarations: dict[str, str] = {}
    texts = []
    for name, part_of in (("pad", _padded), ("band", _banded)):
        e = Code(f"{name}_some", ["ptr a"], lanes, declarations)
        a = places_of(e, PLACES[name])
        words = words_of(e, a["words"], WORDS)
        value = read_one(e, kind, a["value"])
        _, start, end = my_part(e, words["count"])
        with e.loop(start, end) as row:
            before, kept, source = part_of(e, a, words, row)
            to = e.at(a["out"], e.mul(row, words["columns"]), _unit(kind))
            _write_row(e, kind, words, to, e.at(a["x"], source, _unit(kind)), (before, kept), value)
        texts += _ended(e, name)
    texts += [*_pieces(kind, lanes, declarations, "put"), *_pieces(kind, lanes, declarations, "fill")]
    return "\n".join([*declarations.values(), *texts])


def _ended(e: Code, name: str) -> list[str]:
    """The texts of a function that threads share."""
    e.do("fence seq_cst")  # what went past the caches has arrived
    public = Code(name, ["ptr a"], e.lanes, e.declarations, is_public=True)
    share(public, f"{name}_some")
    return [e.text(), public.text()]


def _pieces(kind: str, lanes: int, declarations: dict[str, str], name: str) -> list[str]:
    """The texts of rows that are copied to where others may lie between them, or filled."""
    e = Code(f"{name}_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES[name])
    words = words_of(e, a["words"], WORDS)
    value = read_one(e, kind, a["value"]) if name == "fill" else ""
    _, start, end = my_part(e, words["count"])
    with e.loop(start, end) as row:
        source = e.mul(row, words["columns"])
        kept = e.least(words["columns"], e.sub(words["total"], source))
        to = e.at(a["out"], e.mul(row, words["pitch"]), _unit(kind))
        of = value or e.at(a["x"], source, _unit(kind))
        copy_row(e, kind, words["streams"], to, of, kept, is_value=bool(value))
    return _ended(e, name)


def _unit(kind: str) -> str:
    return f"i{kind.removeprefix('int')}"


def _padded(e: Code, a: dict[str, str], words: dict[str, str], row: str) -> tuple[str, str, str]:
    """How much of a row comes before what is copied, how much that is, and the element where it begins."""
    rest, step = e.variable("i64", row), e.variable("i64", words["inner"])
    source, fits = e.variable("i64", "0"), e.variable("i1", "true")
    with e.loop(0, words["rank"]) as i:
        d = e.sub(e.sub(words["rank"], 1), i)
        size, before, inner = (
            e.get("i64", e.at(a[name], d, "i64")) for name in ("sizes", "befores", "inners")
        )
        now = e.get("i64", rest)
        place = e.sub(e.rest(now, size), before)
        e.set("i64", rest, e.quotient(now, size))
        e.set("i1", fits, e.let(f"and i1 {e.get('i1', fits)}, {e.within(place, inner)}"))
        e.set("i64", source, e.add(e.get("i64", source), e.mul(place, e.get("i64", step))))
        e.set("i64", step, e.mul(e.get("i64", step), inner))
    is_inside = e.get("i1", fits)
    found = e.let(f"select i1 {is_inside}, i64 {e.get('i64', source)}, i64 0")
    before = e.let(f"select i1 {is_inside}, i64 {words['before']}, i64 0")
    return before, e.let(f"select i1 {is_inside}, i64 {words['inner']}, i64 0"), found


def _banded(e: Code, a: dict[str, str], words: dict[str, str], row: str) -> tuple[str, str, str]:
    """The same of a matrix's row."""
    i, columns = e.rest(row, words["rows"]), words["columns"]
    first = e.least(e.most(e.sub(i, words["lower"]), 0), columns)
    end = e.least(e.add(e.add(i, words["upper"]), 1), columns)
    kept = e.most(e.sub(end, first), 0)
    return first, kept, e.add(e.mul(row, columns), first)


def _write_row(
    e: Code, kind: str, words: dict[str, str], to: str, source: str, sizes: tuple[str, str], value: str
) -> None:
    """Some of the value, what is copied, and the value up to the row's end."""
    before, kept = sizes
    _fill(e, kind, to, before, value)
    to = e.at(to, before, _unit(kind))
    copy_row(e, kind, words["streams"], to, source, kept)
    _fill(e, kind, e.at(to, kept, _unit(kind)), e.sub(e.sub(words["columns"], before), kept), value)


def copy_row(
    e: Code, kind: str, streams: str, to: str, source: str, count: str, is_value: bool = False
) -> None:
    """So many elements, or a value; what goes past the caches fills whole lines of memory."""
    begun = e.let(f"sub i64 0, {e.let(f'ptrtoint ptr {to} to i64')}")
    first = e.quotient(e.rest(begun, _LINE), SIZES[kind])  # elements up to the next line's start
    past = e.let(f"select i1 {e.let(f'icmp ne i64 {streams}, 0')}, i64 {first}, i64 {count}")
    head = e.least(past, count)
    for begin, size, write in (("0", head, store), (head, e.sub(count, head), _store_past)):
        at_to = e.at(to, begin, _unit(kind))
        at_source = source if is_value else e.at(source, begin, _unit(kind))
        for i, masks in e.vectors(size, 4):
            for j, mask in enumerate(masks):
                at = e.add(i, j * e.lanes)
                write(e, kind, source if is_value else load(e, kind, at_source, at, mask), at_to, at, mask)


def _store_past(e: Code, kind: str, value: str, to: str, index: str, mask: str) -> None:
    """Writes a vector past the caches, to where a line of memory begins; one under a mask as usually."""
    if mask:
        store(e, kind, value, to, index, mask)
        return
    address = e.at(to, index, _unit(kind))
    e.do(f"store {e.type(kind)} {value}, ptr {address}, align {_LINE}, !nontemporal !{{i32 1}}")


def _fill(e: Code, kind: str, to: str, count: str, value: str) -> None:
    for i, masks in e.vectors(count):
        store(e, kind, value, to, i, masks[0])
