"""What reductions mean for vectors: how a vector of elements is taken into accumulators, and what these give.

``REDUCTIONS[name]`` has the accumulators' parts for a type, each a type with the number that it begins with,
and three functions that write instructions: `take` an element into the parts, `join` the parts of two
accumulators, and `give` the result. Sums of float32 are accumulated in float64, those of float64 with the
rounding errors beside them, so that they are more exact than ATen's sums in stages. A maximum or minimum is
NaN if any element is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from flowstone.native.codegen.emitter import FLOATING, FLOATS, HALF, INTEGERS, Emitter
from flowstone.native.codegen.vector_memory import in_all_lanes

__all__ = ["REDUCTIONS", "Reduction", "reduces", "take_several"]

Parts = list[str]
_LIMITS = {
    "int8": (-(1 << 7), (1 << 7) - 1), "uint8": (0, (1 << 8) - 1), "int16": (-(1 << 15), (1 << 15) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1), "int64": (-(1 << 63), (1 << 63) - 1),
    "float32": (-math.inf, math.inf), "float64": (-math.inf, math.inf), HALF: (-math.inf, math.inf),
}  # fmt: skip


class Reduction(NamedTuple):
    """A reduction: the types that it takes, `parts(dtype)`, and its instructions; `cost` in additions."""

    types: frozenset[str]
    parts: Callable[[str], Sequence[tuple[str, Any]]]
    take: Callable[[Emitter, str, Parts, str], Parts]
    join: Callable[[Emitter, str, Parts, Parts], Parts]
    give: Callable[[Emitter, str, Parts, Mapping[str, Any]], str]
    cost: int = 2
    before: Callable[[Emitter, str, str, str], str] | None = None
    """Makes one element of two that are taken together; without it, they are taken one after the other."""


def reduces(name: str, dtype: str) -> bool:
    """Whether the reduction can be compiled for elements of this type."""
    return name in REDUCTIONS and dtype in REDUCTIONS[name].types


# ---- sums


def _sum_parts(dtype: str) -> Sequence[tuple[str, Any]]:
    if dtype == "float64":
        return (dtype, 0), (dtype, 0)
    return (("float64" if dtype in FLOATS else dtype, 0),)


def _add(e: Emitter, dtype: str, parts: Parts, x: str) -> Parts:
    if dtype == "float64":
        return _exactly(e, parts, x)
    if dtype in FLOATS:
        return [e.binary("fadd", "float64", parts[0], e.convert(x, dtype, "float64"))]
    return [e.binary("add", dtype, parts[0], x)]


def _exactly(e: Emitter, parts: Parts, x: str) -> Parts:
    """The sum and what its rounding has left out so far."""
    total, rest = parts
    new = e.binary("fadd", "float64", total, x)
    taken = e.binary("fsub", "float64", new, total)
    left = e.binary("fsub", "float64", total, e.binary("fsub", "float64", new, taken))
    error = e.binary("fadd", "float64", left, e.binary("fsub", "float64", x, taken))
    return [new, e.binary("fadd", "float64", rest, error)]


def _add_up(e: Emitter, dtype: str, a: Parts, b: Parts) -> Parts:
    if dtype == "float64":
        total, rest = _exactly(e, a, b[0])
        return [total, e.binary("fadd", "float64", rest, b[1])]
    kind = "float64" if dtype in FLOATS else dtype
    return [e.binary("fadd" if dtype in FLOATS else "add", kind, a[0], b[0])]


def _total(e: Emitter, dtype: str, parts: Parts, attributes: Mapping[str, Any]) -> str:
    """The sum over the attribute `divisor`, a number or the name of a float64 that is computed."""
    result = parts[0]
    if dtype == "float64":
        size = e.intrinsic("fabs", dtype, result)
        finite = e.compare("fcmp olt", dtype, size, e.constant(dtype, math.inf))
        result = e.select(finite, dtype, e.binary("fadd", dtype, *parts), result)
    divisor = attributes.get("divisor", 1)
    if isinstance(divisor, str):
        result = e.binary("fdiv", "float64", result, in_all_lanes(e, "double", divisor))
    elif divisor != 1:
        result = e.binary("fdiv", "float64", result, e.constant("float64", divisor))
    return e.convert(result, "float64", dtype) if dtype in FLOATS else result


def _pair_sum(e: Emitter, dtype: str, a: str, b: str) -> str:
    """The sum in the elements' own type, which few elements are added in before they become float64."""
    return e.binary("fadd" if dtype in FLOATS else "add", dtype, a, b)


# ---- products, extremes, truths


def _one_part(start: Callable[[str], Any]) -> Callable[[str], Sequence[tuple[str, Any]]]:
    return lambda dtype: ((dtype, start(dtype)),)


def _joined(word: Callable[[str], str]) -> Callable[[Emitter, str, Parts, Parts], Parts]:
    return lambda e, dtype, a, b: [e.binary(word(dtype), dtype, a[0], b[0])]


def _taken(word: Callable[[str], str]) -> Callable[[Emitter, str, Parts, str], Parts]:
    return lambda e, dtype, parts, x: [e.binary(word(dtype), dtype, parts[0], x)]


def take_several(
    reduction: Reduction, e: Emitter, dtype: str, parts: Parts, elements: Sequence[str]
) -> Parts:
    """The parts with several elements taken."""
    elements = list(elements)
    while len(elements) > 1 and reduction.before is not None and dtype != "float64":
        pairs = zip(elements[::2], elements[1::2])
        elements = [reduction.before(e, dtype, a, b) for a, b in pairs] + elements[len(elements) // 2 * 2 :]
    for each in elements:
        parts = reduction.take(e, dtype, parts, each)
    return parts


def _first(e: Emitter, dtype: str, parts: Parts, attributes: Mapping[str, Any]) -> str:
    return parts[0]


def _simple(types: frozenset[str], start: Any, word: Callable[[str], str]) -> Reduction:
    return Reduction(types, _one_part(lambda dtype: start), _taken(word), _joined(word), _first)


def _extreme(floating: str, whole: str, worst: int) -> Reduction:
    def parts(dtype: str) -> Sequence[tuple[str, Any]]:
        one = (dtype, _LIMITS[dtype][worst])
        return (one, ("bool", False)) if dtype in FLOATING else (one,)

    def better(e: Emitter, dtype: str, a: str, b: str) -> str:
        if dtype in FLOATING:
            return e.select(e.compare(f"fcmp {floating}", dtype, b, a), dtype, b, a)
        sign = "u" if dtype == "uint8" else "s"
        return e.select(e.compare(f"icmp {sign}{whole}", dtype, b, a), dtype, b, a)

    def take(e: Emitter, dtype: str, x: Parts, y: str) -> Parts:
        if dtype not in FLOATING:
            return [better(e, dtype, x[0], y)]
        is_nan = e.compare("fcmp uno", dtype, y, y)
        return [better(e, dtype, x[0], y), e.binary("or", "bool", x[1], is_nan)]

    def join(e: Emitter, dtype: str, a: Parts, b: Parts) -> Parts:
        result = [better(e, dtype, a[0], b[0])]
        return [*result, e.binary("or", "bool", a[1], b[1])] if dtype in FLOATING else result

    def give(e: Emitter, dtype: str, x: Parts, attributes: Mapping[str, Any]) -> str:
        return e.select(x[1], dtype, e.constant(dtype, math.nan), x[0]) if dtype in FLOATING else x[0]

    return Reduction(FLOATING | INTEGERS, parts, take, join, give)


REDUCTIONS: dict[str, Reduction] = {
    "Sum": Reduction(FLOATS | (INTEGERS - {"uint8"}), _sum_parts, _add, _add_up, _total, before=_pair_sum),
    "Prod": _simple(FLOATING | {"int32", "int64"}, 1, lambda dtype: "fmul" if dtype in FLOATING else "mul"),
    "Max": _extreme("ogt", "gt", 0),
    "Min": _extreme("olt", "lt", 1),
    "Any": _simple(frozenset({"bool"}), False, lambda dtype: "or"),
    "All": _simple(frozenset({"bool"}), True, lambda dtype: "and"),
}
