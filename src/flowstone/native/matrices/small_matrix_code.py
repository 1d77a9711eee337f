"""LLVM's text of elimination, substitution and Cholesky's factors, for many small square matrices.

A matrix is copied to the stack, with its right-hand sides behind its rows, both padded to whole vectors.
Elimination takes the largest element of a column as pivot. Each row that is left has a multiple of the
pivot's row subtracted, right-hand sides included, so that no multiplier is kept; then the unknowns follow
from the last to the first, a vector of right-hand sides at once. A lower triangle is copied with rows and
columns in reverse order, which makes it an upper one. Threads share the matrices. A pivot that is zero or not
finite sets `failed`; what is computed is then without meaning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import KINDS
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, load, store

__all__ = ["MOST", "PLACES", "WORDS", "layout_of", "one_matrix_code", "small_matrix_code"]

MOST = 64
"""The most rows of a matrix, and the most columns of its right-hand sides."""
WORDS = ("threads", "matrices", "size", "columns", "first", "down", "right")
"""The whole numbers of a call: where the first element of a matrix is, how far from it that below lies, and
that to the right. If the latter is negative, right-hand sides have their rows in reverse order, too."""
PLACES = {
    "solve": ("matrices", "sides", "out", "failed"),
    "substitute": ("matrices", "sides", "out", "failed"),
    "invert": ("matrices", "out", "failed"),
    "pivots": ("matrices", "out", "failed"),
    "determine": ("matrices", "out", "failed"),
    "factor": ("matrices", "out", "failed"),
}
"""The addresses that each function takes after that of the words. `sides` and `out` are [matrices, size,
columns]. Of `pivots`, `out` is [matrices, size], the first element with the sign of the rows' permutation; of
`determine`, it is their products, [matrices]. `failed` is one whole number."""


def layout_of(size: int, adjoint: bool, turned: bool) -> dict[str, int]:
    """The words of a matrix, which may be transposed, and may have rows and columns in reverse order."""
    down, right = (1, size) if adjoint else (size, 1)
    sign, first = (-1, size * size - 1) if turned else (1, 0)
    return {"size": size, "first": first, "down": sign * down, "right": sign * right}


def small_matrix_code(dtype: str, lanes: int) -> str:
    """The text for a type of float: functions that are called with the words and the addresses."""
    declarations: dict[str, str] = {}
    parts = []
    for name, write in _WRITERS.items():
        some = Code(f"{name}_some", ["ptr a"], lanes, declarations)
        places = places_of(some, PLACES[name])
        words = words_of(some, places["words"], WORDS)
        _, start, end = my_part(some, words["matrices"])
        matrices = _Matrices(some, dtype, places, words)
        with some.loop(start, end) as matrix:
            write(matrices, matrix)
        matrices.tell()
        e = Code(name, ["ptr a"], lanes, declarations, is_public=True)
        share(e, f"{name}_some")
        parts += [some.text(), e.text()]
    return "\n".join([*declarations.values(), *parts])


def one_matrix_code(
    name: str, how: str, dtype: str, words: Mapping[str, int], lanes: int, declarations: dict[str, str]
) -> str:
    """A function that does this (a name of `PLACES`) with one matrix: its parameters are the addresses."""
    code = Code(name, [f"ptr {place}" for place in PLACES[how]], lanes, declarations)
    places = {place: f"%{place}" for place in PLACES[how]}
    matrix = _Matrices(code, dtype, places, {key: str(words.get(key, 0)) for key in WORDS})
    _WRITERS[how](matrix, "0")
    matrix.tell()
    return code.text()


class _Matrices:
    """What functions read and write of matrices. That at hand lies in `rows`, from one to the next `pitch`
    elements, of which `end` are used: rows that lie a power of two apart would meet in the first cache.
    """

    def __init__(self, e: Code, dtype: str, places: Mapping[str, str], words: Mapping[str, str]) -> None:
        self.e, self.dtype, self.kind = e, dtype, KINDS[dtype]
        self.a, self.words = places, words
        self.size, self.columns = words["size"], words["columns"]
        self.width = self.whole(self.size)  # of the matrix, with its padding
        self.end = e.add(self.width, self.whole(self.columns))
        self.pitch = e.add(self.end, e.lanes)
        self.rows = e.array(self.kind, MOST * (2 * MOST + e.lanes))
        self.has_failed = e.variable("i64", "0")

    def tell(self) -> None:
        """Says that a matrix had a pivot that it must not have."""
        e = self.e
        with e.when(e.let(f"icmp ne i64 {e.get('i64', self.has_failed)}, 0")):
            e.set("i64", self.a["failed"], "1")

    def whole(self, count: str) -> str:
        """The count, rounded up to whole vectors."""
        lanes = self.e.lanes
        return self.e.mul(self.e.quotient(self.e.add(count, lanes - 1), lanes), lanes)

    def part(self, name: str, matrix: str, size: str) -> str:
        """Where what an array has of a matrix begins, which is so many elements."""
        return self.e.at(self.a[name], self.e.mul(matrix, size), self.kind)

    def row(self, i: str) -> str:
        """Where a row of the copy begins."""
        return self.e.at(self.rows, self.e.mul(i, self.pitch), self.kind)

    def get(self, address: str, i: str) -> str:
        return self.e.get(self.kind, self.e.at(address, i, self.kind))

    def set(self, address: str, i: str, value: str) -> None:
        self.e.set(self.kind, self.e.at(address, i, self.kind), value)

    def everywhere(self, value: str) -> str:
        return in_all_lanes(self.e, self.kind, value)

    def without(self, value: str, factor: str, other: str) -> str:
        """value - factor other, rounded once; `factor` is negated already."""
        return self.e.intrinsic("fma", self.dtype, factor, other, value)

    def start_of_vector(self, i: str) -> str:
        """The place of the vector that has element i."""
        return self.e.mul(self.e.quotient(i, self.e.lanes), self.e.lanes)

    # ---- copies

    def clear(self) -> None:
        """Makes the copy's rows zero."""
        e = self.e
        with e.loop(0, e.mul(self.size, self.pitch), e.lanes) as i:
            store(e, self.dtype, e.constant(self.dtype, 0), self.rows, i)

    def move(self, count: str, source: str, target: str) -> None:
        """Copies a row of elements that lie side by side."""
        e, done = self.e, "0"
        for some in (e, e.one):
            end = e.mul(e.quotient(count, some.lanes), some.lanes)
            with e.loop(done, end, some.lanes) as i:
                store(some, self.dtype, load(some, self.dtype, source, i), target, i)
            done = end

    def take(self, matrix: str) -> None:
        """Copies the matrix, which may be transposed."""
        e, down, right = self.e, self.words["down"], self.words["right"]
        given = self.part("matrices", matrix, e.mul(self.size, self.size))
        given = e.at(given, self.words["first"], self.kind)
        self.clear()
        is_plain = e.let(f"icmp eq i64 {right}, 1")
        with e.when(is_plain), e.loop(0, self.size) as i:
            self.move(self.size, e.at(given, e.mul(i, down), self.kind), self.row(i))
        with e.when(e.let(f"xor i1 {is_plain}, true")), e.loop(0, self.size) as i:
            source, row = e.at(given, e.mul(i, down), self.kind), self.row(i)
            with e.loop(0, self.size) as j:
                self.set(row, j, self.get(source, e.mul(j, right)))

    def sides(self, i: str) -> str:
        """Where a row's right-hand sides begin."""
        return self.e.at(self.row(i), self.width, self.kind)

    def outside(self, name: str, matrix: str, i: str) -> str:
        """Where an array has the right-hand sides of row i of the copy."""
        e = self.e
        array = self.part(name, matrix, e.mul(self.size, self.columns))
        is_turned = e.let(f"icmp slt i64 {self.words['right']}, 0")
        turned = e.sub(e.sub(self.size, i), 1)
        return e.at(
            array, e.mul(e.let(f"select i1 {is_turned}, i64 {turned}, i64 {i}"), self.columns), self.kind
        )

    def take_sides(self, matrix: str) -> None:
        """Copies the right-hand sides."""
        with self.e.loop(0, self.size) as i:
            self.move(self.columns, self.outside("sides", matrix, i), self.sides(i))

    def give(self, matrix: str) -> None:
        """Copies what became of the right-hand sides."""
        with self.e.loop(0, self.size) as i:
            self.move(self.columns, self.sides(i), self.outside("out", matrix, i))

    # ---- elimination

    def ask(self, number: str) -> None:
        """Notes that it failed, unless a pivot's size is positive and finite."""
        e, zero, most = self.e, self.e.one.constant(self.dtype, 0), self.e.one.constant(self.dtype, math.inf)
        fits = [
            e.one.compare(f"fcmp {how}", self.dtype, number, limit)
            for how, limit in (("ogt", zero), ("olt", most))
        ]
        with e.when(e.let(f"xor i1 {e.let(f'and i1 {fits[0]}, {fits[1]}')}, true")):
            e.set("i64", self.has_failed, "1")

    def eliminate(self, sign: str | None = None) -> None:
        """Makes zeros, which are not written, below the diagonal; `sign`: a variable that changes its sign
        with every exchange."""
        e = self.e
        with e.loop(0, self.size) as k:
            start, row = self.start_of_vector(k), self.row(k)
            self._exchange(k, start, row, sign)
            pivot = self.get(row, k)
            factor = e.one.binary("fdiv", self.dtype, e.one.constant(self.dtype, -1), pivot)
            with e.loop(e.add(k, 1), self.size) as i:
                other = self.row(i)
                times = self.everywhere(e.one.binary("fmul", self.dtype, self.get(other, k), factor))
                with e.loop(start, self.end, e.lanes) as c:
                    left = self.without(load(e, self.dtype, other, c), times, load(e, self.dtype, row, c))
                    store(e, self.dtype, left, other, c)

    def _exchange(self, k: str, start: str, row: str, sign: str | None) -> None:
        """Puts the row with the largest element of column k in its place."""
        e = self.e
        largest = e.variable(self.kind, self.size_at(row, k))
        place = e.variable("i64", k)
        with e.loop(e.add(k, 1), self.size) as i:
            found, before = self.size_at(self.row(i), k), e.get(self.kind, largest)
            is_larger = e.one.compare("fcmp ogt", self.dtype, found, before)
            e.set(self.kind, largest, e.one.select(is_larger, self.dtype, found, before))
            e.set("i64", place, e.let(f"select i1 {is_larger}, i64 {i}, i64 {e.get('i64', place)}"))
        self.ask(e.get(self.kind, largest))
        chosen = e.get("i64", place)
        with e.when(e.let(f"icmp ne i64 {chosen}, {k}")):
            other = self.row(chosen)
            with e.loop(start, self.end, e.lanes) as c:
                pair = [load(e, self.dtype, each, c) for each in (row, other)]
                store(e, self.dtype, pair[1], row, c)
                store(e, self.dtype, pair[0], other, c)
            if sign is not None:
                e.set(self.kind, sign, e.one.negate(self.dtype, e.get(self.kind, sign)))

    def size_at(self, row: str, k: str) -> str:
        return self.e.one.intrinsic("fabs", self.dtype, self.get(row, k))

    def substitute(self) -> None:
        """Makes solutions of the right-hand sides, from the last unknown to the first."""
        e = self.e
        with e.loop(self.width, self.end, e.lanes) as c, e.loop(0, self.size) as step:
            k = e.sub(e.sub(self.size, step), 1)
            row = self.row(k)
            pivot = self.everywhere(self.get(row, k))
            found = e.binary("fdiv", self.dtype, load(e, self.dtype, row, c), pivot)
            store(e, self.dtype, found, row, c)
            with e.loop(0, k) as i:
                other = self.row(i)
                times = self.everywhere(e.one.negate(self.dtype, self.get(other, k)))
                left = self.without(load(e, self.dtype, other, c), times, found)
                store(e, self.dtype, left, other, c)


def _solve(of: _Matrices, matrix: str) -> None:
    of.take(matrix)
    of.take_sides(matrix)
    of.eliminate()
    of.substitute()
    of.give(matrix)


def _substitute(of: _Matrices, matrix: str) -> None:
    """The solutions of an upper triangle."""
    of.take(matrix)
    of.take_sides(matrix)
    with of.e.loop(0, of.size) as k:
        of.ask(of.size_at(of.row(k), k))
    of.substitute()
    of.give(matrix)


def _invert(of: _Matrices, matrix: str) -> None:
    of.take(matrix)
    with of.e.loop(0, of.size) as i:
        of.set(of.sides(i), i, of.e.one.constant(of.dtype, 1))
    of.eliminate()
    of.substitute()
    of.give(matrix)


def _pivots(of: _Matrices, matrix: str) -> None:
    """Elimination alone; there are no columns of right-hand sides."""
    e = of.e
    of.take(matrix)
    sign = e.variable(of.kind, e.one.constant(of.dtype, 1))
    of.eliminate(sign)
    out = of.part("out", matrix, of.size)
    with e.loop(0, of.size) as i:
        of.set(out, i, of.get(of.row(i), i))
    of.set(out, "0", e.one.binary("fmul", of.dtype, of.get(out, "0"), e.get(of.kind, sign)))


def _determine(of: _Matrices, matrix: str) -> None:
    """The same; the product is kept."""
    e = of.e
    of.take(matrix)
    product = e.variable(of.kind, e.one.constant(of.dtype, 1))
    of.eliminate(product)
    with e.loop(0, of.size) as i:
        factors = e.get(of.kind, product), of.get(of.row(i), i)
        e.set(of.kind, product, e.one.binary("fmul", of.dtype, *factors))
    of.set(of.a["out"], matrix, e.get(of.kind, product))


def _factor(of: _Matrices, matrix: str) -> None:
    """Cholesky's factors, a column after the other; of the rows the lower parts alone are used."""
    e = of.e
    column = e.array(of.kind, MOST)  # the factor's column k below the diagonal, zeros before
    of.take(matrix)
    with e.loop(0, of.width, e.lanes) as c:
        store(e, of.dtype, e.constant(of.dtype, 0), column, c)
    with e.loop(0, of.size) as k:
        _factor_column(of, column, k)
    out, zero = of.part("out", matrix, e.mul(of.size, of.size)), e.one.constant(of.dtype, 0)
    with e.loop(0, of.size) as i:
        to, row = e.at(out, e.mul(i, of.size), of.kind), of.row(i)
        of.move(e.add(i, 1), row, to)
        with e.loop(e.add(i, 1), of.size) as j:
            of.set(to, j, zero)


def _factor_column(of: _Matrices, column: str, k: str) -> None:
    e, row = of.e, of.row(k)
    square = of.get(row, k)
    of.ask(square)
    root = e.one.intrinsic("sqrt", of.dtype, square)
    of.set(row, k, root)
    of.set(column, k, e.one.constant(of.dtype, 0))
    after = e.add(k, 1)
    with e.loop(after, of.size) as i:
        element = e.one.binary("fdiv", of.dtype, of.get(of.row(i), k), root)
        of.set(of.row(i), k, element)
        of.set(column, i, element)
    start = of.start_of_vector(after)
    with e.loop(after, of.size) as i:
        other = of.row(i)
        times = of.everywhere(e.one.negate(of.dtype, of.get(column, i)))
        with e.loop(start, e.add(i, 1), e.lanes) as c:
            left = of.without(load(e, of.dtype, other, c), times, load(e, of.dtype, column, c))
            store(e, of.dtype, left, other, c)


_WRITERS: dict[str, Callable[[_Matrices, str], None]] = {
    "solve": _solve,
    "substitute": _substitute,
    "invert": _invert,
    "pivots": _pivots,
    "determine": _determine,
    "factor": _factor,
}
