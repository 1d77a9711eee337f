"""`Wide`: formulas in float64 for machine code whose arguments and results are float32. `Whole`: the same
formulas with all digits of float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from flowstone.native.codegen.arithmetic import Arithmetic
from flowstone.native.codegen.emitter import Emitter
from flowstone.native.numerics import transcendental

__all__ = ["Formula", "Whole", "Wide", "powers", "short", "whole"]

_TURN, _TURN_LOW = 2 * math.pi, 2.4492935982947064e-16  # their sum is 2 pi

Formula = Callable[["Wide", str], str]


class Wide(Arithmetic):
    """Arithmetic and functions of float64."""

    TYPE = "float64"
    SMALLEST = 4e-9  # of a series' first term: terms below it do not show in float32
    TERMS = 9  # of power series in x² / 4 up to 1
    FRESNEL_TERMS = 14  # of those in (pi x² / 2)² for x up to 2
    SPENCE_TERMS = 6  # of those in log(x)² for x from 1/2 to 2

    def fma(self, a: str | float, b: str | float, c: str | float) -> str:
        """a b + c."""
        return self.intrinsic("fma", a, b, c)

    def least(self, a: str | float, b: str | float) -> str:
        """The smaller; b where one is NaN."""
        return self.where(self.is_("olt", a, b), a, b)

    def most(self, a: str | float, b: str | float) -> str:
        """The larger; b where one is NaN."""
        return self.where(self.is_("ogt", a, b), a, b)

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """The one whose first coefficient is that of the highest power."""
        result = self.number(coefficients[0])
        for each in coefficients[1:]:
            result = self.fma(result, x, each)
        return result

    def series(self, x: str, series: Sequence[float], size: float = 1.0) -> str:
        """A Chebyshev series whose least value in [-1, 1] is about `size`."""
        return self.polynomial(x, powers(series, size * self.SMALLEST))

    def by_float(self, function: Callable[[Emitter, str], str], x: str) -> str:
        """A function of float32."""
        short = self.e.convert(x, "float64", "float32")
        return self.e.convert(function(self.e, short), "float32", "float64")

    def log(self, x: str) -> str:
        return self.by_float(transcendental.log, x)

    def exp(self, x: str) -> str:
        return self.by_float(transcendental.exp, x)

    def sleef(self, name: str, x: str) -> str:
        return self.by_float(lambda e, short: e.sleef(name, "float32", short), x)

    def turned(self, angle: str) -> str:
        """The angle less whole turns."""
        turns = self.intrinsic("rint", self.mul(angle, 1 / _TURN))
        turns = self.e.negate("float64", turns)
        return self.fma(turns, _TURN_LOW, self.fma(turns, _TURN, angle))


class Whole(Wide):
    """The same for results in float64, by SLEEF's functions of it."""

    SMALLEST = 1e-17
    TERMS = 13
    FRESNEL_TERMS = 24
    SPENCE_TERMS = 9

    def log(self, x: str) -> str:
        return self.sleef("log", x)

    def exp(self, x: str) -> str:
        return self.sleef("exp", x)

    def sleef(self, name: str, x: str) -> str:
        return self.e.sleef(name, "float64", x)

    def turned(self, angle: str) -> str:
        """The angle: SLEEF takes whole turns off by more digits."""
        return angle


def powers(series: Sequence[float], smallest: float) -> list[float]:
    """A Chebyshev series as a polynomial, the highest power first, without terms that are too small."""
    terms = list(series)
    while abs(terms[-1]) < smallest:
        terms.pop()
    size = len(terms)
    result = [0.0] * size
    before, last = [0.0] * size, [1.0, *[0.0] * (size - 1)]  # of T(n - 1) and T(n)
    for n, term in enumerate(terms):
        result = [a + term * b for a, b in zip(result, last)]
        raised = [0.0, *last[:-1]]
        following = raised if n == 0 else [2 * a - b for a, b in zip(raised, before)]
        before, last = last, following
    return result[::-1]


def short(formula: Formula) -> Callable[[Emitter, str], str]:
    """The formula's result for a value of float32, in float32."""

    def emit(e: Emitter, x: str) -> str:
        return e.convert(formula(Wide(e), e.convert(x, "float32", "float64")), "float64", "float32")

    return emit


def whole(formula: Formula) -> Callable[[Emitter, str], str]:
    """The formula's result for a value of float64."""
    return lambda e, x: formula(Whole(e), x)
