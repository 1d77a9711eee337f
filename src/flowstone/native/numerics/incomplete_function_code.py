"""LLVM's text of the incomplete beta function's continued fraction, of the power series of the incomplete
gamma function with its derivative by the parameter, and of the Hurwitz zeta function
(`ops/numbers/special_functions.py`).

Threads share the elements. Each vector of float64 goes on, with the fraction by Lentz's method, until a step
changes none of its elements any more, where ATen's kernels go on until that holds for all elements.
Zeta is the sum of ten terms, and of the rest by Euler's and Maclaurin's formula (Cephes has it so).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import Emitter
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, load, store

__all__ = ["PLACES", "WORDS", "incomplete_function_code"]

WORDS = ("threads", "count", "most")
"""The whole numbers of a call: how many elements, and steps at most."""
PLACES = {
    "fraction": ("precise", "a", "b", "x", "out"),
    "series": ("precise", "a", "x", "total", "slope"),
    "zeta": ("precise", "x", "q", "out"),
    "short_zeta": ("precise", "x", "q", "out"),
}
"""The addresses that each function takes after that of the numbers, in order; all are float64. A step that
changes less than `precise`, of the series and of zeta by its total, is the last."""
_INPUTS = {"fraction": 3, "series": 2, "zeta": 2, "short_zeta": 2}
_LARGE = 1e30  # an exponent that gives 0, 1 or infinity
_FIRST_TERMS = 10
_BERNOULLI = (
    12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9, 7.47242496e10,
    -2.950130727918164224e12, 1.1646782814350067249e14, -4.5979787224074726105e15, 1.8152105401943546773e17,
    -7.1661652561756670113e18,
)  # fmt: skip
_KIND, _SMALL = "float64", 1e-300


def incomplete_function_code(lanes: int, names: Sequence[str] = tuple(PLACES)) -> str:
    """The text of the functions of these names; zeta needs SLEEF. `short_zeta` is for results that are
    rounded to float32: its powers are exponential functions of products, a third of the work."""
    declarations: dict[str, str] = {}
    texts = [text for name in names for text in _shared(name, lanes, declarations)]
    return "\n".join([*declarations.values(), *texts])


def _shared(name: str, lanes: int, declarations: dict[str, str]) -> list[str]:
    """The texts of a function, and of what threads call of it."""
    e = Code(f"{name}_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES[name])
    words = words_of(e, a["words"], WORDS)
    precise = e.get("double", a["precise"])
    compute, count = _FUNCTIONS[name], 1 + _INPUTS[name]
    inputs, outputs = PLACES[name][1:count], PLACES[name][count:]
    _, start, end = my_part(e, words["count"])
    whole = e.add(start, e.mul(e.quotient(e.sub(end, start), lanes), lanes))
    for some, first, last in ((e, start, whole), (e.one, whole, end)):
        with e.loop(first, last, some.lanes) as i:
            given = [load(some, _KIND, a[place], i) for place in inputs]
            found = compute(e, some, given, words["most"], in_all_lanes(some, "double", precise))
            for place, value in zip(outputs, found):
                store(some, _KIND, value, a[place], i)
    public = Code(name, ["ptr a"], lanes, declarations, is_public=True)
    share(public, f"{name}_some")
    return [e.text(), public.text()]


def _in_any_lane(e: Code, some: Emitter, condition: str) -> str:
    """Whether a condition, a value of truth a lane, holds in one of them."""
    if some.lanes == 1:
        return condition
    bits = e.let(f"bitcast {some.vector('i1')} {condition} to i{some.lanes}")
    return e.let(f"icmp ne i{some.lanes} {bits}, 0")


def _fraction(e: Code, some: Emitter, given: list[str], most: str, precise: str) -> list[str]:
    """The fraction of some elements."""
    a, b, x = given
    kind, unit = some.type(_KIND), some.constant(_KIND, 1)

    def calculate(name: str, first: str, second: str) -> str:
        return some.binary(name, _KIND, first, second)

    both = calculate("fadd", a, b)
    start = calculate("fdiv", calculate("fmul", both, x), calculate("fadd", a, unit))
    start = calculate("fdiv", unit, _away(some, calculate("fsub", unit, start)))
    fraction, denominator = e.variable(kind, start), e.variable(kind, start)
    numerator, number = e.variable(kind, unit), e.variable("i64", "1")
    with e.repeat() as leave:
        count = e.get("i64", number)
        leave(e.let(f"icmp sge i64 {count}, {most}"))
        e.set("i64", number, e.add(count, 1))
        m = in_all_lanes(some, "double", e.let(f"sitofp i64 {count} to double"))
        at = calculate("fadd", a, calculate("fadd", m, m))
        first = calculate("fmul", calculate("fmul", m, calculate("fsub", b, m)), x)
        second = calculate("fmul", calculate("fadd", a, m), calculate("fadd", both, m))
        second = some.negate(_KIND, calculate("fmul", second, x))
        first = calculate("fdiv", calculate("fdiv", first, calculate("fsub", at, unit)), at)
        second = calculate("fdiv", calculate("fdiv", second, at), calculate("fadd", at, unit))
        change = unit
        for step in (first, second):
            below = calculate("fadd", calculate("fmul", e.get(kind, denominator), step), unit)
            below = calculate("fdiv", unit, _away(some, below))
            above = _away(some, calculate("fadd", calculate("fdiv", step, e.get(kind, numerator)), unit))
            e.set(kind, denominator, below)
            e.set(kind, numerator, above)
            change = calculate("fmul", calculate("fmul", change, above), below)
        e.set(kind, fraction, calculate("fmul", e.get(kind, fraction), change))
        size = some.intrinsic("fabs", _KIND, calculate("fsub", change, unit))
        moves = _in_any_lane(e, some, some.compare("fcmp ogt", _KIND, size, precise))
        leave(e.let(f"xor i1 {moves}, true"))
    return [e.get(kind, fraction)]


def _series(e: Code, some: Emitter, given: list[str], most: str, precise: str) -> list[str]:
    """The sum of x^n / ((a + 1) … (a + n)) over n, and its derivative by a, of some elements."""
    a, x = given
    kind, unit = some.type(_KIND), some.constant(_KIND, 1)

    def calculate(name: str, first: str, second: str) -> str:
        return some.binary(name, _KIND, first, second)

    divisor, term, total = (e.variable(kind, value) for value in (a, unit, unit))
    slope, harmonic = (e.variable(kind, some.constant(_KIND, 0)) for _ in range(2))
    number = e.variable("i64", "1")
    with e.repeat() as leave:
        count = e.get("i64", number)
        leave(e.let(f"icmp sge i64 {count}, {most}"))
        e.set("i64", number, e.add(count, 1))
        e.set(kind, divisor, calculate("fadd", e.get(kind, divisor), unit))
        part = calculate("fdiv", unit, e.get(kind, divisor))
        e.set(kind, term, calculate("fmul", calculate("fmul", e.get(kind, term), x), part))
        e.set(kind, harmonic, calculate("fadd", e.get(kind, harmonic), part))
        e.set(kind, total, calculate("fadd", e.get(kind, total), e.get(kind, term)))
        change = calculate("fmul", e.get(kind, term), e.get(kind, harmonic))
        e.set(kind, slope, calculate("fsub", e.get(kind, slope), change))
        least = calculate("fmul", precise, e.get(kind, total))
        moves = _in_any_lane(e, some, some.compare("fcmp ogt", _KIND, change, least))
        leave(e.let(f"xor i1 {moves}, true"))
    return [e.get(kind, total), e.get(kind, slope)]


def _power(some: Emitter, base: str, exponent: str) -> str:
    return some.sleef("pow", _KIND, base, exponent)


def _short_power(some: Emitter, base: str, exponent: str) -> str:
    """A power within 1e-13, of a positive base."""
    least = some.constant(_KIND, -_LARGE)
    exponent = some.select(some.compare("fcmp olt", _KIND, exponent, least), _KIND, least, exponent)
    return some.sleef("exp", _KIND, some.binary("fmul", _KIND, exponent, some.sleef("log", _KIND, base)))


def _short_zeta(e: Code, some: Emitter, given: list[str], most: str, precise: str) -> list[str]:
    return _zeta(e, some, given, most, precise, _short_power)


def _zeta(
    e: Code,
    some: Emitter,
    given: list[str],
    most: str,
    precise: str,
    power_of: Callable[[Emitter, str, str], str] = _power,
) -> list[str]:
    """The sum of (q + n) ** -x over n >= 0, of some elements with q > 0."""
    x, q = given
    kind, truth = some.type(_KIND), some.type("bool")

    def calculate(name: str, first: str, second: str) -> str:
        return some.binary(name, _KIND, first, second)

    def number(value: float) -> str:
        return some.constant(_KIND, value)

    minus, total, place = some.negate(_KIND, x), e.variable(kind, number(0)), e.variable(kind, q)
    term, is_done = e.variable(kind, number(0)), e.variable(truth, some.constant("bool", False))

    def add(value: str) -> None:
        """Adds to the elements that still change; those that this changes little are done."""
        done, before = e.get(truth, is_done), e.get(kind, total)
        after = some.select(done, _KIND, before, calculate("fadd", before, value))
        e.set(kind, total, after)
        size = some.intrinsic("fabs", _KIND, calculate("fdiv", value, after))
        is_small = some.compare("fcmp olt", _KIND, size, precise)
        e.set(truth, is_done, some.binary("or", "bool", done, is_small))

    def goes_on() -> str:
        left = some.binary("xor", "bool", e.get(truth, is_done), some.constant("bool", True))
        return _in_any_lane(e, some, left)

    with e.loop(0, _FIRST_TERMS), e.when(goes_on()):
        e.set(kind, term, power_of(some, e.get(kind, place), minus))
        add(e.get(kind, term))
        e.set(kind, place, calculate("fadd", e.get(kind, place), number(1)))
    with e.when(goes_on()):
        last = calculate("fsub", e.get(kind, place), number(1))
        power, below = e.get(kind, term), calculate("fsub", x, number(1))
        rest = calculate(
            "fsub",
            calculate("fdiv", calculate("fmul", power, last), below),
            calculate("fmul", power, number(0.5)),
        )
        done, before = e.get(truth, is_done), e.get(kind, total)
        e.set(kind, total, some.select(done, _KIND, before, calculate("fadd", before, rest)))
        factor = number(1)
        for i, divisor in enumerate(_BERNOULLI):
            factor = calculate("fmul", factor, calculate("fadd", x, number(2 * i)))
            power = calculate("fdiv", power, last)
            add(calculate("fdiv", calculate("fmul", factor, power), number(divisor)))
            factor = calculate("fmul", factor, calculate("fadd", x, number(2 * i + 1)))
            power = calculate("fdiv", power, last)
    found = some.select(
        some.compare("fcmp olt", _KIND, x, number(1)), _KIND, number(math.nan), e.get(kind, total)
    )
    return [some.select(some.compare("fcmp oeq", _KIND, x, number(1)), _KIND, number(math.inf), found)]


def _away(some: Emitter, x: str) -> str:
    """x, where it is so small that it could not be divided by, a small number instead."""
    small = some.constant(_KIND, _SMALL)
    is_small = some.compare("fcmp olt", _KIND, some.intrinsic("fabs", _KIND, x), small)
    return some.select(is_small, _KIND, small, x)


_FUNCTIONS: dict[str, Callable[[Code, Emitter, list[str], str, str], list[str]]] = {
    "fraction": _fraction, "series": _series, "zeta": _zeta, "short_zeta": _short_zeta
}  # fmt: skip
