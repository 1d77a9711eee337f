"""LLVM's text of reductions of rows into the rows that numbers in any order name.

Row i of `data` [count, columns] goes into row ``ids[i]`` of `out` [segments, columns]; a negative number
drops it. Threads share the rows of the result: each looks at all numbers, and takes the rows that go into its
own, in their order. So the result does not depend on how many threads there are, and a sum is ATen's, to the
bit; sums and products of float16 are made in an `out` of float32. An extreme begins with the first row that
comes, which `seen` (a byte a segment) notes. `pick` adds up rows of a table that `indices` pick, instead of
rows one after the other: each is read where it is, and goes straight into the row of its number.
"""

from __future__ import annotations

import math

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import FLOATING, HALF, KINDS, Emitter, kind_of
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import lane_mask, load, store

__all__ = ["PLACES", "REDUCTIONS", "WORDS", "unsorted_code"]

WORDS = ("threads", "count", "segments", "columns", "rows")
PLACES = {
    "reduce": ("notes", "ids", "data", "out", "seen"),
    "pick": ("notes", "ids", "data", "out", "indices"),
}
"""The addresses that each function takes after that of the numbers. `notes`, int64, becomes 1 where a number
is not below the number of segments, or an index is none of the table's `rows`; the result has no meaning
then."""
_AHEAD = 16  # elements
REDUCTIONS = ("sum", "prod", "min", "max")
_LARGEST = {
    HALF: 65504.0, "float32": (2 - 2**-23) * 2.0**127, "float64": math.ldexp(2 - 2**-52, 1023), "uint8": 255,
}  # fmt: skip
_BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


def unsorted_code(
    how: str, dtype: str, ids: str, lanes: int, indices: str = "", with_absent: bool = False
) -> str:
    """The text of `reduce` by one of `REDUCTIONS`, for these types of the rows and numbers; with a type of
    `indices` that of `pick`, by "sum" alone, where negative ones stand for a row of zeros if there are such
    (`with_absent`).
    """
    declarations: dict[str, str] = {}
    rows = _Rows(how, dtype, ids, lanes, declarations, indices)
    rows.with_absent = with_absent
    some = rows.text()
    e = Code(rows.name, ["ptr a"], lanes, declarations, is_public=True)
    share(e, f"{rows.name}_some")
    return "\n".join([*declarations.values(), some, e.text()])


class _Rows:
    """A thread's part, the rows of the result from `start` to `end`; `whole` columns are whole vectors, and
    some are `left`."""

    def __init__(
        self, how: str, dtype: str, ids: str, lanes: int, declarations: dict[str, str], indices: str
    ) -> None:
        self.name = "pick" if indices else "reduce"
        self.e = e = Code(f"{self.name}_some", ["ptr a"], lanes, declarations)
        self.a = places_of(e, PLACES[self.name])
        self.index_kind, self.with_absent = KINDS[indices] if indices else "", False
        self.words = words_of(e, self.a["words"], WORDS)
        self.how, self.dtype, self.id_kind = how, dtype, KINDS[ids]
        self.notes_first = how in ("min", "max")
        self.out = "float32" if dtype == HALF and not self.notes_first else dtype
        columns = self.words["columns"]
        _, self.start, self.end = my_part(e, self.words["segments"])
        self.mine = e.sub(self.end, self.start)
        self.whole = e.mul(e.quotient(columns, lanes), lanes)
        self.left = e.sub(columns, self.whole)

    def text(self) -> str:
        e = self.e
        if self.notes_first:
            with e.loop(self.start, self.end) as i:
                e.set("i8", e.at(self.a["seen"], i, "i8"), "0")
        else:
            self.fill(self.start, self.end)
        is_narrow = e.let(f"icmp eq i64 {self.words['columns']}, 1")
        with e.when(is_narrow):
            self.take_all(narrow=True)
        with e.when(e.let(f"xor i1 {is_narrow}, true")):
            self.take_all(narrow=False)
        if self.notes_first:
            with e.loop(self.start, self.end) as i:
                seen = e.get("i8", e.at(self.a["seen"], i, "i8"))
                with e.when(e.let(f"icmp eq i8 {seen}, 0")):
                    self.fill(i, e.add(i, 1))
        return e.text()

    def fill(self, start: str, end: str) -> None:
        """Gives rows of the result the reduction of nothing."""
        e = self.e
        to = e.mul(start, self.words["columns"])
        for i, masks in e.vectors(e.mul(e.sub(end, start), self.words["columns"])):
            store(e, self.out, e.constant(self.out, self.neutral()), self.a["out"], e.add(to, i), masks[0])

    def neutral(self) -> float:
        """The reduction of nothing."""
        if not self.notes_first:
            return int(self.how == "prod")
        largest = _LARGEST.get(self.dtype) or (1 << _BITS[self.dtype]) - 1
        if self.how == "min":
            return largest
        return -largest if self.dtype in FLOATING else 0 if self.dtype == "uint8" else -largest - 1

    def take_all(self, narrow: bool) -> None:
        e = self.e
        with e.loop(0, self.words["count"]) as i:
            number = self.number("ids", self.id_kind, i)
            with e.when(e.let(f"icmp sge i64 {number}, {self.words['segments']}")):
                e.set("i64", self.a["notes"], "1")
            is_mine = e.within(e.sub(number, self.start), self.mine)
            if not self.index_kind:
                with e.when(is_mine):
                    self.take(number, i, narrow)
                return
            self.fetch(i)
            row = self.number("indices", self.index_kind, i)
            is_there = e.within(row, self.words["rows"])
            wrong = e.let(f"xor i1 {is_there}, true")
            if self.with_absent:
                wrong = e.let(f"icmp sge i64 {row}, {self.words['rows']}")
            with e.when(wrong):
                e.set("i64", self.a["notes"], "1")
            with e.when(e.let(f"and i1 {is_mine}, {is_there}")):
                self.take(number, row, narrow)

    def number(self, name: str, kind: str, i: str) -> str:
        e = self.e
        found = e.get(kind, e.at(self.a[name], i, kind))
        return found if kind == "i64" else e.let(f"sext {kind} {found} to i64")

    def fetch(self, i: str) -> None:
        """Asks for a row that is picked a little later; an address that is none does no harm."""
        e, name = self.e, "llvm.prefetch.p0"
        e.declarations[name] = f"declare void @{name}(ptr, i32, i32, i32)"
        later = e.least(e.add(i, _AHEAD), e.sub(self.words["count"], 1))
        row = e.mul(self.number("indices", self.index_kind, later), self.words["columns"])
        address = e.at(self.a["data"], row, kind_of(self.dtype))
        e.do(f"call void @{name}(ptr {address}, i32 0, i32 3, i32 1)")

    def take(self, number: str, i: str, narrow: bool) -> None:
        """Takes row i into a row of the result."""
        if not self.notes_first:
            self.move(number, i, narrow, joins=True)
            return
        e = self.e
        place = e.at(self.a["seen"], number, "i8")
        is_first = e.let(f"icmp eq i8 {e.get('i8', place)}, 0")
        with e.when(is_first):
            self.move(number, i, narrow, joins=False)
            e.set("i8", place, "1")
        with e.when(e.let(f"xor i1 {is_first}, true")):
            self.move(number, i, narrow, joins=True)

    def move(self, number: str, i: str, narrow: bool, joins: bool) -> None:
        """Puts row i into a row of the result, or joins it to what is there."""
        e, columns = self.e, self.words["columns"]
        if narrow:
            self.elements(e.one, number, i, "", joins)
            return
        to, source = e.mul(number, columns), e.mul(i, columns)
        with e.loop(0, self.whole, e.lanes) as c:
            self.elements(e, e.add(to, c), e.add(source, c), "", joins)
        with e.when(e.let(f"icmp sgt i64 {self.left}, 0")):
            mask = lane_mask(e, self.left)
            self.elements(e, e.add(to, self.whole), e.add(source, self.whole), mask, joins)

    def elements(self, some: Emitter, to: str, source: str, mask: str, joins: bool) -> None:
        """A vector's elements, moved or joined to what is there."""
        given = some.convert(load(some, self.dtype, self.a["data"], source, mask), self.dtype, self.out)
        if joins:
            given = self.joined(some, load(some, self.out, self.a["out"], to, mask), given)
        store(some, self.out, given, self.a["out"], to, mask)

    def joined(self, some: Emitter, a: str, b: str) -> str:
        """Two elements, reduced to one."""
        is_float = self.dtype in FLOATING
        if self.how in ("sum", "prod"):
            name = {"sum": "add", "prod": "mul"}[self.how]
            return some.binary(f"f{name}" if is_float else name, self.out, a, b)
        name = f"{self.how}imum" if is_float else f"{'u' if self.dtype == 'uint8' else 's'}{self.how}"
        return some.intrinsic(name, self.dtype, a, b)
