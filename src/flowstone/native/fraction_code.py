"""LLVM's text of the incomplete beta function's continued fraction (`ops/numbers/special_functions.py`).

Threads share the elements. Each vector of float64 goes on, by Lentz's method, until two steps change none of
its elements any more, where ATen's kernels go on until that holds for all elements.
"""

from __future__ import annotations

from flowstone.native.code_library import my_part, places_of, share, words_of
from flowstone.native.emitter import Emitter
from flowstone.native.structured import Code
from flowstone.native.vector_memory import in_all_lanes, load, store

__all__ = ["PLACES", "WORDS", "fraction_code"]

WORDS = ("threads", "count", "most")
"""The whole numbers of a call: how many elements, and steps at most."""
PLACES = {"fraction": ("precise", "a", "b", "x", "out")}
"""The addresses that the function takes after that of the numbers, in order; all are float64. A step that
changes less than `precise` is the last."""
_KIND, _SMALL = "float64", 1e-300


def fraction_code(lanes: int) -> str:
    """The text of the function."""
    declarations: dict[str, str] = {}
    e = Code("fraction_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["fraction"])
    words = words_of(e, a["words"], WORDS)
    precise = e.get("double", a["precise"])
    _, start, end = my_part(e, words["count"])
    whole = e.add(start, e.mul(e.quotient(e.sub(end, start), lanes), lanes))
    for some, first, last in ((e, start, whole), (e.one, whole, end)):
        with e.loop(first, last, some.lanes) as i:
            given = [load(some, _KIND, a[name], i) for name in ("a", "b", "x")]
            found = _fraction(e, some, given, words["most"], in_all_lanes(some, "double", precise))
            store(some, _KIND, found, a["out"], i)
    public = Code("fraction", ["ptr a"], lanes, declarations, is_public=True)
    share(public, "fraction_some")
    return "\n".join([*declarations.values(), e.text(), public.text()])


def _fraction(e: Code, some: Emitter, given: list[str], most: str, precise: str) -> str:
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
        moves = some.compare("fcmp ogt", _KIND, size, precise)
        if some.lanes > 1:
            bits = e.let(f"bitcast {some.vector('i1')} {moves} to i{some.lanes}")
            moves = e.let(f"icmp ne i{some.lanes} {bits}, 0")
        leave(e.let(f"xor i1 {moves}, true"))
    return e.get(kind, fraction)


def _away(some: Emitter, x: str) -> str:
    """x, where it is so small that it could not be divided by, a small number instead."""
    small = some.constant(_KIND, _SMALL)
    is_small = some.compare("fcmp olt", _KIND, some.intrinsic("fabs", _KIND, x), small)
    return some.select(is_small, _KIND, small, x)
