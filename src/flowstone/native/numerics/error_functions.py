"""The error function, its complement and inverse trigonometric functions of float32 as machine code.

SLEEF has them as well; these take a half to a fifth of the time, with results within 2.5 units in the last
place, the complement within 3. They are made of polynomials in float32, fitted so that the largest relative
error is least; a right angle has two parts.
"""

from __future__ import annotations

from collections.abc import Callable

from flowstone.native.codegen.emitter import Emitter
from flowstone.native.numerics.transcendental import exp, polynomial, scaled_exp
from flowstone.native.numerics.wide_numbers import Wide

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


# erf(y) / y in y^2 up to 1/4; (y + 1) exp(y^2) erfc(y) in what `_place` makes of y from 1/2 to 10.1
_ERF_NEAR = (
    0.004717989852644276, -0.026757184159273528, 0.11282822808137406, -0.3761260857275322, 1.1283791655673376,
)  # fmt: skip
_ERFC_SCALED = (
    -2.434032596622677e-05, 1.6271687374354126e-05, 0.000166174547567219, -0.000435696154718918,
    -8.180504591275611e-05, 0.003706025879519606, -0.00830843120504688, -0.024987477146907685,
    0.1614889542880013, 0.7919958217790121,
)  # fmt: skip
_PLACE = 3.46875, -1.3125
_BEYOND = 10.1  # from which on the complement is 0
_UP = 32  # powers of two that keep exp(-y^2) above the denormal numbers until the end
_SLOPE = 1.15  # of log(erfc(y)) by log(1 / (y + 1)), about


class _Short(Wide):
    TYPE = _FLOAT


def _complementary(e: Emitter, x: str) -> str:
    """Near 0 what erf leaves of 1; else exp(-y^2) by 1 / (y + 1) and a polynomial, of a negative number 2
    less that. What y^2 and 1 / (y + 1) are wrong by is in the exponent."""
    s = _Short(e)
    near = s.fma(e.negate(_FLOAT, x), s.polynomial(s.mul(x, x), _ERF_NEAR), 1.0)
    size = s.intrinsic("fabs", x)
    y = s.where(s.is_("ogt", size, _BEYOND), _BEYOND, size)  # NaN stays
    whole = s.add(y, 1.0)
    part = s.div(1.0, whole)
    wrong = s.fma(e.negate(_FLOAT, part), whole, 1.0)
    wrong = s.fma(s.sub(s.sub(whole, 1.0), y), part, wrong)
    square = s.mul(y, y)
    exact = s.fma(y, y, e.negate(_FLOAT, square))
    exponent, power = scaled_exp(e, e.negate(_FLOAT, square), s.fma(wrong, _SLOPE, e.negate(_FLOAT, exact)))
    exponent = e.binary("add", "int32", exponent, e.constant("int32", _UP << 23))
    power = e.bits(e.binary("add", "int32", e.bits(power, "float", "i32"), exponent), "i32", "float")
    far = s.mul(s.mul(power, part), s.polynomial(s.fma(part, *_PLACE), _ERFC_SCALED))
    far = s.mul(far, 2.0**-_UP)
    far = s.where(s.is_("olt", x, 0.0), s.sub(2.0, far), far)
    return s.where(s.is_("olt", size, 0.5), near, far)


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
    "Erfc": _complementary,
}
"""By the operations' names: the instructions for a value of float32."""
