"""Sine, cosine and tangent of float32 as machine code: polynomials in a third to two thirds of SLEEF's time.

Right angles are subtracted in three parts, and what the rest's rounding leaves out is added to results, which
are within one unit in the last place, tangents within 1.6. Arguments beyond 1,600, where three parts are too
few, infinities and NaN take SLEEF's functions, which a vector without any does not call. Polynomials
interpolate at Chebyshev's points.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from flowstone.native.codegen.arithmetic import Arithmetic
from flowstone.native.codegen.emitter import Emitter
from flowstone.native.numerics.transcendental import polynomial

__all__ = ["CIRCULAR", "FAR", "waves"]

FAR = 1600.0  # 1,019 right angles: their product with 14 bits is exact
_ROUNDING = 12582912.0  # 1.5 * 2^23: added, it rounds to whole numbers, which the low bits then hold
_RIGHT_ANGLE = 1.5707963705062866, -4.371031536720693e-08, -1.074634630414406e-12
# (sin(y) / y - 1) / y^2, (cos(y) - 1 + y^2 / 2) / y^4 and (tan(y) / y - 1) / y^2, in y^2 up to (pi / 4)^2
_SIN = -0.00019587249, 0.008332745, -0.16666664
_COS = 2.4547298e-05, -0.00138883, 0.041666664
_TAN = (
    0.003853762289509177, 0.0011673972476273775, 0.009973381645977497, 0.021617919206619263,
    0.05399487167596817, 0.133332297205925, 0.3333333432674408,
)  # fmt: skip


class _Single(Arithmetic):
    TYPE = "float32"

    def fma(self, a: str | float, b: str | float, c: str | float) -> str:
        return self.intrinsic("fma", a, b, c)

    def word(self, x: str) -> str:
        return self.e.bits(x, "float", "i32")

    def whole(self, name: str, a: str, b: str | int) -> str:
        """An operation on words."""
        return self.e.binary(name, "int32", a, b if isinstance(b, str) else self.e.constant("int32", b))

    def signed(self, x: str, *words: str) -> str:
        """x with its sign changed as often as the words have a highest bit."""
        result = self.word(x)
        for each in words:
            result = self.whole("xor", result, self.whole("and", each, -1 << 31))
        return self.e.bits(result, "i32", "float")

    def is_odd(self, word: str) -> str:
        return self.e.compare("icmp ne", "int32", self.whole("and", word, 1), self.e.constant("int32", 0))


def _rest(s: _Single, size: str) -> tuple[str, str, str]:
    """Its right angles, in the low bits; what is left, and what that is too little by."""
    shifted = s.fma(size, 2 / math.pi, _ROUNDING)
    turns = s.sub(shifted, _ROUNDING)
    high, middle, low = _RIGHT_ANGLE
    rest = s.fma(turns, -high, size)  # without error
    angle = s.fma(turns, -middle, rest)
    more = s.fma(turns, -middle, s.sub(rest, angle))
    return s.word(shifted), angle, s.fma(turns, -low, more)


def _waves(s: _Single, angle: str, more: str) -> tuple[str, str]:
    """Sine and cosine of at most half a right angle."""
    square = s.mul(angle, angle)
    sine = s.fma(s.mul(angle, square), polynomial(s.e, square, _SIN), more)
    parabola = s.fma(square, -0.5, 1.0)
    left = s.fma(square, -0.5, s.sub(1.0, parabola))
    bend = s.fma(s.mul(square, square), polynomial(s.e, square, _COS), left)
    bend = s.fma(s.e.negate("float32", angle), more, bend)
    return s.add(angle, sine), s.add(parabola, bend)


def _sin(s: _Single, x: str, size: str) -> str:
    turns, angle, more = _rest(s, size)
    sine, cosine = _waves(s, angle, more)
    return s.signed(s.where(s.is_odd(turns), cosine, sine), s.whole("shl", turns, 30), s.word(x))


def _cos(s: _Single, x: str, size: str) -> str:
    turns, angle, more = _rest(s, size)
    sine, cosine = _waves(s, angle, more)
    sign = s.whole("shl", s.whole("add", turns, 1), 30)
    return s.signed(s.where(s.is_odd(turns), sine, cosine), sign)


def waves(e: Emitter, x: str, size: str) -> tuple[str, str]:
    """Sine and cosine of x, where its absolute value `size` is at most `FAR`."""
    s = _Single(e)
    turns, angle, more = _rest(s, size)
    sine, cosine = _waves(s, angle, more)
    is_odd = s.is_odd(turns)
    first = s.signed(s.where(is_odd, cosine, sine), s.whole("shl", turns, 30), s.word(x))
    sign = s.whole("shl", s.whole("add", turns, 1), 30)
    return first, s.signed(s.where(is_odd, sine, cosine), sign)


def _tan(s: _Single, x: str, size: str) -> str:
    turns, angle, more = _rest(s, size)
    square = s.mul(angle, angle)
    bend = s.fma(s.mul(angle, square), polynomial(s.e, square, _TAN), more)
    tangent = s.add(angle, bend)
    result = s.where(s.is_odd(turns), s.div(-1.0, tangent), tangent)
    return s.signed(result, s.word(x))


def _near_or_far(name: str, near: Callable[[_Single, str, str], str]) -> Callable[[Emitter, str], str]:
    """A call of a function of the text, which has SLEEF compute what is far."""

    def emit(e: Emitter, x: str) -> str:
        full, kind = f"near_{name}{e.lanes}", e.type("float32")
        if full not in e.declarations:
            e.declarations[full] = _function(e, name, full, near)
        return e.let(f"call {kind} @{full}({kind} {x})")

    return emit


def _function(e: Emitter, name: str, full: str, near: Callable[[_Single, str, str], str]) -> str:
    inside, kind = Emitter(e.lanes, e.declarations), e.type("float32")
    s = _Single(inside)
    size = inside.intrinsic("fabs", "float32", "%x")
    result = near(s, "%x", size)
    is_far = s.is_("ugt", size, FAR)
    some = is_far
    if e.lanes > 1:
        bits = inside.let(f"bitcast {e.vector('i1')} {is_far} to i{e.lanes}")
        some = inside.let(f"icmp ne i{e.lanes} {bits}, 0")
    inside.do(f"br i1 {some}, label %far, label %near")
    inside.lines.append("far:")
    chosen = s.where(is_far, inside.sleef(name, "float32", "%x"), result)
    lines = [*inside.lines, f" ret {kind} {chosen}", "near:", f" ret {kind} {result}", "}"]
    return "\n".join([f"define internal {kind} @{full}({kind} %x) {{", *lines])


CIRCULAR: dict[str, Callable[[Emitter, str], str]] = {
    "Cos": _near_or_far("cos", _cos),
    "Sin": _near_or_far("sin", _sin),
    "Tan": _near_or_far("tan", _tan),
}
"""By the operations' names: the instructions for a value of float32. Far ones need SLEEF's function."""
