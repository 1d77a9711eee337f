"""LLVM's text of pooling over windows of images and volumes: their largest numbers, and their means.

Volumes are [batch, depth, height, width, channels]; images have a depth of 1. Padding counts neither as a
number nor in the number of them. As in TensorFlow the largest number passes over NaN, and is the lowest
number of images, minus infinity of volumes, where there is no other. A mean is the sum, row by row from 0
on, divided by the number; of float16 in float32. Means of bytes are truncated quotients: their sums are i32,
below 2^24.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import FLOATING, FLOATS, HALF, kind_of
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, load, store

__all__ = ["PLACES", "WORDS", "window_pool_code"]

WORDS = (
    "threads", "batch", "channels", "from_infinity",
    *(f"{name}{axis}" for name in ("length", "count", "size", "stride", "before") for axis in range(3)),
)  # fmt: skip
"""The whole numbers of a call. Of each spatial axis: the `length` of volumes, how many windows there are and
their `size`, the `stride` from one to the next, and the padding `before`. `from_infinity`: 1 if
what no number exceeds is minus infinity."""
PLACES = {"largest": ("images", "out"), "mean": ("images", "out")}
"""The addresses that each function takes after that of the numbers."""
_LOWEST = {
    "uint8": 0, "int8": -128, HALF: -65504.0, "float32": -3.4028234663852886e38,
    "float64": -sys.float_info.max,
}  # fmt: skip


def window_pool_code(dtype: str, lanes: int) -> str:
    """The text of the functions for a type of numbers."""
    declarations: dict[str, str] = {}
    parts = []
    for name in PLACES:
        some = Code(f"{name}_some", ["ptr a"], lanes, declarations)
        _pool_some(some, dtype, name == "mean")
        e = Code(name, ["ptr a"], lanes, declarations, is_public=True)
        share(e, f"{name}_some")
        parts += [some.text(), e.text()]
    return "\n".join([*declarations.values(), *parts])


def _pool_some(e: Code, dtype: str, is_mean: bool) -> None:
    """What a thread does: rows of windows."""
    a = places_of(e, PLACES["mean"])
    words = words_of(e, a["words"], WORDS)
    channels = words["channels"]
    planes = e.mul(words["batch"], words["count0"])
    least = "" if is_mean else _least(e, dtype, words["from_infinity"])
    _, start, end = my_part(e, e.mul(planes, words["count1"]))
    with e.loop(start, end) as row:
        plane = e.quotient(row, words["count1"])
        at = [e.rest(plane, words["count0"]), e.rest(row, words["count1"])]
        spans = [_span(e, words, axis, place) for axis, place in enumerate(at)]
        volume = e.mul(e.quotient(plane, words["count0"]), words["length0"])
        with e.loop(0, words["count2"]) as column:
            inside = [*spans, _span(e, words, 2, column)]
            number = _number(e, dtype, inside)
            to = e.mul(e.add(e.mul(row, words["count2"]), column), channels)
            for c, (mask,) in e.vectors(channels):
                seen = _seen(e, a["images"], words, volume, inside, c, kind_of(dtype))
                found = (
                    _mean(e, dtype, seen, mask, number) if is_mean else _largest(e, dtype, seen, mask, least)
                )
                store(e, dtype, found, a["out"], e.add(to, c), mask)


def _span(e: Code, words: Mapping[str, str], axis: int, window: str) -> tuple[str, str]:
    """What of an axis a window sees: the first position and the end."""
    first = e.sub(e.mul(window, words[f"stride{axis}"]), words[f"before{axis}"])
    return e.most(0, first), e.least(e.add(first, words[f"size{axis}"]), words[f"length{axis}"])


def _number(e: Code, dtype: str, spans: list[tuple[str, str]]) -> str:
    """How many numbers a window sees, in all lanes."""
    first, *others = (e.sub(end, start) for start, end in spans)
    for each in others:
        first = e.mul(first, each)
    kind = kind_of(_quotients(dtype))
    return in_all_lanes(e, kind, e.let(f"sitofp i64 {first} to {kind}"))


def _quotients(dtype: str) -> str:
    """The type that means are computed in."""
    return dtype if dtype in FLOATS else "float32"


def _seen(
    e: Code,
    images: str,
    words: Mapping[str, str],
    volume: str,
    spans: list[tuple[str, str]],
    c: str,
    kind: str,
) -> Iterator[str]:
    """What is written for it runs for each position that a window sees: the address of its numbers."""
    (z0, z1), (y0, y1), (x0, x1) = spans
    with e.loop(z0, z1) as z, e.loop(y0, y1) as y:
        plane = e.mul(e.add(volume, z), words["length1"])
        line = e.mul(e.add(plane, y), words["length2"])
        with e.loop(x0, x1) as x:
            yield e.at(images, e.add(e.mul(e.add(line, x), words["channels"]), c), kind)


def _least(e: Code, dtype: str, from_infinity: str) -> str:
    """What a window has in which nothing is larger."""
    least = e.constant(dtype, _LOWEST[dtype])
    if dtype not in FLOATING:
        return least
    kind, condition = e.type(dtype), e.let(f"icmp ne i64 {from_infinity}, 0")
    return e.let(f"select i1 {condition}, {kind} {e.constant(dtype, -math.inf)}, {kind} {least}")


def _largest(e: Code, dtype: str, seen: Iterator[str], mask: str, least: str) -> str:
    kind = e.type(dtype)
    highest = e.variable(kind, least)
    for address in seen:
        value, before = load(e, dtype, address, "0", mask), e.get(kind, highest)
        if dtype not in FLOATING:
            how = "umax" if _is_unsigned(dtype) else "smax"
            e.set(kind, highest, e.intrinsic(how, dtype, value, before))
            continue
        e.set(kind, highest, e.select(e.compare("fcmp ogt", dtype, value, before), dtype, value, before))
    return e.get(kind, highest)


def _is_unsigned(dtype: str) -> bool:
    return dtype.startswith("u")


def _mean(e: Code, dtype: str, seen: Iterator[str], mask: str, number: str) -> str:
    if dtype in FLOATING:
        sums = _quotients(dtype)
        kind = e.type(sums)
        total = e.variable(kind, e.constant(sums, 0))
        for address in seen:
            value = e.convert(load(e, dtype, address, "0", mask), dtype, sums)
            e.set(kind, total, e.binary("fadd", sums, e.get(kind, total), value))
        return e.convert(e.binary("fdiv", sums, e.get(kind, total), number), sums, dtype)
    words, narrow = e.vector("i32"), e.type(dtype)
    extended = "zext" if _is_unsigned(dtype) else "sext"
    total = e.variable(words, e.constant("int32", 0))
    for address in seen:
        value = e.let(f"{extended} {narrow} {load(e, dtype, address, '0', mask)} to {words}")
        e.set(words, total, e.binary("add", "int32", e.get(words, total), value))
    wide = e.let(f"sitofp {words} {e.get(words, total)} to {e.wide}")
    quotient = e.binary("fdiv", "float32", wide, number)
    return e.let(f"trunc {words} {e.let(f'fptosi {e.wide} {quotient} to {words}')} to {narrow}")
