"""LLVM's text of solutions of banded triangular and of tridiagonal systems, row after row.

Some columns of the right-hand side are solved at once; threads share the matrices.
Tridiagonal systems are solved by elimination, with pivots if asked: of two rows the one with the larger first
element goes first, which puts a third diagonal above. Products are rounded before they are subtracted.
"""

from __future__ import annotations

from collections.abc import Callable

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import KINDS, Emitter
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, load, store

__all__ = ["PLACES", "WORDS", "band_code"]

WORDS = ("threads", "matrices", "size", "bands", "columns", "backward")
"""The whole numbers of a call; `backward`: the last unknown is the first that is known."""
PLACES = {
    "substitute": ("rows", "sides", "out"),
    "eliminate": ("rows", "upper", "sides"),
}
"""The addresses that each function takes after that of the words. `substitute`: `rows` has size x bands
elements a matrix, which each row has up to so far from the diagonal; `sides` and `out` are [matrices,
size, columns]. `eliminate`: `rows`, [matrices, 3, size], has the diagonals above, main and below, `upper`,
[matrices, size, 3], keeps what they become; `sides` become the solutions."""


_InColumns = Callable[[Emitter, str], None]


def band_code(dtype: str, has_pivots: bool, lanes: int) -> str:
    """The text for a type of float."""
    declarations: dict[str, str] = {}
    parts = [_substitute(dtype, lanes, declarations), _eliminate(dtype, has_pivots, lanes, declarations)]
    for name in PLACES:
        e = Code(name, ["ptr a"], lanes, declarations, is_public=True)
        share(e, f"{name}_some")
        parts.append(e.text())
    return "\n".join([*declarations.values(), *parts])


class _Matrices:
    """What both functions read and write of one matrix after the other."""

    def __init__(self, name: str, dtype: str, lanes: int, declarations: dict[str, str]) -> None:
        self.e = Code(f"{name}_some", ["ptr a"], lanes, declarations)
        self.a = places_of(self.e, PLACES[name])
        self.words = words_of(self.e, self.a["words"], WORDS)
        self.dtype, self.kind = dtype, KINDS[dtype]

    def part(self, name: str, matrix: str, size: str) -> str:
        """Where what an array has of a matrix begins, which is so many elements."""
        return self.e.at(self.a[name], self.e.mul(matrix, size), self.kind)

    def get(self, address: str, i: str | int) -> str:
        return self.e.get(self.kind, self.e.at(address, i, self.kind))

    def set(self, address: str, i: str | int, value: str) -> None:
        self.e.set(self.kind, self.e.at(address, i, self.kind), value)

    def row(self, address: str, i: str) -> str:
        """Where a row of a right-hand side is."""
        return self.e.at(address, self.e.mul(i, self.words["columns"]), self.kind)

    def minus(self, some: Emitter, a: str, b: str, c: str) -> str:
        """a - b c."""
        return some.binary("fsub", self.dtype, a, some.binary("fmul", self.dtype, b, c))

    def in_columns(self, write: _InColumns) -> None:
        """Runs what is written for all columns: for an emitter, and the first column of its lanes."""
        e, columns, done = self.e, self.words["columns"], "0"
        for some in (e, e.one):
            end = e.mul(e.quotient(columns, some.lanes), some.lanes)
            with e.loop(done, end, some.lanes) as c:
                write(some, c)
            done = end

    def everywhere(self, some: Emitter, value: str) -> str:
        return in_all_lanes(some, self.kind, value)


def _substitute(dtype: str, lanes: int, declarations: dict[str, str]) -> str:
    of = _Matrices("substitute", dtype, lanes, declarations)
    e, size, bands = of.e, of.words["size"], of.words["bands"]
    backward = e.let(f"icmp ne i64 {of.words['backward']}, 0")
    sign = e.let(f"select i1 {backward}, i64 1, i64 -1")
    _, start, end = my_part(e, of.words["matrices"])
    side = e.mul(size, of.words["columns"])
    with e.loop(start, end) as matrix:
        rows = of.part("rows", matrix, e.mul(size, bands))
        given, out = (of.part(name, matrix, side) for name in ("sides", "out"))
        with e.loop(0, size) as step:
            last = e.sub(e.sub(size, step), 1)
            i = e.let(f"select i1 {backward}, i64 {last}, i64 {step}")
            row, known = e.at(rows, e.mul(i, bands), of.kind), e.least(e.add(step, 1), bands)
            source, to = of.row(given, i), of.row(out, i)

            def solve(some: Emitter, c: str) -> None:
                kind = some.type(dtype)
                left = e.variable(kind, load(some, dtype, source, c))
                with e.loop(1, known) as distance:
                    element = of.everywhere(some, of.get(row, distance))
                    found = load(some, dtype, of.row(out, e.add(i, e.mul(distance, sign))), c)
                    e.set(kind, left, of.minus(some, e.get(kind, left), element, found))
                whole = of.everywhere(some, of.get(row, 0))
                store(some, dtype, some.binary("fdiv", dtype, e.get(kind, left), whole), to, c)

            of.in_columns(solve)
    return e.text()


def _eliminate(dtype: str, has_pivots: bool, lanes: int, declarations: dict[str, str]) -> str:
    of = _Matrices("eliminate", dtype, lanes, declarations)
    e, size = of.e, of.words["size"]
    _, start, end = my_part(e, of.words["matrices"])
    with e.loop(start, end) as matrix:
        triple = e.mul(size, 3)
        diagonals, upper = of.part("rows", matrix, triple), of.part("upper", matrix, triple)
        sides = of.part("sides", matrix, e.mul(size, of.words["columns"]))
        _make_upper(of, diagonals, upper, sides, has_pivots)
        with e.loop(0, size) as step:
            _solve_upper(of, upper, sides, step)
    return e.text()


def _make_upper(of: _Matrices, diagonals: str, upper: str, sides: str, has_pivots: bool) -> None:
    """Makes zeros below the diagonal. The row that is left has two elements."""
    e, size, kind, zero = of.e, of.words["size"], of.kind, of.e.one.constant(of.dtype, 0)
    above, main, below = (e.at(diagonals, e.mul(size, i), kind) for i in range(3))
    first, second = e.variable(kind, of.get(main, 0)), e.variable(kind, of.get(above, 0))
    last = e.sub(size, 1)
    with e.loop(0, last) as i:
        after = e.add(i, 1)
        left = (e.get(kind, first), e.get(kind, second), zero)
        following = (of.get(below, after), of.get(main, after), of.get(above, after))
        swaps = "false"
        if has_pivots:
            sizes = [e.one.intrinsic("fabs", of.dtype, row[0]) for row in (left, following)]
            swaps = e.one.compare("fcmp olt", of.dtype, *sizes)
        pivot = [e.one.select(swaps, of.dtype, b, a) for a, b in zip(left, following)]
        other = [e.one.select(swaps, of.dtype, a, b) for a, b in zip(left, following)]
        factor = e.one.binary("fdiv", of.dtype, other[0], pivot[0])
        for place, element in enumerate(pivot):
            of.set(upper, e.add(e.mul(i, 3), place), element)
        e.set(kind, first, of.minus(e.one, other[1], factor, pivot[1]))
        e.set(kind, second, of.minus(e.one, other[2], factor, pivot[2]))
        here, there = of.row(sides, i), of.row(sides, after)

        def change(some: Emitter, c: str) -> None:
            a, b = load(some, of.dtype, here, c), load(some, of.dtype, there, c)
            chosen = of.e.let(f"select i1 {swaps}, {some.type(of.dtype)} {b}, {some.type(of.dtype)} {a}")
            rest = of.e.let(f"select i1 {swaps}, {some.type(of.dtype)} {a}, {some.type(of.dtype)} {b}")
            store(some, of.dtype, chosen, here, c)
            store(some, of.dtype, of.minus(some, rest, of.everywhere(some, factor), chosen), there, c)

        of.in_columns(change)
    of.set(upper, e.mul(last, 3), e.get(kind, first))


def _solve_upper(of: _Matrices, upper: str, sides: str, step: str) -> None:
    """Solves for the unknown that so many are known behind."""
    e = of.e
    i = e.sub(e.sub(of.words["size"], step), 1)
    row, to = e.at(upper, e.mul(i, 3), of.kind), of.row(sides, i)

    def solve(some: Emitter, c: str) -> None:
        kind = some.type(of.dtype)
        left = e.variable(kind, load(some, of.dtype, to, c))
        with e.loop(1, e.add(e.least(step, 2), 1)) as distance:
            element = of.everywhere(some, of.get(row, distance))
            known = load(some, of.dtype, of.row(sides, e.add(i, distance)), c)
            e.set(kind, left, of.minus(some, e.get(kind, left), element, known))
        whole = of.everywhere(some, of.get(row, 0))
        store(some, of.dtype, some.binary("fdiv", of.dtype, e.get(kind, left), whole), to, c)

    of.in_columns(solve)
