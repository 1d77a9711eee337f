"""LLVM's text of quotients, remainders and powers of integers of one type, a vector at a time.

Quotients of float32 are exact enough for numbers of up to 16 bits once they are cut to whole ones, those of
float64 for 32 bits; processors divide wider ones. The least number divided by -1 stays what it is, as by
negation. Threads share the elements; a note becomes 1 where a divisor is 0, or an exponent below. The second
operand may be one number for all.
"""

from __future__ import annotations

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import Emitter
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import load, read_one, store

__all__ = ["PLACES", "WORDS", "quotient_code"]

WORDS = ("threads", "count", "is_one")
"""The whole numbers of a call: how many elements, and whether there is one second operand."""
_NAMES = ("truncated_quotient", "truncated_remainder", "floored_quotient", "floored_remainder", "power")
PLACES = dict.fromkeys(_NAMES, ("x", "y", "out", "notes"))
"""The addresses that each function takes after that of the numbers, in order; `notes` is int64 [1]."""
_EXACT = {"int8": "float32", "uint8": "float32", "int16": "float32", "int32": "float64"}


def quotient_code(dtype: str, lanes: int) -> str:
    """The text of the functions of `PLACES`."""
    declarations: dict[str, str] = {}
    texts = [text for name in PLACES for text in _texts(name, dtype, lanes, declarations)]
    return "\n".join([*declarations.values(), *texts])


def _texts(name: str, dtype: str, lanes: int, declarations: dict[str, str]) -> list[str]:
    e = Code(f"{name}_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES[name])
    words = words_of(e, a["words"], WORDS)
    _, start, end = my_part(e, words["count"])
    is_one = e.let(f"icmp ne i64 {words['is_one']}, 0")
    with e.when(is_one):
        _loops(e, (name, dtype), a, (start, end), read_one(e, dtype, a["y"]))
    with e.when(e.let(f"xor i1 {is_one}, true")):
        _loops(e, (name, dtype), a, (start, end), "")
    public = Code(name, ["ptr a"], lanes, declarations, is_public=True)
    share(public, f"{name}_some")
    return [e.text(), public.text()]


def _loops(e: Code, what: tuple[str, str], a: dict[str, str], part: tuple[str, str], divisor: str) -> None:
    """All vectors of a part, the last under a mask, and whether a second operand is none."""
    (name, dtype), (start, end), bits = what, part, e.vector("i1")
    wrong = e.variable(bits, e.constant("bool", False))
    for i, masks in e.vectors(e.sub(end, start)):
        at, mask = e.add(start, i), masks[0]
        y = divisor or load(e, dtype, a["y"], at, mask)
        none = e.compare(_wrong(name, dtype), dtype, y, e.constant(dtype, 0))
        none = e.binary("and", "bool", none, mask) if mask else none
        e.set(bits, wrong, e.binary("or", "bool", e.get(bits, wrong), none))
        x = load(e, dtype, a["x"], at, mask)
        found = _power(e, dtype, x, y) if name == "power" else _divided(e, name, dtype, x, y)
        store(e, dtype, found, a["out"], at, mask)
    with e.when(_any(e, e.get(bits, wrong))):
        e.set("i64", a["notes"], "1")


def _wrong(name: str, dtype: str) -> str:
    """Which comparison with 0 holds for second operands that are none."""
    if name != "power":
        return "icmp eq"
    return "icmp ult" if dtype == "uint8" else "icmp slt"


def _any(e: Code, truths: str) -> str:
    return e.call(f"llvm.vector.reduce.or.v{e.lanes}i1", "i1", [(e.vector("i1"), truths)])


def _power(e: Code, dtype: str, x: str, y: str) -> str:
    """x to the power of y, which is taken for unsigned, by squares."""
    kind, zero, one = e.type(dtype), e.constant(dtype, 0), e.constant(dtype, 1)
    result, base, rest = (e.variable(kind, value) for value in (one, x, y))
    with e.repeat() as leave:
        left = e.get(kind, rest)
        leave(e.let(f"xor i1 {_any(e, e.compare('icmp ne', dtype, left, zero))}, true"))
        is_odd = e.compare("icmp ne", dtype, e.binary("and", dtype, left, one), zero)
        square, found = e.get(kind, base), e.get(kind, result)
        e.set(kind, result, e.select(is_odd, dtype, e.binary("mul", dtype, found, square), found))
        e.set(kind, base, e.binary("mul", dtype, square, square))
        e.set(kind, rest, e.binary("lshr", dtype, left, one))
    return e.get(kind, result)


def _divided(e: Emitter, name: str, dtype: str, x: str, y: str) -> str:
    """What a function gives of vectors; something where the divisor is 0."""
    zero, one = (e.constant(dtype, n) for n in (0, 1))
    plain = e.compare("icmp eq", dtype, y, zero)
    if dtype != "uint8":
        negates = e.compare("icmp eq", dtype, y, e.constant(dtype, -1))
        plain = e.binary("or", "bool", negates, plain)
    quotient = _quotient(e, dtype, x, e.select(plain, dtype, one, y))
    if dtype != "uint8":
        quotient = e.select(negates, dtype, e.negate(dtype, x), quotient)
    if name == "truncated_quotient":
        return quotient
    rest = e.binary("sub", dtype, x, e.binary("mul", dtype, quotient, y))
    if name == "truncated_remainder":
        return rest
    if dtype == "uint8":
        return quotient if name == "floored_quotient" else rest
    differ = e.compare("icmp slt", dtype, e.binary("xor", dtype, rest, y), zero)
    below = e.binary("and", "bool", differ, e.compare("icmp ne", dtype, rest, zero))
    if name == "floored_quotient":
        return e.select(below, dtype, e.binary("sub", dtype, quotient, one), quotient)
    return e.select(below, dtype, e.binary("add", dtype, rest, y), rest)


def _quotient(e: Emitter, dtype: str, x: str, y: str) -> str:
    """x / y without the rest, where y is neither 0 nor -1."""
    exact = _EXACT.get(dtype)
    if exact is None:
        return e.binary("sdiv", dtype, x, y)
    found = e.binary("fdiv", exact, *(e.convert(n, dtype, exact) for n in (x, y)))
    return e.convert(found, exact, dtype)
