"""LLVM's text of the incomplete beta function's continued fraction, and of the power series of the incomplete
gamma function with its derivative by the parameter (`ops/numbers/special_functions.py`).

Threads share the elements. Each vector of float64 goes on, with the fraction by Lentz's method, until a step
changes none of its elements any more, where ATen's kernels go on until that holds for all elements.
"""

from __future__ import annotations

from collections.abc import Callable

from flowstone.native.code_library import my_part, places_of, share, words_of
from flowstone.native.emitter import Emitter
from flowstone.native.structured import Code
from flowstone.native.vector_memory import in_all_lanes, load, store

__all__ = ["PLACES", "WORDS", "incomplete_function_code"]

WORDS = ("threads", "count", "most")
"""The whole numbers of a call: how many elements, and steps at most."""
PLACES = {"fraction": ("precise", "a", "b", "x", "out"), "series": ("precise", "a", "x", "total", "slope")}
"""The addresses that each function takes after that of the numbers, in order; all are float64. A step that
changes less than `precise`, of the series by its total, is the last."""
_KIND, _SMALL = "float64", 1e-300


def incomplete_function_code(lanes: int) -> str:
    """The text of the functions."""
    declarations: dict[str, str] = {}
    fraction = _shared("fraction", ("a", "b", "x"), lanes, declarations)
    series = _shared("series", ("a", "x"), lanes, declarations)
    return "\n".join([*declarations.values(), *fraction, *series])


def _shared(name: str, inputs: tuple[str, ...], lanes: int, declarations: dict[str, str]) -> list[str]:
    """The texts of a function of these inputs, and of what threads call of it."""
    e = Code(f"{name}_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES[name])
    words = words_of(e, a["words"], WORDS)
    precise = e.get("double", a["precise"])
    compute, outputs = _FUNCTIONS[name], PLACES[name][1 + len(inputs) :]
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


def _away(some: Emitter, x: str) -> str:
    """x, where it is so small that it could not be divided by, a small number instead."""
    small = some.constant(_KIND, _SMALL)
    is_small = some.compare("fcmp olt", _KIND, some.intrinsic("fabs", _KIND, x), small)
    return some.select(is_small, _KIND, small, x)


_FUNCTIONS: dict[str, Callable[[Code, Emitter, list[str], str, str], list[str]]] = {
    "fraction": _fraction, "series": _series
}  # fmt: skip
