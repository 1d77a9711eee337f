"""LLVM's text of grey-scale dilation (`ops/networks/morphology.py`), and of its gradients.

Images are [batch, height, width, depth]. A row of results is made at once, [columns, depth] as one line: for
each position of the filter that lies within the image, the part of the line that sees the image there
(`ranges`) is compared with image plus filter, which is there for a whole line (`lines`). The gradients note
with the best sum where it comes from, and then add the line's flow there, from its end on: the later a
position of the filter, the earlier the result, so the order of additions is that of positions. NaN is never
the best, nor is what does not exceed the type's least number: then the first pixel that the window sees has
the gradient, or the filter's first number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import KINDS
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, load, store

__all__ = ["APART", "PLACES", "SUMS", "WORDS", "dilation_code"]

APART = 32  # elements between what different threads write, so that cores do not take lines from each other
SUMS = 4  # of a filter's number, which elements of a line take by turns: additions to one wait for each other

WORDS = (
    "threads", "batch", "height", "width", "depth", "filter_rows", "filter_columns", "rows", "columns",
    "stride", "stride_columns", "rate", "rate_columns", "top", "left",
)  # fmt: skip
"""The whole numbers of a call: the filter's size, the results', steps between windows and between positions,
and the padding before."""
_GIVEN = ("images", "lines", "ranges", "places", "out")
_FLOWING = (*_GIVEN, "flow", "numbers", "starts", "best", "winners")
PLACES = {"dilated": _GIVEN, "to_images": _FLOWING, "to_filter": _FLOWING}
"""The addresses that each function takes after that of the numbers. `places`: of each element of a line,
where it is from the first window's pixel on; `numbers`: what is added to a position's start to have the place
of an element there, in the image or the filter; `starts`: where it goes if nothing is the best. Each thread
has a line of `best` and one of `winners`, of a multiple of `APART` elements, and of the filter's gradient
`SUMS` ones, `out`, with `APART` numbers behind them."""


def dilation_code(dtype: str, lanes: int) -> str:
    """The text of the functions for a type of numbers."""
    declarations: dict[str, str] = {}
    parts = []
    for name, write in (("dilated", _dilated), ("to_images", _to_images), ("to_filter", _to_filter)):
        some = Code(f"{name}_some", ["ptr a"], lanes, declarations)
        write(some, dtype)
        e = Code(name, ["ptr a"], lanes, declarations, is_public=True)
        share(e, f"{name}_some")
        parts += [some.text(), e.text()]
    return "\n".join([*declarations.values(), *parts])


def _dilated(e: Code, dtype: str) -> None:
    a, words = _given(e, "dilated")
    line = e.mul(words["columns"], words["depth"])
    _, start, end = my_part(e, e.mul(words["batch"], words["rows"]))
    with e.loop(start, end) as row:
        best = e.at(a["out"], e.mul(row, line), KINDS[dtype])
        image, y = e.quotient(row, words["rows"]), e.rest(row, words["rows"])
        _compare(e, dtype, a, words, image, y, best)


def _to_images(e: Code, dtype: str) -> None:
    a, words = _given(e, "to_images")
    size = e.mul(words["height"], e.mul(words["width"], words["depth"]))
    part, start, end = my_part(e, words["batch"])
    with e.loop(start, end) as image:
        to = e.at(a["out"], e.mul(image, size), KINDS[dtype])
        with e.loop(0, words["rows"]) as number:
            y = e.sub(e.sub(words["rows"], 1), number)
            winners, flow = _won(e, dtype, a, words, part, image, y, True)
            for _, place, value in _from_end(e, dtype, words, winners, flow):
                address = e.at(to, place, KINDS[dtype])
                total = e.let(f"fadd {KINDS[dtype]} {e.get(KINDS[dtype], address)}, {value}")
                e.set(KINDS[dtype], address, total)


def _to_filter(e: Code, dtype: str) -> None:
    a, words = _given(e, "to_filter")
    part, start, end = my_part(e, e.mul(words["batch"], words["rows"]))
    positions = e.mul(words["filter_rows"], words["filter_columns"])
    numbers = e.mul(positions, words["depth"])
    sums = e.at(a["out"], e.mul(part, e.add(e.mul(numbers, SUMS), APART)), "double")
    with e.loop(start, end) as row:
        image, y = e.quotient(row, words["rows"]), e.rest(row, words["rows"])
        winners, flow = _won(e, dtype, a, words, part, image, y, False)
        for i, place, value in _from_end(e, dtype, words, winners, flow):
            address = e.at(sums, e.add(place, e.mul(e.rest(i, SUMS), numbers)), "double")
            wide = value if dtype == "float64" else e.let(f"fpext float {value} to double")
            e.set("double", address, e.let(f"fadd double {e.get('double', address)}, {wide}"))


def _given(e: Code, name: str) -> tuple[dict[str, str], dict[str, str]]:
    a = places_of(e, PLACES[name])
    return a, words_of(e, a["words"], WORDS)


def _won(
    e: Code, dtype: str, a: Mapping[str, str], words: Mapping[str, str], part: str, image: str, y: str,
    to_images: bool,
) -> tuple[str, str]:  # fmt: skip
    """The places that a line's elements come from, and the line's flow."""
    line = e.mul(words["columns"], words["depth"])
    own = e.mul(part, e.mul(e.quotient(e.add(line, APART - 1), APART), APART))
    best, winners = e.at(a["best"], own, KINDS[dtype]), e.at(a["winners"], own, "i32")
    first = e.most(0, e.sub(e.mul(y, words["stride"]), words["top"]))
    above = e.mul(e.mul(first, words["width"]), words["depth"]) if to_images else "0"
    for i, (mask,) in e.vectors(line):
        start = _plus(e, load(e, "int32", a["starts"], i, mask), above)
        store(e, "int32", start, winners, i, mask)

    def start_of(row: str, column: str, pixel: str) -> str:
        if to_images:
            return pixel
        return e.mul(e.add(e.mul(row, words["filter_columns"]), column), words["depth"])

    _compare(e, dtype, a, words, image, y, best, winners, start_of)
    number = e.add(e.mul(image, words["rows"]), y)
    return winners, e.at(a["flow"], e.mul(number, line), KINDS[dtype])


def _from_end(
    e: Code, dtype: str, words: Mapping[str, str], winners: str, flow: str
) -> Iterator[tuple[str, str, str]]:
    """(number, where it comes from, its flow) of each element of a line, from its end on."""
    line = e.mul(words["columns"], words["depth"])
    with e.loop(0, line) as i:
        last = e.sub(e.sub(line, 1), i)
        place = e.let(f"sext i32 {e.get('i32', e.at(winners, last, 'i32'))} to i64")
        yield last, place, e.get(KINDS[dtype], e.at(flow, last, KINDS[dtype]))


def _compare(
    e: Code, dtype: str, a: Mapping[str, str], words: Mapping[str, str], image: str, y: str, best: str,
    winners: str = "", start_of: Callable[[str, str, str], str] | None = None,
) -> None:  # fmt: skip
    """Writes the best sums of a line, and to `winners` the places that they come from: what `start_of` says
    of a row and a column of the filter and of the pixel there, plus the element's number."""
    depth = words["depth"]
    line = e.mul(words["columns"], depth)
    for i, (mask,) in e.vectors(line):
        store(e, dtype, e.constant(dtype, float(np.finfo(dtype).min)), best, i, mask)
    with e.loop(0, words["filter_rows"]) as row:
        at_row = e.sub(e.add(e.mul(y, words["stride"]), e.mul(row, words["rate"])), words["top"])
        with e.when(e.within(at_row, words["height"])), e.loop(0, words["filter_columns"]) as column:
            at_column = e.sub(e.mul(column, words["rate_columns"]), words["left"])
            pixel = e.mul(e.add(e.mul(at_row, words["width"]), at_column), depth)
            size = e.mul(e.mul(words["height"], words["width"]), depth)
            source = e.at(a["images"], e.add(e.mul(image, size), pixel), KINDS[dtype])
            number = e.add(e.mul(row, words["filter_columns"]), column)
            added = e.at(a["lines"], e.mul(number, line), KINDS[dtype])
            first, end = (e.get("i64", e.at(a["ranges"], e.add(e.mul(column, 2), i), "i64")) for i in (0, 1))
            start = start_of(row, column, pixel) if start_of else ""
            for apart in (False, True):
                with e.when(e.let(f"icmp {'ne' if apart else 'eq'} i64 {words['stride_columns']}, 1")):
                    for i, (mask,) in e.vectors(e.sub(end, first)):
                        at = e.add(first, i)
                        if apart:
                            x = _gathered(e, dtype, source, a["places"], at, mask)
                        else:
                            x = load(e, dtype, source, at, mask)
                        sum_ = e.binary("fadd", dtype, x, load(e, dtype, added, at, mask))
                        old = load(e, dtype, best, at, mask)
                        wins = e.compare("fcmp ogt", dtype, sum_, old)
                        store(e, dtype, e.select(wins, dtype, sum_, old), best, at, mask)
                        if winners:
                            place = _plus(e, load(e, "int32", a["numbers"], at, mask), start)
                            before = load(e, "int32", winners, at, mask)
                            store(e, "int32", e.select(wins, "int32", place, before), winners, at, mask)


def _plus(e: Code, numbers: str, more: str) -> str:
    """A vector of int32, plus an i64 that fits there."""
    every = in_all_lanes(e, "i32", e.let(f"trunc i64 {more} to i32"))
    return e.binary("add", "int32", numbers, every)


def _gathered(e: Code, dtype: str, source: str, places: str, at: str, mask: str) -> str:
    """The elements whose places from `source` on are in a table of int32."""
    kind, vector, truths = KINDS[dtype], e.type(dtype), e.vector("i1")
    numbers = load(e, "int32", places, at, mask)
    addresses = e.let(f"getelementptr {kind}, ptr {source}, {e.vector('i32')} {numbers}")
    name = f"llvm.masked.gather.v{e.lanes}f{64 if kind == 'double' else 32}.v{e.lanes}p0"
    e.declarations[name] = f"declare {vector} @{name}({e.vector('ptr')}, {truths}, {vector})"
    mask = mask or "<" + ", ".join(["i1 true"] * e.lanes) + ">"
    where = f"{e.vector('ptr')} align {8 if kind == 'double' else 4} {addresses}"
    return e.let(f"call {vector} @{name}({where}, {truths} {mask}, {vector} zeroinitializer)")
