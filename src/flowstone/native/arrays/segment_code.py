"""LLVM's text of sums over segments of picked rows, of their gradients, and of reductions of all rows.

Element i of a call picks row ``indices[i]``; its segment is ``ids[i]``, and these do not fall. `reduce` sums
up the rows of each segment, a few vectors of columns at a time in registers; threads share the elements, from
the first of a segment on. `gather_up` does so with all rows in their order, by any of `ROWS`. `spread` adds
each segment's row to the rows that it picked; threads share these, so that no two add to the same, and a
row's terms come in the order of the elements.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import FLOATING, HALF, KINDS, Emitter, kind_of
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, load, store

__all__ = ["PLACES", "ROWS", "ROW_PLACES", "WORDS", "row_code", "segment_code"]

WORDS = ("threads", "count", "rows", "segments", "columns")
"""The whole numbers of a call: how many elements, rows that can be picked, segments; elements of a row."""
PLACES = {
    "reduce": ("notes", "indices", "ids", "data", "out"),
    "spread": ("notes", "indices", "ids", "data", "out"),
    "rank": ("notes", "indices", "order", "ranks", "found"),
}
"""The addresses that each function takes after that of the numbers, in order. `reduce` makes `out` [segments,
columns] of `data` [rows, columns]; `spread` adds to `out` [rows, columns], 0 at first, of `data` [segments,
columns], in float32 if they are float16. `rank` takes sorted `indices`, and the elements that they are of,
`order` (int64); it makes the rank of each element's index and the indices that there are, both of the
indices' type; the second of `notes` is how many. The first of `notes`, int64, becomes 1 where a number is out
of bounds or ids fall; the results have no meaning then."""
ROW_PLACES = {"gather_up": ("notes", "ids", "data", "out")}
"""The same of `row_code`: `out` is made of as many rows of `data` as there are elements."""
ROWS = ("sum", "mean", "min", "max", "prod")
"""What `row_code` reduces by. Segments without rows have 0, or 1 of products; those with a NaN are NaN."""
_TOGETHER = (4, 2, 1)  # vectors
_AHEAD = 16  # elements


def segment_code(how: str, types: tuple[str, str, str], lanes: int) -> str:
    """The text of the functions for a "sum", "mean", or "sqrtn"; `types`: of the rows, indices, and ids."""
    declarations: dict[str, str] = {}
    parts = [_reduce(how, types, lanes, declarations), _spread(how, types, lanes, declarations)]
    parts.append(_rank(types, lanes, declarations))
    for name in ("reduce", "spread"):
        e = Code(name, ["ptr a"], lanes, declarations, is_public=True)
        share(e, f"{name}_some")
        parts.append(e.text())
    return "\n".join([*declarations.values(), *parts])


def row_code(how: str, types: tuple[str, str], lanes: int) -> str:
    """The text of `gather_up` by one of `ROWS`; `types`: of the rows and ids."""
    declarations: dict[str, str] = {}
    of = _Elements("gather_up", (types[0], "", types[1]), lanes, declarations, ROW_PLACES)
    of.how = how
    parts = [_reduce_segments(of)]
    e = Code("gather_up", ["ptr a"], lanes, declarations, is_public=True)
    share(e, "gather_up_some")
    return "\n".join([*declarations.values(), *parts, e.text()])


def _rank(types: tuple[str, str, str], lanes: int, declarations: dict[str, str]) -> str:
    e = Code("rank", ["ptr a"], lanes, declarations, is_public=True)
    a = places_of(e, PLACES["rank"])
    words, kind = words_of(e, a["words"], WORDS), KINDS[types[1]]
    ranked, fine = e.variable("i64", "0"), e.variable("i1", "true")
    with e.loop(0, words["count"]) as i:
        index = e.get(kind, e.at(a["indices"], i, kind))
        wide = index if kind == "i64" else e.let(f"sext {kind} {index} to i64")
        e.set("i1", fine, e.let(f"and i1 {e.get('i1', fine)}, {e.within(wide, words['rows'])}"))
        last = e.get(kind, e.at(a["indices"], e.most(e.sub(i, 1), 0), kind))
        is_new = e.let(f"or i1 {e.let(f'icmp eq i64 {i}, 0')}, {e.let(f'icmp ne {kind} {index}, {last}')}")
        number = e.add(e.get("i64", ranked), e.let(f"zext i1 {is_new} to i64"))
        e.set("i64", ranked, number)
        rank = e.sub(number, 1)
        e.set(kind, e.at(a["found"], rank, kind), index)
        to = e.at(a["ranks"], e.get("i64", e.at(a["order"], i, "i64")), kind)
        e.set(kind, to, rank if kind == "i64" else e.let(f"trunc i64 {rank} to {kind}"))
    with e.when(e.let(f"xor i1 {e.get('i1', fine)}, true")):
        e.set("i64", a["notes"], "1")
    e.set("i64", e.at(a["notes"], 1, "i64"), e.get("i64", ranked))
    return e.text()


class _Elements:
    """The elements of a call, as a thread's text reads them."""

    def __init__(
        self,
        name: str,
        types: tuple[str, str, str],
        lanes: int,
        declarations: dict[str, str],
        places: Mapping[str, Sequence[str]] = PLACES,
    ) -> None:
        self.e = Code(f"{name}_some", ["ptr a"], lanes, declarations)
        self.a = places_of(self.e, places[name])
        self.words = words_of(self.e, self.a["words"], WORDS)
        self.dtype, self._index, self._id = types
        self.how = "sum"
        self.out = self.dtype  # of the rows of the result

    @property
    def total(self) -> str:
        """The type that elements are reduced in: sums and products of float16 are rounded at the end, as
        ATen's are."""
        return "float32" if self.dtype == HALF and self.how not in ("min", "max") else self.dtype

    @property
    def picks(self) -> bool:
        """Whether elements pick rows, or are them."""
        return bool(self._index)

    def index(self, i: str) -> str:
        """The row that element i picks, or is."""
        return self._number("indices", self._index, i) if self._index else i

    def id(self, i: str) -> str:
        """Its segment."""
        return self._number("ids", self._id, i)

    def _number(self, name: str, dtype: str, i: str) -> str:
        kind = KINDS[dtype]
        found = self.e.get(kind, self.e.at(self.a[name], i, kind))
        return found if kind == "i64" else self.e.let(f"sext {kind} {found} to i64")

    def end_of_segment(self, start: str, end: str) -> str:
        """The first element after `start` that is of another segment, or the end."""
        e = self.e
        first, place = self.id(start), e.variable("i64", start)
        with e.repeat() as leave:
            following = e.add(e.get("i64", place), 1)
            e.set("i64", place, following)
            leave(e.let(f"icmp sge i64 {following}, {end}"))
            leave(e.let(f"icmp ne i64 {self.id(following)}, {first}"))
        return e.get("i64", place)

    @contextlib.contextmanager
    def segments(self, start: str, end: str) -> Iterator[tuple[str, str, str, str]]:
        """(segment, first element, end, the segment before): what is written within runs for each segment in
        a range of elements, until one is wrong; its indices are not looked at."""
        e = self.e
        place, before = e.variable("i64", start), e.variable("i64", "-1")
        with e.when(e.let(f"icmp sgt i64 {start}, 0")):
            e.set("i64", before, self.id(e.sub(start, 1)))
        with e.repeat() as leave:
            first = e.get("i64", place)
            leave(e.let(f"icmp sge i64 {first}, {end}"))
            segment, last = self.id(first), e.get("i64", before)
            fine = e.let(f"icmp sgt i64 {segment}, {last}")
            for condition in (e.within(segment, self.words["segments"]), e.let(f"icmp sge i64 {last}, -1")):
                fine = e.let(f"and i1 {fine}, {condition}")
            self.leave_unless(leave, fine)
            stop = self.end_of_segment(first, end)
            yield segment, first, stop, last
            e.set("i64", before, segment)
            e.set("i64", place, stop)

    def leave_unless(self, leave: Callable[[str], None], fine: str) -> None:
        """Notes what is wrong, and ends the loop."""
        wrong = self.e.let(f"xor i1 {fine}, true")
        with self.e.when(wrong):
            self.e.set("i64", self.a["notes"], "1")
        leave(wrong)

    def scale(self, how: str, count: str) -> str:
        """1 over the size of a segment, or over its square root; of float16 rounded once."""
        one, dtype = self.e.one, "float32" if self.dtype == HALF else self.dtype
        size = self.e.let(f"sitofp i64 {count} to {kind_of(self.dtype)}")
        size = one.convert(size, self.dtype, dtype)
        if how == "sqrtn":
            size = one.intrinsic("sqrt", dtype, size)
        return one.convert(one.binary("fdiv", dtype, one.constant(dtype, 1), size), dtype, self.dtype)

    def plus(self, some: Emitter, a: str, b: str) -> str:
        """a + b."""
        return some.binary("fadd" if self.dtype in FLOATING else "add", self.total, a, b)

    def joined(self, some: Emitter, a: str, b: str) -> str:
        """a and b, reduced to one."""
        is_float = self.dtype in FLOATING
        if self.how == "prod":
            return some.binary("fmul" if is_float else "mul", self.total, a, b)
        if self.how not in ("min", "max"):
            return self.plus(some, a, b)
        if is_float and some.lanes == 1:
            # Each number waits for the one before, and LLVM's minimum of one number takes eight cycles more.
            is_beyond = some.compare(f"fcmp {'olt' if self.how == 'min' else 'ogt'}", self.dtype, b, a)
            found = some.select(is_beyond, self.dtype, b, a)
            return some.select(some.compare("fcmp uno", self.dtype, b, b), self.dtype, b, found)
        name = f"{self.how}imum" if is_float else f"{'u' if self.dtype == 'uint8' else 's'}{self.how}"
        return some.intrinsic(name, self.dtype, a, b)

    def times(self, some: Emitter, x: str, scale: str) -> str:
        """x times a number."""
        return some.binary("fmul", self.dtype, x, in_all_lanes(some, kind_of(self.dtype), scale))

    def over(self, some: Emitter, x: str, count: str) -> str:
        """x divided by a whole number; truncated of integers, for which float64 is exact up to 32 bits."""
        if self.dtype == "int64":
            return some.binary("sdiv", self.dtype, x, in_all_lanes(some, "i64", count))
        dtype = self.dtype if self.dtype in FLOATING else "float64"
        size = in_all_lanes(some, kind_of(dtype), self.e.let(f"sitofp i64 {count} to {kind_of(dtype)}"))
        found = some.binary("fdiv", dtype, some.convert(x, self.dtype, dtype), size)
        return some.convert(found, dtype, self.dtype)

    def row(self, name: str, number: str) -> str:
        """Where a row is."""
        dtype = self.out if name == "out" else self.dtype
        return self.e.at(self.a[name], self.e.mul(number, self.words["columns"]), kind_of(dtype))


def _reduce(how: str, types: tuple[str, str, str], lanes: int, declarations: dict[str, str]) -> str:
    """A thread's segments; it also clears the empty ones before each, and after the last of all."""
    return _reduce_segments(_Elements("reduce", types, lanes, declarations), how)


def _reduce_segments(of: _Elements, how: str = "sum") -> str:
    e, count = of.e, of.words["count"]
    _, start, end = my_part(e, count)
    start, end = _first_of_segment(of, start), _first_of_segment(of, end)
    with of.segments(start, end) as (segment, first, stop, last):
        _clear(of, e.add(last, 1), segment)
        fine = "true"
        if of.picks:
            picked = e.variable("i64", first)
            with e.repeat() as leave:
                i = e.get("i64", picked)
                leave(e.let(f"icmp sge i64 {i}, {stop}"))
                of.leave_unless(leave, e.within(of.index(i), of.words["rows"]))
                e.set("i64", picked, e.add(i, 1))
            fine = e.let(f"icmp eq i64 {e.get('i64', picked)}, {stop}")
        with e.when(fine):
            scale = "" if how == "sum" else of.scale(how, e.sub(stop, first))
            _add_up(of, segment, (first, stop), scale)
        with e.when(e.let(f"icmp eq i64 {stop}, {count}")):
            _clear(of, e.add(segment, 1), of.words["segments"])
    return e.text()


def _first_of_segment(of: _Elements, element: str) -> str:
    """The first element from this one on that begins a segment, or the end."""
    e = of.e
    place = e.variable("i64", element)
    with e.repeat() as leave:
        here = e.get("i64", place)
        leave(e.let(f"icmp eq i64 {here}, 0"))
        leave(e.let(f"icmp sge i64 {here}, {of.words['count']}"))
        leave(e.let(f"icmp ne i64 {of.id(here)}, {of.id(e.sub(here, 1))}"))
        e.set("i64", place, e.add(here, 1))
    return e.get("i64", place)


def _clear(of: _Elements, start: str, end: str) -> None:
    """Makes rows of the result what segments without rows have."""
    e = of.e
    to = e.mul(start, of.words["columns"])
    for i, masks in e.vectors(e.mul(e.sub(end, start), of.words["columns"])):
        store(e, of.dtype, e.constant(of.dtype, int(of.how == "prod")), of.a["out"], e.add(to, i), masks[0])


def _add_up(of: _Elements, segment: str, elements: tuple[str, str], scale: str) -> None:
    """The sum of a segment's rows, some columns at a time."""
    e, columns = of.e, of.words["columns"]
    to = of.row("out", segment)
    done = "0"
    for number, some in (*((n, e) for n in _TOGETHER), (1, e.one)):
        size = number * some.lanes
        end = e.mul(e.quotient(columns, size), size)
        kind = some.type(of.total)
        with e.loop(done, end, size) as c:
            sums = [
                e.variable(kind, _start(of, some, elements[0], e.add(c, j * some.lanes)))
                for j in range(number)
            ]
            with e.loop(*elements) as i:
                source = of.row("data", of.index(i))
                if of.picks:
                    _fetch(of, i, c)
                for j, total in enumerate(sums):
                    given = load(some, of.dtype, source, e.add(c, j * some.lanes))
                    given = some.convert(given, of.dtype, of.total)
                    e.set(kind, total, of.joined(some, e.get(kind, total), given))
            for j, total in enumerate(sums):
                found = some.convert(e.get(kind, total), of.total, of.dtype)
                found = of.times(some, found, scale) if scale else found
                if of.how == "mean":
                    found = of.over(some, found, e.sub(elements[1], elements[0]))
                store(some, of.dtype, found, to, e.add(c, j * some.lanes))
        done = end


def _start(of: _Elements, some: Emitter, first: str, column: str) -> str:
    """What a reduction begins with: the first row, of those that have nothing neutral."""
    if of.how in ("min", "max"):
        return load(some, of.dtype, of.row("data", of.index(first)), column)
    return some.constant(of.total, int(of.how == "prod"))


def _fetch(of: _Elements, i: str, column: str) -> None:
    """Asks for a row that is picked a little later; an address that is none does no harm."""
    e, name = of.e, "llvm.prefetch.p0"
    e.declarations[name] = f"declare void @{name}(ptr, i32, i32, i32)"
    later = of.row("data", of.index(e.least(e.add(i, _AHEAD), e.sub(of.words["count"], 1))))
    e.do(f"call void @{name}(ptr {e.at(later, column, kind_of(of.dtype))}, i32 0, i32 3, i32 1)")


def _spread(how: str, types: tuple[str, str, str], lanes: int, declarations: dict[str, str]) -> str:
    """A thread's rows of the result: all elements are looked at, and those that picked one of them added."""
    of = _Elements("spread", types, lanes, declarations)
    of.out = of.total
    e, columns = of.e, of.words["columns"]
    _, start, end = my_part(e, of.words["rows"])
    mine = e.sub(end, start)
    with of.segments("0", of.words["count"]) as (segment, first, stop, _):
        scale = "" if how == "sum" else of.scale(how, e.sub(stop, first))
        source = of.row("data", segment)
        element = e.variable("i64", first)
        with e.repeat() as leave:
            i = e.get("i64", element)
            leave(e.let(f"icmp sge i64 {i}, {stop}"))
            row = of.index(i)
            of.leave_unless(leave, e.within(row, of.words["rows"]))
            with e.when(e.within(e.sub(row, start), mine)):
                to, done = of.row("out", row), "0"
                for some in (e, e.one):
                    whole = e.mul(e.quotient(columns, some.lanes), some.lanes)
                    with e.loop(done, whole, some.lanes) as c:
                        given, old = load(some, of.dtype, source, c), load(some, of.out, to, c)
                        given = of.times(some, given, scale) if scale else given
                        given = some.convert(given, of.dtype, of.out)
                        store(some, of.out, of.plus(some, old, given), to, c)
                    done = whole
            e.set("i64", element, e.add(i, 1))
    return e.text()
