"""Special functions as machine code: Bessel functions, integrals, the digamma function, quantiles.

Those of float32 are computed in float64 from polynomials right to nine digits, with logarithms, exponential
functions, sines and cosines of float32, so that results are within a few units in the last place, or within
as much of the largest term where terms cancel near a root. Those of float64 are the same formulas with all
terms of their series. All segments of an argument are computed, and one is chosen.
The formulas and the results outside of the domains are those of the kernels in `ops/numbers`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from flowstone.native.codegen.emitter import Emitter
from flowstone.native.numerics.special_polynomials import (
    I0E_FAR,
    I0E_NEAR,
    I1E_FAR,
    I1E_NEAR,
    K0_FAR,
    K1_FAR,
    QUANTILE_2_TO_5,
    QUANTILE_FAR,
    QUANTILE_NEAR,
)
from flowstone.native.numerics.wide_numbers import Formula, Wide, short, whole
from flowstone.ops.numbers.bessel_series import BESSEL_P0, BESSEL_P1, BESSEL_Q0, BESSEL_Q1
from flowstone.ops.numbers.chebyshev_series import (
    DAWSON_2_TO_4,
    DAWSON_FAR,
    DAWSON_NEAR,
    EXPONENTIAL_6_TO_16,
    EXPONENTIAL_16_TO_40,
    EXPONENTIAL_FAR,
    EXPONENTIAL_NEAR,
    FRESNEL_F,
    FRESNEL_G,
)

__all__ = ["FUNCTIONS", "WHOLE_FUNCTIONS"]

_EULER = 0.57721566490153286
_INF, _NAN = math.inf, math.nan


def _harmonic(n: int) -> float:
    return sum(1 / k for k in range(1, n + 1))


def _of_squares(
    count: int, order: int, sign: int, weight: Callable[[int], float] = lambda k: 1.0
) -> list[float]:
    """Coefficients sign^k weight(k) / (k! (k + order)!), the highest power first."""
    found = [sign**k * weight(k) / (math.factorial(k) * math.factorial(k + order)) for k in range(count)]
    return found[::-1]


def _digammas(k: int) -> float:
    """psi(k + 1) + psi(k + 2)."""
    return _harmonic(k) + _harmonic(k + 1) - 2 * _EULER


# ---- Bessel functions


def _second_kind_near(w: Wide, x: str, order: int, sign: int) -> str:
    """pi / 2 Y (sign -1) or K (sign 1) up to 2 (DLMF 10.8.1, 10.8.2, 10.31.1, 10.31.2)."""
    t = w.mul(w.mul(x, x), 0.25)
    first, log = w.polynomial(t, _of_squares(w.TERMS, order, sign)), w.log(w.mul(x, 0.5))
    if order == 0:
        rest = w.polynomial(t, _of_squares(w.TERMS, 0, sign, _harmonic))
        product = w.mul(w.add(log, _EULER), first)
        return w.sub(rest, product) if sign > 0 else w.sub(product, rest)
    half = w.mul(x, 0.5)
    rest = w.mul(0.5, w.polynomial(t, _of_squares(w.TERMS, 1, sign, _digammas)))
    product = w.mul(half, w.sub(w.mul(log, first), rest))
    inverse = w.div(1.0, x)
    return w.add(inverse, product) if sign > 0 else w.sub(product, inverse)


def _oscillating(order: int, second_kind: bool) -> Formula:
    """J or Y: power series up to 2, P and Q beyond."""
    cosines, sines = ((BESSEL_P0, BESSEL_Q0), (BESSEL_P1, BESSEL_Q1))[order]

    def formula(w: Wide, x: str) -> str:
        size = w.intrinsic("fabs", x)
        beyond = w.most(size, 2.0)
        inverse = w.div(2.0, beyond)
        inside = w.fma(w.mul(inverse, inverse), 2.0, -1.0)
        p = w.series(inside, cosines)
        q = w.mul(w.mul(w.series(inside, sines, 0.1), inverse), 0.5)
        angle = w.turned(w.sub(beyond, (order / 2 + 0.25) * math.pi))
        cosine, sine = w.sleef("cos", angle), w.sleef("sin", angle)
        if second_kind:
            wave = w.fma(p, sine, w.mul(q, cosine))
        else:
            wave = w.sub(w.mul(p, cosine), w.mul(q, sine))
        far = w.mul(w.intrinsic("sqrt", w.mul(inverse, 1 / math.pi)), wave)
        if second_kind:
            near = w.mul(2 / math.pi, _second_kind_near(w, size, order, -1))
        else:
            t = w.mul(w.mul(x, x), 0.25)
            near = w.polynomial(t, _of_squares(w.TERMS, order, -1))
            if order:
                near = w.mul(near, w.mul(size, 0.5))
        result = w.where(w.is_("ogt", size, 2.0), far, near)
        result = w.where(w.is_("oeq", size, _INF), _NAN, result)
        result = w.where(w.is_("uno", x, x), x, result)
        if second_kind:
            return w.where(w.is_("ole", x, 0.0), -_INF, result)
        return w.where(w.is_("olt", x, 0.0), w.e.negate("float64", result), result) if order else result

    return formula


def _modified(order: int, scaled: bool) -> Formula:
    """I, or I scaled by exp(-|x|)."""
    series = (I0E_NEAR, I1E_NEAR)[order], (I0E_FAR, I1E_FAR)[order]

    def formula(w: Wide, x: str) -> str:
        size = w.intrinsic("fabs", x)
        near = w.polynomial(w.fma(w.least(size, 8.0), 0.25, -1.0), series[0])
        if order:
            near = w.mul(near, size)
        beyond = w.most(size, 8.0)
        far = w.polynomial(w.sub(w.div(16.0, beyond), 1.0), series[1])
        far = w.div(far, w.intrinsic("sqrt", beyond))
        result = w.where(w.is_("ole", size, 8.0), near, far)
        if not scaled:
            result = w.mul(result, w.exp(size))
        if order:
            result = w.where(w.is_("olt", x, 0.0), w.e.negate("float64", result), result)
        return w.where(w.is_("uno", x, x), x, result)

    return formula


def _decaying(order: int, scaled: bool) -> Formula:
    """K, or K scaled by exp(x): infinite up to 0."""
    series = (K0_FAR, K1_FAR)[order]

    def formula(w: Wide, x: str) -> str:
        near = _second_kind_near(w, w.least(x, 2.0), order, 1)
        beyond = w.most(x, 2.0)
        far = w.polynomial(w.sub(w.div(4.0, beyond), 1.0), series)
        far = w.div(far, w.intrinsic("sqrt", beyond))
        if scaled:
            near = w.mul(near, w.exp(x))
        else:
            far = w.mul(far, w.exp(w.e.negate("float64", x)))
        result = w.where(w.is_("ole", x, 2.0), near, far)
        result = w.where(w.is_("ole", x, 0.0), _INF, result)
        return w.where(w.is_("uno", x, x), x, result)

    return formula


# ---- integrals


def _dawson(w: Wide, x: str) -> str:
    size = w.intrinsic("fabs", x)
    square = w.mul(x, x)
    near = w.mul(x, w.series(w.fma(w.least(square, 4.0), 0.5, -1.0), DAWSON_NEAR, 0.2))
    inside = w.mul(w.sub(w.least(w.most(square, 4.0), 16.0), 10.0), 1 / 6)
    between = w.mul(x, w.series(inside, DAWSON_2_TO_4, 0.03))
    inverse = w.div(4.0, w.most(size, 4.0))
    far = w.div(w.series(w.fma(w.mul(inverse, inverse), 2.0, -1.0), DAWSON_FAR), w.mul(x, 2.0))
    beyond = w.where(w.is_("ole", size, 4.0), between, far)
    return w.where(w.is_("ole", size, 2.0), near, beyond)


def _exponential_integral(w: Wide, x: str) -> str:
    low = w.least(x, 6.0)
    near = w.series(w.fma(low, 1 / 3, -1.0), EXPONENTIAL_NEAR)
    near = w.fma(low, near, w.add(w.log(low), _EULER))
    inverse = w.div(1.0, w.most(x, 6.0))
    far = w.number(0.0)
    for series, least, most in (
        (EXPONENTIAL_6_TO_16, 1 / 16, 1 / 6),
        (EXPONENTIAL_16_TO_40, 1 / 40, 1 / 16),
        (EXPONENTIAL_FAR, 0.0, 1 / 40),
    ):
        inside = w.fma(inverse, 2 / (most - least), -(least + most) / (most - least))
        far = w.where(w.is_("ole", inverse, most), w.series(inside, series), far)
    far = w.mul(w.mul(far, w.exp(x)), inverse)
    result = w.where(w.is_("ole", x, 6.0), near, far)
    result = w.where(w.is_("olt", x, 0.0), _NAN, result)
    return w.where(w.is_("ueq", x, _INF), _NAN, result)


def _fresnel_powers(count: int, sine: bool) -> list[float]:
    """Coefficients of the power series in -(pi x² / 2)² (DLMF 7.6.4, 7.6.6)."""
    coefficients, factor = [], 1.0
    for n in range(count):
        coefficients.append(factor / (4 * n + (3 if sine else 1)))
        factor /= (2 * n + 2) * (2 * n + 3) if sine else (2 * n + 1) * (2 * n + 2)
    return coefficients


def _fresnel(sine: bool) -> Formula:
    def formula(w: Wide, x: str) -> str:
        coefficients = _fresnel_powers(w.FRESNEL_TERMS, sine)
        size = w.intrinsic("fabs", x)
        small = w.least(size, 2.0)
        square = w.mul(small, small)
        step = w.mul(w.mul(square, square), -((math.pi / 2) ** 2))
        near = w.mul(w.polynomial(step, coefficients[::-1]), small)
        if sine:
            near = w.mul(near, w.mul(square, math.pi / 2))
        beyond = w.least(w.most(size, 2.0), 1e9)
        inverse = w.div(2.0, beyond)
        inside = w.fma(w.mul(w.mul(inverse, inverse), w.mul(inverse, inverse)), 2.0, -1.0)
        f = w.mul(w.series(inside, FRESNEL_F, 0.5), w.mul(inverse, 0.5 / math.pi))
        cube = w.mul(inverse, w.mul(inverse, inverse))
        g = w.mul(w.series(inside, FRESNEL_G, 0.5), w.mul(cube, 0.125 / math.pi**2))
        quarter = w.mul(w.mul(beyond, beyond), 0.25)  # the angle in turns
        turns = w.sub(quarter, w.intrinsic("rint", quarter))
        angle = w.mul(turns, 2 * math.pi)
        sines, cosines = w.sleef("sin", angle), w.sleef("cos", angle)
        if sine:
            far = w.sub(w.sub(0.5, w.mul(f, cosines)), w.mul(g, sines))
        else:
            far = w.add(0.5, w.sub(w.mul(f, sines), w.mul(g, cosines)))
        far = w.where(w.is_("ogt", size, 1e9), 0.5, far)
        result = w.where(w.is_("ole", size, 2.0), near, far)
        result = w.where(w.is_("olt", x, 0.0), w.e.negate("float64", result), result)
        return w.where(w.is_("uno", x, x), x, result)

    return formula


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)


def _spence(w: Wide, x: str) -> str:
    above = w.is_("ogt", x, 2.0)
    y = w.where(above, w.div(1.0, x), x)
    below = w.is_("olt", y, 0.5)
    log_y = w.log(w.most(y, 1.2e-38))
    log_rest = w.sleef("log1p", w.e.negate("float64", y))  # of 1 - y
    u = w.e.negate("float64", w.where(below, log_rest, log_y))
    square = w.mul(u, u)
    terms = [b / math.factorial(2 * k + 1) for k, b in enumerate(_BERNOULLI[: w.SPENCE_TERMS], 1)]
    total = w.mul(w.polynomial(square, terms[::-1]), square)
    result = w.mul(u, w.add(w.fma(u, -0.25, 1.0), total))
    products = w.mul(log_y, log_rest)
    result = w.where(below, w.sub(w.sub(math.pi**2 / 6, products), result), result)
    log = w.log(x)
    result = w.where(above, w.sub(w.mul(-0.5, w.mul(log, log)), result), result)
    result = w.where(w.is_("olt", x, 0.0), _NAN, result)
    return w.where(w.is_("ueq", x, _INF), _NAN, result)


# ---- the digamma function and the normal quantile

_SHIFT = 6


def _digamma(w: Wide, x: str) -> str:
    """By its recurrence and its asymptotic series (DLMF 5.5.2, 5.11.2), reflected below zero (5.5.4)."""
    below = w.is_("olt", x, 0.0)
    y = w.where(below, w.sub(1.0, x), x)
    small = w.is_("olt", y, float(_SHIFT))
    product, slope = y, w.number(1.0)  # of y (y + 1) … and its derivative
    for i in range(1, _SHIFT):
        factor = w.add(y, float(i))
        slope = w.fma(slope, factor, product)
        product = w.mul(product, factor)
    z = w.where(small, w.add(y, float(_SHIFT)), y)
    inverse = w.div(1.0, z)
    square = w.mul(inverse, inverse)
    tail = w.mul(square, w.polynomial(square, [1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12]))
    result = w.sub(w.sub(w.log(z), w.mul(inverse, 0.5)), tail)
    result = w.where(small, w.sub(result, w.div(slope, product)), result)
    angle = w.mul(w.sub(x, w.intrinsic("rint", x)), math.pi)
    turned = w.div(math.pi, w.sleef("tan", angle))
    result = w.where(below, w.sub(result, turned), result)
    whole = w.where(w.is_("oeq", x, w.intrinsic("floor", x)), _NAN, result)
    return w.where(w.is_("ole", x, 0.0), whole, result)


def _quantile(w: Wide, p: str) -> str:
    """The normal quantile: of the distance from one half in the middle, else of sqrt(-2 log p)."""
    centre = w.sub(p, 0.5)
    inside = w.fma(w.mul(centre, centre), 2 / 0.425**2, -1.0)
    near = w.mul(centre, w.polynomial(inside, QUANTILE_NEAR))
    side = w.least(p, w.sub(1.0, p))
    radius = w.intrinsic("sqrt", w.mul(-2.0, w.log(side)))
    between = w.polynomial(w.fma(radius, 1 / 1.7, -3.3 / 1.7), QUANTILE_2_TO_5)
    far = w.polynomial(w.fma(radius, 1 / 4.75, -9.75 / 4.75), QUANTILE_FAR)
    size = w.where(w.is_("ole", radius, 5.0), between, far)
    size = w.where(w.is_("oeq", side, 0.0), _INF, size)
    outer = w.where(w.is_("olt", centre, 0.0), w.e.negate("float64", size), size)
    result = w.where(w.is_("ole", w.intrinsic("fabs", centre), 0.425), near, outer)
    return w.where(w.is_("oge", side, 0.0), result, _NAN)


_WAVES = ("sin", "cos")
_FORMULAS: dict[str, tuple[Formula, tuple[str, ...]]] = {
    "BesselJ0": (_oscillating(0, second_kind=False), _WAVES),
    "BesselJ1": (_oscillating(1, second_kind=False), _WAVES),
    "BesselY0": (_oscillating(0, second_kind=True), _WAVES),
    "BesselY1": (_oscillating(1, second_kind=True), _WAVES),
    "Dawsn": (_dawson, ()),
    "Expint": (_exponential_integral, ()),
    "FresnelCos": (_fresnel(sine=False), _WAVES),
    "FresnelSin": (_fresnel(sine=True), _WAVES),
    "Spence": (_spence, ("log1p",)),
}
_SHORT_FORMULAS: dict[str, tuple[Formula, tuple[str, ...]]] = {
    "BesselI0": (_modified(0, scaled=False), ()),
    "BesselI0e": (_modified(0, scaled=True), ()),
    "BesselI1": (_modified(1, scaled=False), ()),
    "BesselI1e": (_modified(1, scaled=True), ()),
    "BesselK0": (_decaying(0, scaled=False), ()),
    "BesselK0e": (_decaying(0, scaled=True), ()),
    "BesselK1": (_decaying(1, scaled=False), ()),
    "BesselK1e": (_decaying(1, scaled=True), ()),
    "Digamma": (_digamma, ("tan",)),
    "Ndtri": (_quantile, ()),
}
Functions = dict[str, tuple[Callable[[Emitter, str], str], tuple[str, ...]]]

FUNCTIONS: Functions = {
    name: (short(formula), calls) for name, (formula, calls) in sorted((_FORMULAS | _SHORT_FORMULAS).items())
}
"""By the operations' names: the instructions for a value of float32, and the functions of SLEEF they call."""

WHOLE_FUNCTIONS: Functions = {
    name: (whole(formula), (*calls, "exp", "log")) for name, (formula, calls) in _FORMULAS.items()
}
"""The same for float64, of the functions whose series have all its digits."""
