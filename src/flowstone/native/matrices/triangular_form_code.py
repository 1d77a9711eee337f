"""LLVM's text of the eigenvalues and eigenvectors of many small complex matrices, a matrix in each lane.

All lanes take the same steps: Householder's reflections make zeros below the first diagonal under the main
one, rotations with Wilkinson's shifts (Golub and Van Loan, 7.5) make the last number under it vanish, then
the one above it, until triangles are left; substitution gives their vectors. Lanes that have come to the end
of a step rotate by nothing until all have. A note becomes 1 where one does not come to it.

Of matrices in blocks, one a lane: [blocks, rows, columns, 2, lanes], real and imaginary parts, of which the
largest is about 1. Threads share the blocks.
"""

from __future__ import annotations

from flowstone.native.codegen.arithmetic import Arithmetic
from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import KINDS, SIZES
from flowstone.native.codegen.structured import Code

__all__ = ["PLACES", "SCRATCH", "WORDS", "triangular_form_code"]

WORDS = ("threads", "blocks", "size", "scratch")
"""The whole numbers of a call; `scratch`: the numbers that a thread has of it."""
PLACES = {"eigen": ("matrices", "values", "vectors", "scratch", "notes")}
"""The matrices are overwritten by triangles; `values` [blocks, rows, 2, lanes], and `vectors` as the
matrices, of length 1. `notes` is int64 [1]."""
SCRATCH = 3
"""The rows that a thread's scratch has beside a matrix."""
_ROUNDS = 40  # for an eigenvalue; two or three are usual
_STRANGE = 10  # each so many rounds another shift is taken, for matrices that shifts leave as they are
_EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52}
_LARGE = 1e8  # beyond, a vector is scaled
Pair = tuple[str, str]


class _Lanes(Arithmetic):
    """Complex numbers, a pair of vectors each, in an emitter and in memory."""

    def __init__(self, e: Code, dtype: str, size: str) -> None:
        super().__init__(e)
        self.TYPE, self.code, self.size = dtype, e, size  # type: ignore[misc]
        self.kind = KINDS[dtype]

    # ---- memory

    def place(self, base: str, row: str | int, column: str | int = 0) -> str:
        """Where a number of a matrix is."""
        e = self.code
        return e.at(base, e.mul(e.add(e.mul(row, self.size), column), 2 * e.lanes), self.kind)

    def get(self, place: str) -> Pair:
        vector, e = self.e.type(self.TYPE), self.code
        other = e.at(place, e.lanes, self.kind)
        real, imaginary = (e.let(f"load {vector}, ptr {x}, align {SIZES[self.TYPE]}") for x in (place, other))
        return real, imaginary

    def put(self, place: str, x: Pair) -> None:
        vector, e = self.e.type(self.TYPE), self.code
        for address, part in zip((place, e.at(place, e.lanes, self.kind)), x):
            e.do(f"store {vector} {part}, ptr {address}, align {SIZES[self.TYPE]}")

    # ---- arithmetic

    def fma(self, a: str, b: str, c: str) -> str:
        return self.intrinsic("fma", a, b, c)

    def minus(self, x: str) -> str:
        return self.e.negate(self.TYPE, x)

    def conjugate(self, x: Pair) -> Pair:
        return x[0], self.minus(x[1])

    def plus(self, x: Pair, y: Pair) -> Pair:
        return self.add(x[0], y[0]), self.add(x[1], y[1])

    def less(self, x: Pair, y: Pair) -> Pair:
        return self.sub(x[0], y[0]), self.sub(x[1], y[1])

    def product(self, x: Pair, y: Pair) -> Pair:
        return self.fused(x, y, (self.number(0.0), self.number(0.0)))

    def fused(self, x: Pair, y: Pair, z: Pair) -> Pair:
        """x y + z."""
        real = self.fma(x[0], y[0], self.fma(self.minus(x[1]), y[1], z[0]))
        return real, self.fma(x[0], y[1], self.fma(x[1], y[0], z[1]))

    def scaled(self, x: Pair, factor: str) -> Pair:
        return self.mul(x[0], factor), self.mul(x[1], factor)

    def squared(self, x: Pair) -> str:
        """|x|²."""
        return self.fma(x[0], x[0], self.mul(x[1], x[1]))

    def span(self, x: Pair) -> str:
        """The sum of both parts' sizes."""
        return self.add(*(self.intrinsic("fabs", part) for part in x))

    def root(self, x: Pair) -> Pair:
        """The square root with a real part that is not negative."""
        size = self.intrinsic("sqrt", self.squared(x))
        first = self.intrinsic("sqrt", self.mul(self.add(size, self.intrinsic("fabs", x[0])), 0.5))
        is_zero = self.is_("oeq", first, 0.0)
        second = self.where(is_zero, 0.0, self.div(self.mul(x[1], 0.5), self.where(is_zero, 1.0, first)))
        is_left = self.is_("olt", x[0], 0.0)
        real = self.where(is_left, self.intrinsic("fabs", second), first)
        return real, self.where(is_left, self.intrinsic("copysign", first, x[1]), second)

    def quotient(self, x: Pair, y: Pair) -> Pair:
        """x / y."""
        return self.scaled(self.product(x, self.conjugate(y)), self.div(1.0, self.squared(y)))

    def chosen(self, condition: str, x: Pair, y: Pair) -> Pair:
        return self.where(condition, x[0], y[0]), self.where(condition, x[1], y[1])

    def pair(self, real: float, imaginary: float = 0.0) -> Pair:
        return self.number(real), self.number(imaginary)

    # ---- what changes in loops

    def variable(self, x: Pair) -> Pair:
        vector = self.e.type(self.TYPE)
        return self.code.variable(vector, x[0]), self.code.variable(vector, x[1])

    def value(self, places: Pair) -> Pair:
        vector = self.e.type(self.TYPE)
        return self.code.get(vector, places[0]), self.code.get(vector, places[1])

    def set(self, places: Pair, x: Pair) -> None:
        vector = self.e.type(self.TYPE)
        for place, part in zip(places, x):
            self.code.set(vector, place, part)

    def any(self, condition: str) -> str:
        """Whether a condition holds in a lane."""
        e = self.code
        bits = e.let(f"bitcast {e.vector('i1')} {condition} to i{e.lanes}")
        return e.let(f"icmp ne i{e.lanes} {bits}, 0")


def triangular_form_code(dtype: str, lanes: int) -> str:
    """The text of the function for matrices of complex numbers of two such floats."""
    declarations: dict[str, str] = {}
    e = Code("eigen_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["eigen"])
    words = words_of(e, a["words"], WORDS)
    size = words["size"]
    s = _Lanes(e, dtype, size)
    me, start, end = my_part(e, words["blocks"])
    basis = e.at(a["scratch"], e.mul(me, words["scratch"]), s.kind)
    rows = s.place(basis, size)
    whole = e.mul(e.mul(size, size), 2 * lanes)
    with e.loop(start, end) as block:
        matrix, vectors = (e.at(a[x], e.mul(block, whole), s.kind) for x in ("matrices", "vectors"))
        values = e.at(a["values"], e.mul(block, e.mul(size, 2 * lanes)), s.kind)
        _unit(s, basis)
        _reflect(s, matrix, basis, rows)
        with e.loop(1, size) as i:
            _converge(s, matrix, basis, rows, e.sub(size, i), a["notes"])
        _substitute(s, matrix, basis, rows, values, vectors)
    public = Code("eigen", ["ptr a"], lanes, declarations, is_public=True)
    share(public, "eigen_some")
    texts = [e.text(), public.text()]
    return "\n".join([*declarations.values(), *texts])


def _unit(s: _Lanes, basis: str) -> None:
    e = s.code
    with e.loop(0, s.size) as i:
        with e.loop(0, s.size) as j:
            s.put(s.place(basis, i, j), s.pair(0.0))
        s.put(s.place(basis, i, i), s.pair(1.0))


def _reflect(s: _Lanes, matrix: str, basis: str, rows: str) -> None:
    """Makes zeros below the diagonal under the main one."""
    e = s.code
    with e.loop(0, e.sub(s.size, 2)) as k:
        below = e.add(k, 1)
        total = e.variable(e.type(s.TYPE), s.number(0.0))
        with e.loop(below, s.size) as i:
            x = s.get(s.place(matrix, i, k))
            e.set(e.type(s.TYPE), total, s.add(e.get(e.type(s.TYPE), total), s.squared(x)))
            s.put(s.place(rows, 0, i), x)
        first = s.get(s.place(rows, 0, below))
        norm = s.intrinsic("sqrt", e.get(e.type(s.TYPE), total))
        size = s.intrinsic("sqrt", s.squared(first))
        is_zero = s.is_("oeq", size, 0.0)
        phase = s.chosen(is_zero, s.pair(1.0), s.scaled(first, s.div(1.0, s.where(is_zero, 1.0, size))))
        s.put(s.place(rows, 0, below), s.plus(first, s.scaled(phase, norm)))
        nothing = s.is_("oeq", norm, 0.0)
        twice = s.mul(norm, s.add(norm, size))
        factor = s.where(nothing, 0.0, s.div(1.0, s.where(nothing, 1.0, twice)))
        _reflect_columns(s, matrix, rows, k, factor)
        for each in (matrix, basis):
            _reflect_rows(s, each, rows, below, factor)


def _reflect_columns(s: _Lanes, matrix: str, rows: str, k: str, factor: str) -> None:
    """Reflects all columns from the k-th on: x - factor v (v^H x)."""
    e = s.code
    below, total = e.add(k, 1), s.variable(s.pair(0.0))
    with e.loop(k, s.size) as j:
        s.set(total, s.pair(0.0))
        with e.loop(below, s.size) as i:
            v = s.conjugate(s.get(s.place(rows, 0, i)))
            s.set(total, s.fused(v, s.get(s.place(matrix, i, j)), s.value(total)))
        share_of = s.scaled(s.value(total), s.minus(factor))
        with e.loop(below, s.size) as i:
            place = s.place(matrix, i, j)
            s.put(place, s.fused(s.get(s.place(rows, 0, i)), share_of, s.get(place)))


def _reflect_rows(s: _Lanes, matrix: str, rows: str, below: str, factor: str) -> None:
    """Reflects all rows: x - factor (x v) v^H."""
    e = s.code
    total = s.variable(s.pair(0.0))
    with e.loop(0, s.size) as i:
        s.set(total, s.pair(0.0))
        with e.loop(below, s.size) as j:
            v = s.get(s.place(rows, 0, j))
            s.set(total, s.fused(v, s.get(s.place(matrix, i, j)), s.value(total)))
        share_of = s.scaled(s.value(total), s.minus(factor))
        with e.loop(below, s.size) as j:
            place = s.place(matrix, i, j)
            v = s.conjugate(s.get(s.place(rows, 0, j)))
            s.put(place, s.fused(v, share_of, s.get(place)))


def _converge(s: _Lanes, matrix: str, basis: str, rows: str, last: str, notes: str) -> None:
    """Rotates until the number left of the diagonal in row `last` vanishes."""
    e = s.code
    round_ = e.variable("i64", "0")
    before = e.sub(last, 1)
    with e.repeat() as leave:
        corner = [[s.get(s.place(matrix, i, j)) for j in (before, last)] for i in (before, last)]
        diagonal = s.add(s.span(corner[0][0]), s.span(corner[1][1]))
        least = s.mul(diagonal, _EPSILON[s.TYPE])
        is_left = s.is_("ugt", s.span(corner[1][0]), s.intrinsic("maxnum", least, _EPSILON[s.TYPE] ** 2))
        goes_on = s.any(is_left)
        leave(e.let(f"xor i1 {goes_on}, true"))
        count = e.get("i64", round_)
        too_many = e.let(f"icmp sge i64 {count}, {_ROUNDS}")
        with e.when(too_many):
            e.set("i64", notes, "1")
        leave(too_many)
        e.set("i64", round_, e.add(count, 1))
        shift = s.variable(_shift(s, corner))
        is_strange = e.let(f"icmp eq i64 {e.rest(e.add(count, 1), _STRANGE)}, 0")
        with e.when(is_strange):
            s.set(shift, s.plus(corner[1][1], (s.mul(s.span(corner[1][0]), 0.75), s.number(0.0))))
        _rotate(s, matrix, basis, rows, last, s.chosen(is_left, s.value(shift), s.pair(0.0)), is_left)
    s.put(s.place(matrix, last, before), s.pair(0.0))


def _shift(s: _Lanes, corner: list[list[Pair]]) -> Pair:
    """The eigenvalue of the last two rows and columns that is nearer to the last number."""
    (a, b), (c, d) = corner
    half = s.scaled(s.less(a, d), s.number(0.5))
    both = s.product(b, c)
    root = s.root(s.fused(half, half, both))
    along = s.fma(half[0], root[0], s.mul(half[1], root[1]))
    is_against = s.is_("olt", along, 0.0)
    root = s.chosen(is_against, (s.minus(root[0]), s.minus(root[1])), root)
    below = s.plus(half, root)
    is_zero = s.is_("oeq", s.squared(below), 0.0)
    moved = s.quotient(both, s.chosen(is_zero, s.pair(1.0), below))
    return s.chosen(is_zero, d, s.less(d, moved))


def _rotate(s: _Lanes, matrix: str, basis: str, rows: str, last: str, shift: Pair, is_left: str) -> None:
    """A step: the matrix less the shift becomes R by rotations, and then R times their adjoint, with the
    shift again. `rows` keep the rotations."""
    e = s.code
    end = e.add(last, 1)
    _shifted(s, matrix, end, (s.minus(shift[0]), s.minus(shift[1])))
    with e.loop(0, last) as k:
        following = e.add(k, 1)
        x, y = s.get(s.place(matrix, k, k)), s.get(s.place(matrix, following, k))
        size = s.intrinsic("sqrt", s.add(s.squared(x), s.squared(y)))
        rotates = e.binary("and", "bool", is_left, s.is_("une", size, 0.0))
        scale = s.div(1.0, s.where(rotates, size, 1.0))
        cosine = s.chosen(rotates, s.scaled(x, scale), s.pair(1.0))
        sine = s.chosen(rotates, s.scaled(y, scale), s.pair(0.0))
        s.put(s.place(rows, 1, k), cosine)
        s.put(s.place(rows, 2, k), sine)
        lowered = s.minus(sine[0]), s.minus(sine[1])
        with e.loop(k, s.size) as j:
            places = [s.place(matrix, i, j) for i in (k, following)]
            above, below = (s.get(place) for place in places)
            first = s.fused(s.conjugate(sine), below, s.product(s.conjugate(cosine), above))
            s.put(places[0], first)
            s.put(places[1], s.fused(cosine, below, s.product(lowered, above)))
    with e.loop(0, last) as k:
        cosine, sine = (s.get(s.place(rows, row, k)) for row in (1, 2))
        for each, count in ((matrix, e.add(k, 2)), (basis, s.size)):
            with e.loop(0, count) as i:
                _turn(s, s.place(each, i, k), s.place(each, i, e.add(k, 1)), cosine, sine)
    _shifted(s, matrix, end, shift)


def _turn(s: _Lanes, first: str, second: str, cosine: Pair, sine: Pair) -> None:
    """Rotates two columns back in one row."""
    left, right = s.get(first), s.get(second)
    lowered = s.minus(sine[0]), sine[1]
    s.put(first, s.fused(sine, right, s.product(cosine, left)))
    s.put(second, s.fused(s.conjugate(cosine), right, s.product(lowered, left)))


def _shifted(s: _Lanes, matrix: str, end: str, shift: Pair) -> None:
    with s.code.loop(0, end) as k:
        place = s.place(matrix, k, k)
        s.put(place, s.plus(s.get(place), shift))


def _substitute(s: _Lanes, matrix: str, basis: str, rows: str, values: str, vectors: str) -> None:
    """Values from the diagonal, and vectors: of the triangle by substitution, then in the basis."""
    e = s.code
    with e.loop(0, s.size) as k:
        value = s.get(s.place(matrix, k, k))
        s.put(s.place(values, 0, k), value)
        s.put(s.place(rows, 0, k), s.pair(1.0))
        least = s.intrinsic("maxnum", s.mul(s.span(value), _EPSILON[s.TYPE]), _EPSILON[s.TYPE] ** 2)
        with e.loop(0, k) as done:
            _eliminate(s, matrix, rows, e.sub(e.sub(k, done), 1), k, value, least)
        _in_basis(s, basis, rows, vectors, k)


def _eliminate(s: _Lanes, matrix: str, rows: str, i: str, k: str, value: Pair, least: str) -> None:
    """The i-th number of the k-th vector; all that are known are scaled where it is large."""
    e = s.code
    total = s.variable(s.pair(0.0))
    with e.loop(e.add(i, 1), e.add(k, 1)) as j:
        s.set(total, s.fused(s.get(s.place(matrix, i, j)), s.get(s.place(rows, 0, j)), s.value(total)))
    apart = s.less(value, s.get(s.place(matrix, i, i)))
    is_near = s.is_("olt", s.span(apart), least)
    found = s.quotient(s.value(total), s.chosen(is_near, (least, s.number(0.0)), apart))
    s.put(s.place(rows, 0, i), found)
    size = s.span(found)
    is_large = s.is_("ogt", size, _LARGE)
    with e.when(s.any(is_large)):
        factor = s.where(is_large, s.div(1.0, size), 1.0)
        with e.loop(i, e.add(k, 1)) as j:
            place = s.place(rows, 0, j)
            s.put(place, s.scaled(s.get(place), factor))


def _in_basis(s: _Lanes, basis: str, rows: str, vectors: str, k: str) -> None:
    """The k-th vector, of length 1."""
    e = s.code
    vector = e.type(s.TYPE)
    total, length = s.variable(s.pair(0.0)), e.variable(vector, s.number(0.0))
    with e.loop(0, s.size) as i:
        s.set(total, s.pair(0.0))
        with e.loop(0, e.add(k, 1)) as j:
            s.set(total, s.fused(s.get(s.place(basis, i, j)), s.get(s.place(rows, 0, j)), s.value(total)))
        s.put(s.place(vectors, i, k), s.value(total))
        e.set(vector, length, s.add(e.get(vector, length), s.squared(s.value(total))))
    scale = s.div(1.0, s.intrinsic("sqrt", e.get(vector, length)))
    with e.loop(0, s.size) as i:
        place = s.place(vectors, i, k)
        s.put(place, s.scaled(s.get(place), scale))
