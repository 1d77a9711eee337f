"""Exponential functions and logarithms of float32 as polynomials, inlined: about four times SLEEF's speed.

Largest errors against float64, in units in the last place: exp 1.3, expm1 1.5, log 1.0, tanh 4.4, sigmoid 2.8
(`tests/native/numerics/test_transcendental.py`). Infinities and NaN are as in C; powers below the smallest
normal number are 0, as TensorFlow's. exp and log follow Cephes (S. Moshier: range reduction by ln 2 in two
parts, polynomials of degree 6 and 9); tanh is a quotient of odd and even polynomials on [-8, 8], outside of
which it is ±1 in float32.
"""

from __future__ import annotations

from flowstone.native.codegen.emitter import Emitter

__all__ = ["exp", "expm1", "log", "polynomial", "sigmoid", "tanh"]

_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
_LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
# Both times 256: the first product of a small number is then a normal number where the number is one.
_TANH_ODD = (
    -7.067567302204288e-14, 5.120481036351411e-11, -2.2027959096671616e-08, 1.3113080551350119e-05,
    0.0038034492343802626, 0.1631390537921116, 1.252742287082972,
)  # fmt: skip
_TANH_EVEN = (0.0003067541490347571, 0.030344884655783423, 0.580719265904384, 1.2527424474992257)
_TANH_LIMIT = 7.99881172180175781
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4  # their sum is ln 2
_ROUNDING = 12582912.0  # 1.5 * 2^23: added, it rounds to whole numbers, which the low bits then hold


def polynomial(e: Emitter, x: str, coefficients: tuple[float, ...]) -> str:
    """The polynomial whose first coefficient is that of the highest power."""
    result = e.constant("float32", coefficients[0])
    for each in coefficients[1:]:
        result = e.intrinsic("fma", "float32", result, x, e.constant("float32", each))
    return result


def _f(e: Emitter, value: float) -> str:
    return e.constant("float32", value)


def _powers(e: Emitter, x: str, more: str = "") -> tuple[str, str, str]:
    """(n, in the exponent's bits; r; what is behind r in e^r - 1 - r, over r^2), where x = n ln 2 + r, or x +
    more."""
    shifted = e.intrinsic("fma", "float32", x, _f(e, 1.44269504088896341), _f(e, _ROUNDING))
    whole = e.binary("fsub", "float32", shifted, _f(e, _ROUNDING))
    rest = e.intrinsic("fma", "float32", whole, _f(e, -_LN2_HIGH), x)
    rest = e.intrinsic("fma", "float32", whole, _f(e, -_LN2_LOW), rest)
    if more:
        rest = e.binary("fadd", "float32", rest, more)
    exponent = e.let(f"shl {e.type('int32')} {e.bits(shifted, 'float', 'i32')}, {e.constant('int32', 23)}")
    return exponent, rest, polynomial(e, rest, _EXP)


def _infinite_beyond(e: Emitter, x: str, result: str) -> str:
    """The result; infinity where e^x is beyond float32; NaN where x is."""
    large = e.compare("fcmp uge", "float32", x, _f(e, 88.72284))  # or NaN, which stays
    return e.select(large, "float32", e.binary("fadd", "float32", x, _f(e, float("inf"))), result)


def exp(e: Emitter, x: str) -> str:
    """e^x."""
    exponent, rest, high = _powers(e, x)
    low = e.binary("fadd", "float32", rest, _f(e, 1.0))
    power = e.intrinsic("fma", "float32", high, e.binary("fmul", "float32", rest, rest), low)
    scaled = e.binary("add", "int32", e.bits(power, "float", "i32"), exponent)
    result = e.bits(scaled, "i32", "float")
    small = e.compare("fcmp olt", "float32", x, _f(e, -87.33655))
    return _infinite_beyond(e, x, e.select(small, "float32", _f(e, 0.0), result))


def scaled_exp(e: Emitter, x: str, more: str) -> tuple[str, str]:
    """(n, in the exponent's bits; e^r), where x + more = n ln 2 + r, for a small `more`."""
    exponent, rest, high = _powers(e, x, more)
    slope = e.intrinsic("fma", "float32", high, rest, _f(e, 1.0))
    return exponent, e.intrinsic("fma", "float32", slope, rest, _f(e, 1.0))


def expm1(e: Emitter, x: str) -> str:
    """e^x - 1, with x's sign: twice (2^(n - 1) (e^r - 1) + 2^(n - 1) - 1/2)."""
    low = _f(e, -20.0)
    y = e.select(e.compare("fcmp olt", "float32", x, low), "float32", low, x)
    exponent, rest, high = _powers(e, y)
    power = e.intrinsic("fma", "float32", high, e.binary("fmul", "float32", rest, rest), rest)
    half = e.bits(e.binary("add", "int32", exponent, e.constant("int32", 0x3F000000)), "i32", "float")
    result = e.intrinsic("fma", "float32", half, power, e.binary("fsub", "float32", half, _f(e, 0.5)))
    result = e.intrinsic("copysign", "float32", e.binary("fadd", "float32", result, result), x)
    return _infinite_beyond(e, x, result)


def tanh(e: Emitter, x: str) -> str:
    """The hyperbolic tangent."""
    high, low = _f(e, _TANH_LIMIT), _f(e, -_TANH_LIMIT)
    y = e.select(e.compare("fcmp ogt", "float32", x, high), "float32", high, x)
    y = e.select(e.compare("fcmp olt", "float32", y, low), "float32", low, y)
    square = e.binary("fmul", "float32", y, y)
    odd = e.binary("fmul", "float32", y, polynomial(e, square, _TANH_ODD))
    return e.binary("fdiv", "float32", odd, polynomial(e, square, _TANH_EVEN))


def sigmoid(e: Emitter, x: str) -> str:
    """1 / (1 + e^-x)."""
    return e.binary(
        "fdiv", "float32", _f(e, 1.0), e.binary("fadd", "float32", exp(e, e.negate("float32", x)), _f(e, 1.0))
    )


def log(e: Emitter, x: str) -> str:
    """The natural logarithm: NaN below 0, -inf at 0."""
    tiny = e.compare("fcmp olt", "float32", x, _f(e, 1.17549435e-38))
    y = e.select(tiny, "float32", e.binary("fmul", "float32", x, _f(e, 33554432.0)), x)
    bias = e.select(tiny, "int32", e.constant("int32", 126 + 25), e.constant("int32", 126))
    word = e.bits(y, "float", "i32")
    exponent = e.binary("sub", "int32", e.binary("lshr", "int32", word, e.constant("int32", 23)), bias)
    fraction = e.binary("and", "int32", word, e.constant("int32", 0x007FFFFF))
    fraction = e.bits(e.binary("or", "int32", fraction, e.constant("int32", 0x3F000000)), "i32", "float")
    low = e.compare("fcmp olt", "float32", fraction, _f(e, 0.707106781186547524))
    power = e.convert(exponent, "int32", "float32")
    power = e.select(low, "float32", e.binary("fsub", "float32", power, _f(e, 1.0)), power)
    twice = e.select(low, "float32", e.binary("fadd", "float32", fraction, fraction), fraction)
    z = e.binary("fsub", "float32", twice, _f(e, 1.0))
    square = e.binary("fmul", "float32", z, z)
    y = e.binary("fmul", "float32", e.binary("fmul", "float32", polynomial(e, z, _LOG), z), square)
    y = e.intrinsic("fma", "float32", power, _f(e, _LN2_LOW), y)
    y = e.intrinsic("fma", "float32", square, _f(e, -0.5), y)
    y = e.intrinsic("fma", "float32", power, _f(e, _LN2_HIGH), e.binary("fadd", "float32", z, y))
    return _with_limits(e, x, y)


def _with_limits(e: Emitter, x: str, y: str) -> str:
    """The logarithm `y` of x, or what it is where x is no positive finite number."""
    infinite = e.compare("fcmp ueq", "float32", x, _f(e, float("inf")))  # or NaN
    y = e.select(infinite, "float32", x, y)
    y = e.select(e.compare("fcmp oeq", "float32", x, _f(e, 0.0)), "float32", _f(e, float("-inf")), y)
    return e.select(e.compare("fcmp olt", "float32", x, _f(e, 0.0)), "float32", _f(e, float("nan")), y)
