"""The error function, its complement and inverse trigonometric functions of float32 as machine code.

SLEEF has them as well; these take a half to a fifth of the time, with results within 2.5 units in the last
place. They are polynomials in float64 (`special_polynomials.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from flowstone.native.emitter import Emitter
from flowstone.native.special_polynomials import ASIN, ATAN, ERF_FAR, ERF_NEAR, ERFC_1_TO_3, ERFC_FAR
from flowstone.native.wide_numbers import Wide, short

__all__ = ["POLYNOMIALS"]


def _complement(w: Wide, size: str) -> str:
    """erfc(size) where it is 1 or more: exp(-size²), whose exponent is a float32 and a rest, by a factor."""
    size = w.least(w.most(size, 1.0), 20.0)
    square = w.mul(size, size)
    high = w.e.convert(w.e.convert(square, "float64", "float32"), "float32", "float64")
    power = w.mul(w.exp(w.e.negate("float64", high)), w.add(1.0, w.sub(high, square)))
    inverse = w.div(1.0, size)
    near = w.polynomial(w.fma(inverse, 3.0, -2.0), ERFC_1_TO_3)
    far = w.mul(inverse, w.polynomial(w.fma(w.mul(inverse, inverse), 18.0, -1.0), ERFC_FAR))
    return w.mul(power, w.where(w.is_("ole", size, 3.0), near, far))


def _error_function(w: Wide, x: str) -> str:
    size = w.intrinsic("fabs", x)
    near = w.mul(x, w.polynomial(w.fma(w.mul(x, x), 2.0, -1.0), ERF_NEAR))
    far = w.polynomial(w.fma(w.least(size, 4.0), 1 / 1.5, -2.5 / 1.5), ERF_FAR)
    return w.where(w.is_("ogt", size, 1.0), w.intrinsic("copysign", far, x), near)


def _complementary(w: Wide, x: str) -> str:
    size = w.intrinsic("fabs", x)
    near = w.sub(1.0, w.mul(x, w.polynomial(w.fma(w.mul(x, x), 2.0, -1.0), ERF_NEAR)))
    far = _complement(w, size)
    far = w.where(w.is_("olt", x, 0.0), w.sub(2.0, far), far)
    return w.where(w.is_("ogt", size, 1.0), far, near)


def _arc_sine(w: Wide, x: str) -> tuple[str, str]:
    """The arc sine of x up to 1/2 (where the second says so), else of sqrt((1 - |x|) / 2)."""
    size = w.intrinsic("fabs", x)
    is_near = w.is_("ole", size, 0.5)
    root = w.by_float(lambda e, short: e.intrinsic("sqrt", "float32", short), w.mul(w.sub(1.0, size), 0.5))
    y = w.where(is_near, x, root)
    return w.mul(y, w.polynomial(w.fma(w.mul(y, y), 8.0, -1.0), ASIN)), is_near


def _asin(w: Wide, x: str) -> str:
    angle, is_near = _arc_sine(w, x)
    far = w.intrinsic("copysign", w.fma(angle, -2.0, math.pi / 2), x)
    return w.where(is_near, angle, far)


def _acos(w: Wide, x: str) -> str:
    angle, is_near = _arc_sine(w, x)
    far = w.mul(angle, 2.0)
    far = w.where(w.is_("olt", x, 0.0), w.sub(math.pi, far), far)
    return w.where(is_near, w.sub(math.pi / 2, angle), far)


def _atan(w: Wide, x: str) -> str:
    size = w.intrinsic("fabs", x)
    is_far = w.is_("ogt", size, 1.0)
    y = w.where(is_far, w.div(1.0, size), x)
    angle = w.mul(y, w.polynomial(w.fma(w.mul(y, y), 2.0, -1.0), ATAN))
    return w.where(is_far, w.intrinsic("copysign", w.sub(math.pi / 2, angle), x), angle)


POLYNOMIALS: dict[str, Callable[[Emitter, str], str]] = {
    "Acos": short(_acos),
    "Asin": short(_asin),
    "Atan": short(_atan),
    "Erf": short(_error_function),
    "Erfc": short(_complementary),
}
"""By the operations' names: the instructions for a value of float32."""
