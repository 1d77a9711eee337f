"""LLVM's text of gamma and Poisson values, each drawn by rejection from a stream of its own.

The streams and the formulas are those of `ops/randomness/rejection_streams.py`; a stream is an array on the
stack, and functions draw from it. Threads share the values, which are numbers of float64. Logarithms and the
like are the C library's.
"""

from __future__ import annotations

from collections.abc import Callable

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import KINDS
from flowstone.native.codegen.structured import Code
from flowstone.native.numerics.wide_numbers import Wide
from flowstone.native.randomness.philox_code import double_of, round_keys, words_after

__all__ = ["FUNCTIONS", "PLACES", "WORDS", "rejection_code"]

WORDS = ("threads", "distributions", "samples", "key", "low", "high")
"""The whole numbers of a call: how many distributions, and values of each; the key, the counter's halves."""
PLACES = dict.fromkeys(("gamma", "poisson"), ("parameters", "out"))
"""A parameter a distribution, and the results [samples, distributions]; both float64."""
FUNCTIONS = ("exp", "lgamma", "log", "log1p", "pow", "sin", "cos", "sincos")
"""What is called of the C library; the last where LLVM joins the two before it."""
_RESERVED = 256  # blocks kept for a value
_LEAST, _FEW = 1e-7, 10
_TAU = 6.283185307179586
_STREAM = (
    "next",
    "key",
    "low",
    "high",
    "uniform_left",
    "normal_left",
    "uniform_kept",
    "normal_kept",
    "drawn",
)
"""What makes up a stream, eight bytes each: the next block, the state, whether a number of each kind is kept
and which, and what was drawn last."""


def rejection_code() -> str:
    """The text of the functions."""
    declarations: dict[str, str] = {}
    texts = [_drawing(kind, declarations) for kind in ("uniform", "normal")]
    for how, write in (("gamma", _gamma), ("poisson", _poisson)):
        texts += _values(how, write, declarations)
    return "\n".join([*declarations.values(), *texts])


class _Stream:
    """A stream at an address."""

    def __init__(self, e: Code, address: str) -> None:
        self._e, self._address = e, address

    def _at(self, name: str) -> str:
        return self._e.at(self._address, _STREAM.index(name), "i64")

    def word(self, name: str) -> str:
        return self._e.get("i64", self._at(name))

    def number(self, name: str) -> str:
        return self._e.get("double", self._at(name))

    def set(self, name: str, value: str) -> None:
        self._e.set("i64", self._at(name), value)

    def set_number(self, name: str, value: str) -> None:
        self._e.set("double", self._at(name), value)

    def draw(self, kind: str) -> str:
        """The next number of a kind."""
        self._e.do(f"call void @draw_{kind}(ptr {self._address})")
        return self.number("drawn")


def _library(e: Code, name: str, *x: str) -> str:
    return e.call(name, "double", [("double", each) for each in x])


def _drawing(kind: str, declarations: dict[str, str]) -> str:
    """The function that draws a number of a kind: of each block's two the second, and then the first."""
    e = Code(f"draw_{kind}", ["ptr stream"], 1, declarations)
    stream = _Stream(e, "%stream")
    left = stream.word(f"{kind}_left")
    stream.set_number("drawn", stream.number(f"{kind}_kept"))
    stream.set(f"{kind}_left", e.sub(1, left))
    with e.when(e.let(f"icmp eq i64 {left}, 0")):
        following = stream.word("next")
        stream.set("next", e.add(following, 1))
        keys = round_keys(e, stream.word("key"))
        x = words_after(e, keys, stream.word("low"), stream.word("high"), following)
        first, second = double_of(e, *x[:2]), double_of(e, *x[2:])
        if kind == "normal":
            first, second = _box_muller(e, Wide(e), first, second)
        stream.set_number(f"{kind}_kept", first)
        stream.set_number("drawn", second)
    return e.text()


def _box_muller(e: Code, w: Wide, first: str, second: str) -> tuple[str, str]:
    log = _library(e, "log", w.where(w.is_("olt", first, _LEAST), _LEAST, first))
    radius, angle = w.intrinsic("sqrt", w.mul(log, -2.0)), w.mul(second, _TAU)
    return w.mul(radius, _library(e, "sin", angle)), w.mul(radius, _library(e, "cos", angle))


def _values(
    how: str, write: Callable[[Code, Wide, _Stream, str, str], None], declarations: dict[str, str]
) -> list[str]:
    """The function of all values, and what one thread does of it."""
    e = Code(f"{how}_some", ["ptr a"], 1, declarations)
    a = places_of(e, PLACES[how])
    words = words_of(e, a["words"], WORDS)
    stream = _Stream(e, e.array("i64", len(_STREAM)))
    for name in ("key", "low", "high"):
        stream.set(name, words[name])
    result = e.variable("double", "0.0")
    _, start, end = my_part(e, e.mul(words["distributions"], words["samples"]))
    with e.loop(start, end) as i:
        stream.set("next", e.mul(i, _RESERVED))
        stream.set("uniform_left", "0")
        stream.set("normal_left", "0")
        number, sample = e.quotient(i, words["samples"]), e.rest(i, words["samples"])
        write(e, Wide(e), stream, e.get("double", e.at(a["parameters"], number, "double")), result)
        place = e.add(e.mul(sample, words["distributions"]), number)
        e.set("double", e.at(a["out"], place, "double"), e.get("double", result))
    public = Code(how, ["ptr a"], 1, declarations, is_public=True)
    share(public, f"{how}_some")
    return [e.text(), public.text()]


def _either(e: Code, a: str, b: str) -> str:
    return e.let(f"or i1 {a}, {b}")


def _both(e: Code, a: str, b: str) -> str:
    return e.let(f"and i1 {a}, {b}")


def _gamma(e: Code, w: Wide, stream: _Stream, alpha: str, result: str) -> None:
    """Marsaglia's and Tsang's value."""
    kind = KINDS["float64"]
    nothing = w.is_("oeq", alpha, 0.0)
    e.set(kind, result, w.where(nothing, alpha, float("nan")))
    with e.when(w.is_("oeq", alpha, 1.0)):
        log = _library(e, "log1p", e.negate("float64", stream.draw("uniform")))
        e.set(kind, result, e.negate("float64", log))
    with e.when(_both(e, w.is_("ogt", alpha, 0.0), w.is_("une", alpha, 1.0))):
        is_small = w.is_("olt", alpha, 1.0)
        d = w.sub(w.where(is_small, w.add(alpha, 1.0), alpha), 1 / 3)
        root = w.intrinsic("sqrt", w.mul(d, 9.0))
        is_taken = e.variable("i1", "false")
        with e.repeat() as leave:
            leave(e.get("i1", is_taken))
            x = stream.draw("normal")
            v = w.add(w.div(x, root), 1.0)
            with e.when(w.is_("ogt", v, 0.0)):
                cube, square, u = w.mul(w.mul(v, v), v), w.mul(x, x), stream.draw("uniform")
                e.set(kind, result, w.mul(d, cube))
                squeezed = w.is_("olt", u, w.sub(1.0, w.mul(w.mul(square, square), 0.0331)))
                e.set("i1", is_taken, squeezed)
                with e.when(e.let(f"xor i1 {squeezed}, true")):
                    over = w.mul(d, w.add(w.sub(1.0, cube), _library(e, "log", cube)))
                    bound = w.add(w.mul(square, 0.5), over)
                    e.set("i1", is_taken, w.is_("olt", _library(e, "log", u), bound))
        with e.when(is_small):
            power = _library(e, "pow", stream.draw("uniform"), w.div(1.0, alpha))
            e.set(kind, result, w.mul(e.get(kind, result), power))


def _poisson(e: Code, w: Wide, stream: _Stream, rate: str, result: str) -> None:
    """Knuth's value, or Hörmann's."""
    kind = KINDS["float64"]
    e.set(kind, result, w.where(w.is_("ole", rate, 0.0), 0.0, rate))
    is_few = w.is_("olt", rate, float(_FEW))
    with e.when(_both(e, w.is_("ogt", rate, 0.0), is_few)):
        limit = _library(e, "exp", e.negate("float64", rate))
        product, count = (e.variable(kind, w.number(x)) for x in (1.0, 0.0))
        with e.repeat() as leave:
            after = w.mul(e.get(kind, product), stream.draw("uniform"))
            e.set(kind, product, after)
            leave(w.is_("ole", after, limit))
            e.set(kind, count, w.add(e.get(kind, count), 1.0))
        e.set(kind, result, e.get(kind, count))
    with e.when(_both(e, w.is_("oge", rate, float(_FEW)), w.is_("olt", rate, float("inf")))):
        log_rate = _library(e, "log", rate)
        b = w.add(w.mul(w.intrinsic("sqrt", rate), 2.53), 0.931)
        a = w.add(w.mul(b, 0.02483), -0.059)
        height = w.add(w.div(1.1328, w.sub(b, 3.4)), 1.1239)
        inner = w.sub(0.9277, w.div(3.6224, w.sub(b, 2.0)))
        is_taken = e.variable("i1", "false")
        with e.repeat() as leave:
            leave(e.get("i1", is_taken))
            u = w.sub(stream.draw("uniform"), 0.5)
            v = stream.draw("uniform")
            us = w.sub(0.5, w.intrinsic("fabs", u))
            scaled = w.mul(w.add(w.div(w.mul(a, 2.0), us), b), u)
            k = w.intrinsic("floor", w.add(w.add(scaled, rate), 0.43))
            e.set(kind, result, k)
            inside = _both(e, w.is_("oge", us, 0.07), w.is_("ole", v, inner))
            e.set("i1", is_taken, inside)
            outside = _both(e, w.is_("olt", us, 0.013), w.is_("ogt", v, us))
            refused = _either(e, _either(e, inside, outside), w.is_("olt", k, 0.0))
            with e.when(e.let(f"xor i1 {refused}, true")):
                under = w.add(w.div(a, w.mul(us, us)), b)
                log = _library(e, "log", w.div(w.mul(v, height), under))
                mean = w.sub(w.mul(k, log_rate), rate)
                bound = w.sub(mean, _library(e, "lgamma", w.add(k, 1.0)))
                e.set("i1", is_taken, w.is_("ole", log, bound))
