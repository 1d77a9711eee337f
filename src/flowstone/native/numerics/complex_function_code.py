"""LLVM's text of functions of complex64 numbers: their real and imaginary parts, a vector of each at a time.

Exponential and circular functions of float32 are those of clusters. What would cancel is computed in float64:
squares of absolute values, quotients, and what is between them and 1. Results are within a few units in the
last place of the larger part, or of the numbers that a power multiplies. What is beyond the range of the
formulas, or has a result that is not finite, is left to others: both parts become NaN, and a note 1.
Threads share the elements.
"""

from __future__ import annotations

from collections.abc import Callable

from flowstone.native.codegen.arithmetic import Arithmetic
from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import Emitter
from flowstone.native.codegen.structured import Code
from flowstone.native.numerics import circular_functions, exponential_functions, transcendental

__all__ = ["CALLS", "PLACES", "WORDS", "complex_function_code"]

WORDS = ("threads", "count")
"""The whole numbers of a call: how many elements."""
_FAR = 40.0  # beyond, hyperbolic functions' squares are beyond float32
_LARGE = 87.0  # beyond, exponential functions are beyond normal numbers of float32
_LEAST, _MOST = 1e-37, 1e38  # of squares of absolute values that are taken to float32
Parts = tuple[str, str]
Found = tuple[str, str, list[str]]
"""Both parts of a result, and under which conditions they are right."""


class _Single(Arithmetic):
    TYPE = "float32"

    def wide(self, x: str) -> str:
        """The same in float64."""
        return self.e.convert(x, "float32", "float64")

    def exp(self, x: str) -> str:
        return exponential_functions.exp(self.e, "float32", x)

    def below(self, x: str, limit: float) -> str:
        """Whether |x| is."""
        return self.is_("olt", self.intrinsic("fabs", x), limit)


class _Double(Arithmetic):
    TYPE = "float64"

    def narrow(self, x: str) -> str:
        """The same in float32."""
        return self.e.convert(x, "float64", "float32")


# ---- what functions share


def _waves(s: _Single, y: str) -> tuple[str, str, str]:
    """Sine and cosine, and where they are right."""
    size = s.intrinsic("fabs", y)
    return *circular_functions.waves(s.e, y, size), s.is_("ole", size, circular_functions.FAR)


def _hyperbolic(s: _Single, x: str) -> tuple[str, str]:
    """Hyperbolic sine and cosine."""
    less = transcendental.expm1(s.e, s.intrinsic("fabs", x))
    power = s.add(less, 1.0)
    sine = s.intrinsic("copysign", s.mul(s.add(less, s.div(less, power)), 0.5), x)
    return sine, s.mul(s.add(power, s.div(1.0, power)), 0.5)


def _squared(s: _Single, d: _Double, x: str, y: str) -> str:
    """x² + y² in float64, rounded once."""
    a, b = s.wide(x), s.wide(y)
    return d.add(d.mul(a, a), d.mul(b, b))


def _in_range(d: _Double, square: str) -> list[str]:
    return [d.is_("ogt", square, _LEAST), d.is_("olt", square, _MOST)]


def _quotient(s: _Single, x: Parts, y: Parts) -> Parts:
    """x / y, whose products are exact."""
    d = _Double(s.e)
    a, b, c, e = (s.wide(part) for part in (*x, *y))
    size = d.add(d.mul(c, c), d.mul(e, e))
    above = d.add(d.mul(a, c), d.mul(b, e)), d.sub(d.mul(b, c), d.mul(a, e))
    real, imaginary = (d.narrow(d.div(part, size)) for part in above)
    return real, imaginary


def _product(s: _Single, x: Parts, y: Parts) -> Parts:
    """x y, whose parts are rounded once."""
    d = _Double(s.e)
    a, b, c, e = (s.wide(part) for part in (*x, *y))
    return d.narrow(d.sub(d.mul(a, c), d.mul(b, e))), d.narrow(d.add(d.mul(a, e), d.mul(b, c)))


# ---- functions of one number


def _exp(s: _Single, x: str, y: str) -> Found:
    sine, cosine, near = _waves(s, y)
    size = s.exp(x)
    return s.mul(size, cosine), s.mul(size, sine), [near, s.below(x, _LARGE)]


def _expm1(s: _Single, x: str, y: str) -> Found:
    """e^x cos y - 1 as (e^x - 1) cos y - 2 sin²(y / 2)."""
    sine, cosine, near = _waves(s, y)
    half, _, _ = _waves(s, s.mul(y, 0.5))
    less = transcendental.expm1(s.e, x)
    d = _Double(s.e)
    bend = d.mul(d.mul(s.wide(half), s.wide(half)), 2.0)
    real = d.narrow(d.sub(d.mul(s.wide(less), s.wide(cosine)), bend))
    return real, s.mul(s.exp(x), sine), [near, s.below(x, _LARGE)]


def _log(s: _Single, x: str, y: str) -> Found:
    d = _Double(s.e)
    square = _squared(s, d, x, y)
    return (
        _log_of_size(s, square, d.sub(square, 1.0)),
        s.e.sleef("atan2", "float32", y, x),
        _in_range(d, square),
    )


def _log_of_size(s: _Single, square: str, more: str) -> str:
    """Half the logarithm of a square, which is 1 + `more`."""
    d = _Double(s.e)
    is_near = d.is_("olt", d.intrinsic("fabs", more), 0.5)
    near = s.e.sleef("log1p", "float32", d.narrow(more))
    far = exponential_functions.log(s.e, "float32", d.narrow(square))
    return s.mul(s.where(is_near, near, far), 0.5)


def _log1p(s: _Single, x: str, y: str) -> Found:
    d = _Double(s.e)
    a, b = s.wide(x), s.wide(y)
    more = d.add(d.mul(a, d.add(a, 2.0)), d.mul(b, b))
    whole = d.add(a, 1.0)
    square = d.add(d.mul(whole, whole), d.mul(b, b))
    real = _log_of_size(s, square, more)
    return real, s.e.sleef("atan2", "float32", y, s.add(x, 1.0)), _in_range(d, square)


def _sqrt(s: _Single, x: str, y: str) -> Found:
    """The root in the right half-plane, with the sign of y."""
    d = _Double(s.e)
    square = _squared(s, d, x, y)
    size = d.intrinsic("sqrt", square)
    first = d.intrinsic("sqrt", d.mul(d.add(size, d.intrinsic("fabs", s.wide(x))), 0.5))
    second = d.div(d.mul(s.wide(y), 0.5), first)
    root, other = d.narrow(first), d.narrow(second)
    is_left = s.is_("olt", x, 0.0)
    real = s.where(is_left, s.intrinsic("fabs", other), root)
    imaginary = s.where(is_left, s.intrinsic("copysign", root, y), other)
    return real, imaginary, _in_range(d, square)


def _rsqrt(s: _Single, x: str, y: str) -> Found:
    real, imaginary, right = _sqrt(s, x, y)
    return *_quotient(s, (s.number(1.0), s.number(0.0)), (real, imaginary)), right


def _sin(s: _Single, x: str, y: str) -> Found:
    sine, cosine, near = _waves(s, x)
    sinh, cosh = _hyperbolic(s, y)
    return s.mul(sine, cosh), s.mul(cosine, sinh), [near, s.below(y, _LARGE)]


def _cos(s: _Single, x: str, y: str) -> Found:
    sine, cosine, near = _waves(s, x)
    sinh, cosh = _hyperbolic(s, y)
    return s.mul(cosine, cosh), s.e.negate("float32", s.mul(sine, sinh)), [near, s.below(y, _LARGE)]


def _sinh(s: _Single, x: str, y: str) -> Found:
    imaginary, real, right = _sin(s, y, x)
    return real, imaginary, right


def _cosh(s: _Single, x: str, y: str) -> Found:
    sine, cosine, near = _waves(s, y)
    sinh, cosh = _hyperbolic(s, x)
    return s.mul(cosine, cosh), s.mul(sine, sinh), [near, s.below(x, _LARGE)]


def _tanh(s: _Single, x: str, y: str) -> Found:
    """(sinh x cosh x + i sin y cos y) / (cos² y + sinh² x)."""
    sine, cosine, near = _waves(s, y)
    sinh, cosh = _hyperbolic(s, x)
    below = s.add(s.mul(cosine, cosine), s.mul(sinh, sinh))
    real, imaginary = s.div(s.mul(sinh, cosh), below), s.div(s.mul(sine, cosine), below)
    return real, imaginary, [near, s.below(x, _FAR)]


def _tan(s: _Single, x: str, y: str) -> Found:
    """i tan z is the hyperbolic tangent of i z; both are odd."""
    imaginary, real, right = _tanh(s, y, x)
    return real, imaginary, right


def _sigmoid(s: _Single, x: str, y: str) -> Found:
    """1 / (1 + e^-z)."""
    sine, cosine, near = _waves(s, y)
    size = s.exp(s.e.negate("float32", x))
    d = _Double(s.e)
    a = d.add(d.mul(s.wide(size), s.wide(cosine)), 1.0)
    b = d.mul(s.wide(size), s.wide(sine))
    square = d.add(d.mul(a, a), d.mul(b, b))
    return d.narrow(d.div(a, square)), d.narrow(d.div(b, square)), [near, s.below(x, _LARGE)]


# ---- inverse functions


def _atanh(s: _Single, x: str, y: str) -> Found:
    """log1p(4 |x| / ((1 - |x|)² + y²)) / 4 and atan2(2 y, 1 - x² - y²) / 2."""
    d = _Double(s.e)
    a, b = s.wide(s.intrinsic("fabs", x)), s.wide(y)
    apart, square = d.sub(1.0, a), d.mul(b, b)
    share_of = d.div(d.mul(a, 4.0), d.add(d.mul(apart, apart), square))
    size = s.mul(s.e.sleef("log1p", "float32", d.narrow(share_of)), 0.25)
    across = d.sub(d.mul(apart, d.add(a, 1.0)), square)
    angle = s.e.sleef("atan2", "float32", d.narrow(d.mul(b, 2.0)), d.narrow(across))
    right = [d.is_("olt", d.mul(a, a), _MOST), d.is_("olt", square, _MOST)]
    return s.intrinsic("copysign", size, x), s.mul(angle, 0.5), right


def _atan(s: _Single, x: str, y: str) -> Found:
    imaginary, real, right = _atanh(s, y, x)
    return real, imaginary, right


def _arc(s: _Single, x: str, y: str) -> tuple[str, str, str, list[str]]:
    """Of |x| and |y|: the cosine's and the sine's side of the angle of arc sine, and the size of its other
    part (Hull, Fairgrieve and Tang, 1997, in float64, where nothing of a float32 number cancels)."""
    d = _Double(s.e)
    a, b = (s.wide(s.intrinsic("fabs", part)) for part in (x, y))
    square, further, nearer = d.mul(b, b), d.add(a, 1.0), d.sub(a, 1.0)
    first = d.intrinsic("sqrt", d.add(d.mul(further, further), square))
    second = d.intrinsic("sqrt", d.add(d.mul(nearer, nearer), square))
    half = d.mul(d.add(first, second), 0.5)
    long = d.add(second, d.intrinsic("fabs", nearer))
    short = d.where(d.is_("oeq", long, 0.0), 0.0, d.div(square, long))
    is_within = d.is_("ole", a, 1.0)
    left = d.div(square, d.add(first, further))
    below = d.mul(d.mul(d.add(half, a), 0.5), d.add(left, d.where(is_within, long, short)))
    more = d.mul(d.add(left, d.where(is_within, short, long)), 0.5)
    root = d.intrinsic("sqrt", d.mul(more, d.add(half, 1.0)))
    size = s.e.sleef("log1p", "float32", d.narrow(d.add(more, root)))
    right = [d.is_("olt", square, _MOST), d.is_("olt", d.mul(a, a), _MOST)]
    return d.narrow(d.intrinsic("sqrt", below)), d.narrow(a), size, right


def _asin(s: _Single, x: str, y: str) -> Found:
    below, above, size, right = _arc(s, x, y)
    angle = s.e.sleef("atan2", "float32", above, below)
    return s.intrinsic("copysign", angle, x), s.intrinsic("copysign", size, y), right


def _acos(s: _Single, x: str, y: str) -> Found:
    below, _, size, right = _arc(s, x, y)
    angle = s.e.sleef("atan2", "float32", below, x)
    return angle, s.intrinsic("copysign", size, s.e.negate("float32", y)), right


def _asinh(s: _Single, x: str, y: str) -> Found:
    imaginary, real, right = _asin(s, y, x)
    return real, imaginary, right


def _acosh(s: _Single, x: str, y: str) -> Found:
    angle, size, right = _acos(s, x, y)
    return s.intrinsic("fabs", size), s.intrinsic("copysign", angle, y), right


# ---- functions of two numbers


def _divided(s: _Single, x: str, y: str, z: str, w: str) -> Found:
    return *_quotient(s, (x, y), (z, w)), []


def _power(s: _Single, x: str, y: str, z: str, w: str) -> Found:
    """e^(w log z)."""
    real, imaginary, right = _log(s, x, y)
    *parts, also = _exp(s, *_product(s, (real, imaginary), (z, w)))
    return parts[0], parts[1], [*right, *also]


def _zero_where_zero(s: _Single, which: Parts, found: Found) -> Found:
    """What was found, but zero where a number is, whatever the other is."""
    is_zero = s.e.binary("and", "bool", *(s.is_("oeq", part, 0.0) for part in which))
    real, imaginary = (s.where(is_zero, 0.0, part) for part in found[:2])
    return real, imaginary, [s.e.binary("or", "bool", is_zero, each) for each in found[2]]


def _divided_or_zero(s: _Single, x: str, y: str, z: str, w: str) -> Found:
    return _zero_where_zero(s, (z, w), _divided(s, x, y, z, w))


def _zero_or_divided(s: _Single, x: str, y: str, z: str, w: str) -> Found:
    return _zero_where_zero(s, (x, y), _divided(s, x, y, z, w))


def _times(log: Callable[[_Single, str, str], Found]) -> Callable[..., Found]:
    """x log y, or zero where x is."""

    def times_log(s: _Single, x: str, y: str, z: str, w: str) -> Found:
        real, imaginary, right = log(s, z, w)
        return _zero_where_zero(s, (x, y), (*_product(s, (x, y), (real, imaginary)), right))

    return times_log


def _sqrt_gradient(s: _Single, x: str, y: str, z: str, w: str) -> Found:
    """dy / 2 over the conjugate of the root, or zero where dy is."""
    half = s.mul(z, 0.5), s.mul(w, 0.5)
    return _zero_where_zero(s, (z, w), (*_quotient(s, half, (x, s.e.negate("float32", y))), []))


def _rsqrt_gradient(s: _Single, x: str, y: str, z: str, w: str) -> Found:
    """-dy / 2 times the cube of the conjugate of the result, or zero where dy is."""
    root = x, s.e.negate("float32", y)
    cube = _product(s, _product(s, root, root), root)
    return _zero_where_zero(s, (z, w), (*_product(s, cube, (s.mul(z, -0.5), s.mul(w, -0.5))), []))


_OF_ONE: dict[str, Callable[..., Found]] = {
    "Acos": _acos, "Acosh": _acosh, "Asin": _asin, "Asinh": _asinh, "Atan": _atan, "Atanh": _atanh,
    "Cos": _cos, "Cosh": _cosh, "Exp": _exp, "Expm1": _expm1, "Log": _log, "Log1p": _log1p, "Rsqrt": _rsqrt,
    "Sigmoid": _sigmoid, "Sin": _sin, "Sinh": _sinh, "Sqrt": _sqrt, "Tan": _tan, "Tanh": _tanh,
}  # fmt: skip
_OF_TWO: dict[str, Callable[..., Found]] = {
    "Div": _divided, "DivNoNan": _divided_or_zero, "Pow": _power, "RsqrtGrad": _rsqrt_gradient,
    "SqrtGrad": _sqrt_gradient, "Xdivy": _zero_or_divided, "Xlog1py": _times(_log1p), "Xlogy": _times(_log),
}  # fmt: skip
PLACES = dict.fromkeys(_OF_ONE, ("x", "out", "notes")) | dict.fromkeys(_OF_TWO, ("x", "y", "out", "notes"))
"""The addresses that each function takes after that of the numbers, in order; `notes` is int64 [1]."""
CALLS = dict.fromkeys(
    ("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Log", "Log1p", "Pow", "Xlog1py", "Xlogy"),
    ("atan2", "log1p"),
)
"""The functions of SLEEF that they call."""


# ---- loops


def complex_function_code(name: str, lanes: int) -> str:
    """The text of a function."""
    declarations: dict[str, str] = {}
    e = Code(f"{name}_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES[name])
    words = words_of(e, a["words"], WORDS)
    _, start, end = my_part(e, words["count"])
    bits = e.vector("i1")
    wrong, left = e.variable(bits, e.constant("bool", False)), e.variable("i1", "false")
    whole = e.add(start, e.mul(e.quotient(e.sub(end, start), lanes), lanes))
    with e.loop(start, whole, lanes) as i:
        e.set(bits, wrong, e.binary("or", "bool", e.get(bits, wrong), _some(e, name, a, i)))
    with e.loop(whole, end) as i:
        e.set("i1", left, e.one.binary("or", "bool", e.get("i1", left), _some(e.one, name, a, i)))
    any_wrong = e.call(f"llvm.vector.reduce.or.v{lanes}i1", "i1", [(bits, e.get(bits, wrong))])
    with e.when(e.let(f"or i1 {any_wrong}, {e.get('i1', left)}")):
        e.set("i64", a["notes"], "1")
    public = Code(name, ["ptr a"], lanes, declarations, is_public=True)
    share(public, f"{name}_some")
    texts = [e.text(), public.text()]
    return "\n".join([*declarations.values(), *texts])


def _some(e: Emitter, name: str, a: dict[str, str], i: str) -> str:
    """Computes the elements from a place on, and gives for which others are needed."""
    s = _Single(e)
    parts = [part for place in PLACES[name][:-2] for part in _read(e, a[place], i)]
    real, imaginary, right = {**_OF_ONE, **_OF_TWO}[name](s, *parts)
    wrong = s.is_("uno", s.sub(real, real), s.sub(imaginary, imaginary))
    for each in right:
        wrong = e.binary("or", "bool", wrong, e.binary("xor", "bool", each, e.constant("bool", True)))
    nothing = s.number(float("nan"))
    _write(e, [e.select(wrong, "float32", nothing, part) for part in (real, imaginary)], a["out"], i)
    return wrong


def _read(e: Emitter, base: str, i: str) -> Parts:
    """The real and imaginary parts of elements."""
    address = e.let(f"getelementptr {{ float, float }}, ptr {base}, i64 {i}")
    if e.lanes == 1:
        other = e.let(f"getelementptr float, ptr {address}, i64 1")
        return e.let(f"load float, ptr {address}"), e.let(f"load float, ptr {other}")
    both = f"<{2 * e.lanes} x float>"
    value = e.let(f"load {both}, ptr {address}, align 4")
    parts = [_chosen(e, both, value, "poison", range(first, 2 * e.lanes, 2)) for first in (0, 1)]
    return parts[0], parts[1]


def _write(e: Emitter, parts: list[str], base: str, i: str) -> None:
    """Puts elements there."""
    address = e.let(f"getelementptr {{ float, float }}, ptr {base}, i64 {i}")
    if e.lanes == 1:
        other = e.let(f"getelementptr float, ptr {address}, i64 1")
        e.do(f"store float {parts[0]}, ptr {address}")
        e.do(f"store float {parts[1]}, ptr {other}")
        return
    places = [place for lane in range(e.lanes) for place in (lane, lane + e.lanes)]
    value = _chosen(e, e.type("float32"), parts[0], parts[1], places)
    e.do(f"store <{2 * e.lanes} x float> {value}, ptr {address}, align 4")


def _chosen(e: Emitter, kind: str, a: str, b: str, places: range | list[int]) -> str:
    """The elements of two vectors, one after the other, at these places."""
    numbers = ", ".join(f"i32 {place}" for place in places)
    return e.let(f"shufflevector {kind} {a}, {kind} {b}, <{len(places)} x i32> <{numbers}>")
