"""LLVM's text of batch normalisation, what is added to its results, their activation, and its gradient.

Images are seen as rows of channels, float32. Sums over the rows are in float64, some for each thread, so that
the variance is the mean of the squares less the square of the mean. With r = 1 / sqrt(variance + epsilon) a
result is ``x a + b``, a = scale r and b = offset - mean a, rounded once. The gradient computes that again, by
the mean and the variance as they were given out, and so decides as the activation did. Of the flow g before
it and t = x - mean,

    dscale = r sum(g t),   doffset = sum(g),   dx = a g - (a r^2 sum(g t) / n) t - a sum(g) / n
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.structured import Code
from flowstone.native.numerics.elements import ELEMENTS

__all__ = ["ACTIVATIONS", "FACTORS", "PLACES", "WORDS", "normalization_code"]

ACTIVATIONS = {"": "", "Relu": "ReluGrad", "Relu6": "Relu6Grad"}
"""What may follow, and its gradient."""
WORDS = ("threads", "rows", "channels", "wide_channels", "epsilon")
"""The whole numbers of a call; wide: in whole vectors; `epsilon`: the bits of a float64."""
_FORWARD = ("x", "scale", "offset", "added", "y", "mean", "variance", "corrected", "sums", "factors")
_BACKWARD = ("dy", "x", "scale", "offset", "mean", "variance", "dx", "d_scale", "d_offset", "sums", "factors")
PLACES: dict[str, tuple[str, ...]] = {
    **{f"normalize{kind}{more}": _FORWARD for kind in ACTIVATIONS for more in ("", "_sum")},
    **{f"differentiate{kind}": _BACKWARD for kind in ACTIVATIONS},
}
"""The addresses that each function takes after that of the numbers, in order. `sums` are two float64 for each
thread and wide channel, 0 at first; `factors` rows of wide channels, as many as `FACTORS`."""
FACTORS = 5
_A, _B, _MEAN, _BY_T, _FIXED = range(FACTORS)
_TOGETHER = 8  # rows whose sums stay in registers
_BLOCK = 64  # rows
_Values = Callable[[str, str], tuple[str, str]]  # of vectors at a place, under a mask
_Terms = Callable[["_Function", str], _Values]  # of the channels from this one on


def normalization_code(lanes: int) -> str:
    """The text of the functions of `PLACES`."""
    declarations: dict[str, str] = {}

    def function(name: str, places: Sequence[str]) -> _Function:
        return _Function(name, places, lanes, declarations)

    parts = [_add_up(function("measure_some", _FORWARD), _squares)]
    for kind, gradient in ACTIVATIONS.items():
        for more in ("", "_sum"):
            parts.append(_put_results(function(f"normalize{kind}{more}_some", _FORWARD), kind, bool(more)))
            parts.append(
                _forward(function(f"normalize{kind}{more}", _FORWARD), f"normalize{kind}{more}_some")
            )
        parts.append(_add_up(function(f"weigh{kind}_some", _BACKWARD), _flows(gradient)))
        parts.append(_put_gradients(function(f"differentiate{kind}_some", _BACKWARD), gradient))
        parts.append(_backward(function(f"differentiate{kind}", _BACKWARD), kind))
    return "\n".join([*declarations.values(), *parts])


class _Function(Code):
    """One function's text, with the addresses and the numbers that it is given."""

    def __init__(self, name: str, places: Sequence[str], lanes: int, declarations: dict[str, str]) -> None:
        super().__init__(name, ["ptr a"], lanes, declarations, is_public=name in PLACES)
        self.places = places_of(self, places)
        self.words = words_of(self, self.places["words"], WORDS)

    def channels(self) -> Iterator[tuple[str, str]]:
        """The first channel of each vector, and its mask."""
        for c, (mask,) in self.vectors(self.words["channels"]):
            yield c, mask

    def given(self, name: str, i: str, mask: str) -> str:
        """A vector of an argument."""
        return self.read(self.at(self.places[name], i), mask)

    def given_double(self, name: str, i: str, mask: str) -> str:
        """The same in float64."""
        return self.convert(self.given(name, i, mask), "float32", "float64")

    def give(self, name: str, i: str, value: str, mask: str) -> None:
        """Writes float64 as float32."""
        self.write(self.at(self.places[name], i), self.convert(value, "float64", "float32"), mask)

    def factors(self, c: str, wanted: Sequence[int]) -> dict[int, str]:
        """Numbers of the channels, by their row in memory."""
        return {
            i: self.given("factors", self.add(self.mul(self.words["wide_channels"], i), c), "")
            for i in wanted
        }

    def put_factors(self, c: str, values: dict[int, str]) -> None:
        """Writes rows of them, from float64."""
        for i, value in values.items():
            self.give("factors", self.add(self.mul(self.words["wide_channels"], i), c), value, "")

    # ---- vectors of float64

    def math(self, name: str, a: str, b: str) -> str:
        return self.binary(name, "float64", a, b)

    def everywhere(self, value: str) -> str:
        kind = self.type("float64")
        first = self.let(f"insertelement {kind} poison, double {value}, i32 0")
        return self.let(f"shufflevector {kind} {first}, {kind} poison, <{self.lanes} x i32> zeroinitializer")

    def sum_at(self, i: str) -> str:
        return self.let(
            f"load {self.type('float64')}, ptr {self.at(self.places['sums'], i, 'double')}, align 8"
        )

    def put_sum(self, i: str, value: str) -> None:
        place = self.at(self.places["sums"], i, "double")
        self.do(f"store {self.type('float64')} {value}, ptr {place}, align 8")


# ---- sums over rows


def _add_up(e: _Function, terms: _Terms) -> str:
    """A thread's sums over its rows of the two values that `terms` gives, the second times the first."""
    words = e.words
    me, start, end = my_part(e, words["rows"])
    sums = e.mul(e.mul(me, words["wide_channels"]), 2)
    whole = e.add(start, e.mul(e.quotient(e.sub(end, start), _TOGETHER), _TOGETHER))
    for first, last, count in ((start, whole, _TOGETHER), (whole, end, 1)):
        with e.loop(first, last, count) as row:
            for c, mask in e.channels():
                values = terms(e, c)
                places = e.add(sums, c), e.add(e.add(sums, words["wide_channels"]), c)
                total, weighed = e.sum_at(places[0]), e.sum_at(places[1])
                for i in range(count):
                    found, other = values(e.add(e.mul(e.add(row, i), words["channels"]), c), mask)
                    total = e.math("fadd", total, found)
                    weighed = e.intrinsic("fma", "float64", found, other, weighed)
                e.put_sum(places[0], total)
                e.put_sum(places[1], weighed)
    return e.text()


def _squares(e: _Function, c: str) -> _Values:
    def values(place: str, mask: str) -> tuple[str, str]:
        x = e.given_double("x", place, mask)
        return x, x

    return values


def _flows(gradient: str) -> _Terms:
    def terms(e: _Function, c: str) -> _Values:
        factors = e.factors(c, (_MEAN, *((_A, _B) if gradient else ())))

        def values(place: str, mask: str) -> tuple[str, str]:
            x = e.given("x", place, mask)
            g = _flow(e, gradient, e.given("dy", place, mask), x, factors)
            t = e.minus(x, factors[_MEAN])
            return e.convert(g, "float32", "float64"), e.convert(t, "float32", "float64")

        return values

    return terms


def _flow(e: _Function, gradient: str, dy: str, x: str, factors: dict[int, str]) -> str:
    """The flow before the activation, whose gradient asks of what it is of what it asks of its result."""
    if not gradient:
        return dy
    return ELEMENTS[gradient].emit(e, "float32", [dy, e.fma(x, factors[_A], factors[_B])], {})


# ---- rows of results


def _rows_from_behind(e: _Function) -> Iterator[str]:
    """A thread's rows, the last block of them first: of what was just read, that is still in the caches."""
    _, start, end = my_part(e, e.words["rows"])
    with e.loop(0, e.sub(end, start), _BLOCK) as done:
        last = e.sub(end, done)
        with e.loop(e.most(start, e.sub(last, _BLOCK)), last) as row:
            yield row


def _put_results(e: _Function, kind: str, adds: bool) -> str:
    """A thread's rows of results."""
    for row in _rows_from_behind(e):
        first = e.mul(row, e.words["channels"])
        for c, mask in e.channels():
            place, factors = e.add(first, c), e.factors(c, (_A, _B))
            y = e.fma(e.given("x", place, mask), factors[_A], factors[_B])
            if adds:
                y = e.plus(y, e.given("added", place, mask))
            if kind:
                y = ELEMENTS[kind].emit(e, "float32", [y], {})
            e.write(e.at(e.places["y"], place), y, mask)
    return e.text()


def _put_gradients(e: _Function, gradient: str) -> str:
    """A thread's rows of the gradient by the images."""
    for row in _rows_from_behind(e):
        first = e.mul(row, e.words["channels"])
        for c, mask in e.channels():
            place = e.add(first, c)
            factors = e.factors(c, (_A, _MEAN, _BY_T, _FIXED, *((_B,) if gradient else ())))
            x = e.given("x", place, mask)
            g = _flow(e, gradient, e.given("dy", place, mask), x, factors)
            rest = e.fma(e.minus(x, factors[_MEAN]), factors[_BY_T], factors[_FIXED])
            e.write(e.at(e.places["dx"], place), e.fma(g, factors[_A], rest), mask)
    return e.text()


# ---- the whole


def _forward(e: _Function, some: str) -> str:
    """Sums, moments, results."""
    share(e, "measure_some")
    rows = e.words["rows"]
    count, less = (
        e.everywhere(e.let(f"sitofp i64 {n} to double")) for n in (rows, e.most(1, e.sub(rows, 1)))
    )
    zero = e.constant("float64", 0)
    for c, mask in e.channels():
        total, squares = _totals(e, c)
        mean = e.math("fdiv", total, count)
        variance = e.intrinsic(
            "fma", "float64", e.negate("float64", mean), mean, e.math("fdiv", squares, count)
        )
        variance = e.select(e.compare("fcmp olt", "float64", variance, zero), "float64", zero, variance)
        e.give("mean", c, mean, mask)
        e.give("variance", c, variance, mask)
        e.give("corrected", c, e.math("fmul", variance, e.math("fdiv", count, less)), mask)
        _put_shifts(e, c, mask)
    share(e, some)
    return e.text()


def _backward(e: _Function, kind: str) -> str:
    """The factors of the results, sums, gradients."""
    for c, mask in e.channels():
        _put_shifts(e, c, mask)
    share(e, f"weigh{kind}_some")
    count = e.everywhere(e.let(f"sitofp i64 {e.words['rows']} to double"))
    for c, mask in e.channels():
        flows, weighed = _totals(e, c)
        inverse, factor = _inverse(e, c, mask)
        d_scale = e.math("fmul", weighed, inverse)
        part = e.math("fdiv", e.negate("float64", factor), count)
        e.give("d_scale", c, d_scale, mask)
        e.give("d_offset", c, flows, mask)
        by_t = e.math("fmul", e.math("fmul", d_scale, inverse), part)
        e.put_factors(c, {_BY_T: by_t, _FIXED: e.math("fmul", flows, part)})
    share(e, f"differentiate{kind}_some")
    return e.text()


def _totals(e: _Function, c: str) -> tuple[str, str]:
    """The sums of all threads."""
    kind, wide = e.type("float64"), e.words["wide_channels"]
    found = [e.variable(kind, e.constant("float64", 0)) for _ in range(2)]
    with e.loop(0, e.words["threads"]) as thread:
        for i, place in enumerate(found):
            more = e.sum_at(e.add(e.mul(e.add(e.mul(thread, 2), i), wide), c))
            e.set(kind, place, e.math("fadd", e.get(kind, place), more))
    return e.get(kind, found[0]), e.get(kind, found[1])


def _inverse(e: _Function, c: str, mask: str) -> tuple[str, str]:
    """1 / sqrt(variance + epsilon), and the scale times it."""
    epsilon = e.everywhere(e.let(f"bitcast i64 {e.words['epsilon']} to double"))
    root = e.intrinsic("sqrt", "float64", e.math("fadd", e.given_double("variance", c, mask), epsilon))
    inverse = e.math("fdiv", e.constant("float64", 1), root)
    return inverse, e.math("fmul", e.given_double("scale", c, mask), inverse)


def _put_shifts(e: _Function, c: str, mask: str) -> None:
    """What results are computed by, from the moments as they are given out."""
    mean, offset = (e.given_double(name, c, mask) for name in ("mean", "offset"))
    _, factor = _inverse(e, c, mask)
    shift = e.intrinsic("fma", "float64", e.negate("float64", mean), factor, offset)
    e.put_factors(c, {_A: factor, _B: shift, _MEAN: mean})
