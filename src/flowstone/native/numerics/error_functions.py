"""The error function, its complement and inverse trigonometric functions of float32 as machine code.

SLEEF has them as well; these take a half to a fifth of the time, with results within 2.5 units in the last
place. The complement is made of polynomials in float64 (`special_polynomials.py`), the error function and
the arcs of some in float32, with a right angle in two parts. These were fitted so that the largest relative
error is least.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from flowstone.native.codegen.emitter import Emitter
from flowstone.native.numerics.special_polynomials import ERFC, POWER
from flowstone.native.numerics.transcendental import exp, polynomial
from flowstone.native.numerics.wide_numbers import Wide, short

__all__ = ["POLYNOMIALS"]

_FLOAT = "float32"
_RIGHT_ANGLE = 1.57079637050628662109375, -4.37113900018624283e-8  # in float32, and what that is too much by
# (asin(y) / y - 1) / y^2 and (atan(y) / y - 1) / y^2, in y^2 up to 1/4 and up to 1
_ASIN = (
    0.037565186619758606, 0.014402614906430244, 0.03181760758161545, 0.04451572149991989,
    0.07500510662794113, 0.16666659712791443,
)  # fmt: skip
_ATAN = (
    -0.0017747069941833615, 0.010830777697265148, -0.03102368488907814, 0.05780557915568352,
    -0.08394785225391388, 0.1094932034611702, -0.1426372081041336, 0.19998502731323242, -0.33333298563957214,
)  # fmt: skip
# erf(y) / y - 1 in y^2 up to 1, and -log(erfc(y)) in y from 1 to 4
_ERF = (
    7.853897113818675e-05, -0.000801020534709096, 0.005188329145312309, -0.026853812858462334,
    0.1128358542919159, -0.3761262595653534, 0.12837916612625122,
)  # fmt: skip
_ERFC_LOG = (
    -0.00018637940229382366, 0.002947660395875573, -0.021838072687387466, 0.1031067743897438,
    0.6381447911262512, 1.127089262008667, 0.00034151971340179443,
)  # fmt: skip


_ROUNDING = 1.5 * 2.0**52  # added, it rounds to whole numbers, which the low bits then hold


def _falling_power(w: Wide, x: str) -> str:
    """e^-x of numbers from 0 to 700 or NaN, within 2e-9 of it."""
    e = w.e
    shifted = w.fma(x, -math.log2(math.e), _ROUNDING)
    whole = w.sub(shifted, _ROUNDING)
    power = w.polynomial(w.fma(whole, -math.log(2), e.negate("float64", x)), POWER)
    exponent = e.binary("shl", "int64", e.bits(shifted, "double", "i64"), e.constant("int64", 52))
    return e.bits(e.binary("add", "int64", e.bits(power, "double", "i64"), exponent), "i64", "double")


def _complementary(w: Wide, x: str) -> str:
    """exp(-x²) by a factor, of the size; of a negative number 2 less that."""
    size = w.intrinsic("fabs", x)
    size = w.where(w.is_("ogt", size, 10.5), 10.5, size)  # whose result is 0 in float32; NaN stays
    part = w.div(4.0, w.add(size, 4.0))  # from 1 to 4 / 14.5, of which `place` makes 1 to -1
    place = w.fma(part, 58 / 21, -37 / 21)
    found = w.mul(part, w.polynomial(place, ERFC))
    found = w.mul(found, _falling_power(w, w.mul(size, size)))
    return w.where(w.is_("olt", x, 0.0), w.sub(2.0, found), found)


def _f(e: Emitter, value: float) -> str:
    return e.constant(_FLOAT, value)


def _erf(e: Emitter, x: str) -> str:
    """x + x times a polynomial, or from 1 on one less a power of e, of which half a unit is left at 4."""
    size = e.intrinsic("fabs", _FLOAT, x)
    near = polynomial(e, e.binary("fmul", _FLOAT, x, x), _ERF)
    near = e.intrinsic("fma", _FLOAT, near, x, x)
    end = e.select(e.compare("fcmp ogt", _FLOAT, size, _f(e, 4.0)), _FLOAT, _f(e, 4.0), size)
    power = exp(e, e.negate(_FLOAT, polynomial(e, end, _ERFC_LOG)))
    far = e.intrinsic("copysign", _FLOAT, e.binary("fsub", _FLOAT, _f(e, 1.0), power), x)
    return e.select(e.compare("fcmp ogt", _FLOAT, size, _f(e, 1.0)), _FLOAT, far, near)


def _odd(e: Emitter, y: str, coefficients: tuple[float, ...]) -> str:
    """y + y^3 times the polynomial in y^2."""
    square = e.binary("fmul", _FLOAT, y, y)
    rest = e.binary("fmul", _FLOAT, polynomial(e, square, coefficients), square)
    return e.intrinsic("fma", _FLOAT, rest, y, y)


def _less(e: Emitter, turns: int, angle: str, times: float) -> str:
    """So many right angles less `times` the angle."""
    high, low = (turns * part for part in _RIGHT_ANGLE)
    return e.binary("fsub", _FLOAT, _f(e, high), e.intrinsic("fma", _FLOAT, angle, _f(e, times), _f(e, -low)))


def _arc_sine(e: Emitter, x: str) -> tuple[str, str]:
    """The arc sine of |x| up to 1/2 (where the second says so), else of sqrt((1 - |x|) / 2)."""
    size = e.intrinsic("fabs", _FLOAT, x)
    is_near = e.compare("fcmp ole", _FLOAT, size, _f(e, 0.5))
    half = e.binary("fmul", _FLOAT, e.binary("fsub", _FLOAT, _f(e, 1.0), size), _f(e, 0.5))
    y = e.select(is_near, _FLOAT, size, e.intrinsic("sqrt", _FLOAT, half))
    return _odd(e, y, _ASIN), is_near


def _asin(e: Emitter, x: str) -> str:
    angle, is_near = _arc_sine(e, x)
    return e.intrinsic("copysign", _FLOAT, e.select(is_near, _FLOAT, angle, _less(e, 1, angle, 2.0)), x)


def _acos(e: Emitter, x: str) -> str:
    angle, is_near = _arc_sine(e, x)
    twice = e.binary("fadd", _FLOAT, angle, angle)
    far = e.select(e.compare("fcmp olt", _FLOAT, x, _f(e, 0.0)), _FLOAT, _less(e, 2, angle, 2.0), twice)
    return e.select(is_near, _FLOAT, _less(e, 1, e.intrinsic("copysign", _FLOAT, angle, x), 1.0), far)


def _atan(e: Emitter, x: str) -> str:
    size = e.intrinsic("fabs", _FLOAT, x)
    is_far = e.compare("fcmp ogt", _FLOAT, size, _f(e, 1.0))
    angle = _odd(e, e.select(is_far, _FLOAT, e.binary("fdiv", _FLOAT, _f(e, 1.0), size), size), _ATAN)
    return e.intrinsic("copysign", _FLOAT, e.select(is_far, _FLOAT, _less(e, 1, angle, 1.0), angle), x)


POLYNOMIALS: dict[str, Callable[[Emitter, str], str]] = {
    "Acos": _acos,
    "Asin": _asin,
    "Atan": _atan,
    "Erf": _erf,
    "Erfc": short(_complementary),
}
"""By the operations' names: the instructions for a value of float32."""
