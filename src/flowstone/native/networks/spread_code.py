"""LLVM's text of convolutions with few results a position, whose products are spread over the results.

`TOGETHER` positions of a row of images are multiplied by all taps of the filter at once: a vector has taps
and results of one position side by side, so that it is full although a position has one to four results. What
belongs to a row of a window is then added to the row of results below it, `strides` apart from one position
to the next. Threads share the rows of results: a row of images that reaches into those of two threads is
multiplied by both. So each result is the sum of the same terms in the same order, however many threads there
are. The filter comes as [channels, taps down, taps across, outputs], with a vector's room behind it.
"""

from __future__ import annotations

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.structured import Code

__all__ = ["MOST_PRODUCTS", "PLACES", "TOGETHER", "WORDS", "spread_code"]

WORDS = (
    "threads", "batch", "rows", "columns", "channels", "height", "width", "outputs", "taps_down",
    "taps_across", "stride_down", "stride_across", "above", "beside",
)  # fmt: skip
"""The whole numbers of a call: sizes of images and results, and those of `Spreading`."""
PLACES = {"spread": ("images", "filter", "results")}
"""The addresses that the function takes after that of the numbers; the results start with zeros."""
TOGETHER = 8
MOST_PRODUCTS = 256
"""Taps times outputs: as many products of a position as there is room for."""


def spread_code(lanes: int) -> str:
    """The text of the function, and of what a thread does of it."""
    declarations: dict[str, str] = {}
    public = Code("spread", ["ptr a"], 1, declarations, is_public=True)
    share(public, "spread_some")
    texts = [_Spread(lanes, declarations).text(), public.text()]
    return "\n".join([*declarations.values(), *texts])


class _Spread:
    """What one thread does: the rows of results that are its part."""

    def __init__(self, lanes: int, declarations: dict[str, str]) -> None:
        self._e = e = Code("spread_some", ["ptr a"], lanes, declarations)
        self._a = places_of(e, PLACES["spread"])
        self._words = words_of(e, self._a["words"], WORDS)
        self._products = e.array("float", TOGETHER * (MOST_PRODUCTS + lanes))
        self._row_size = e.mul(self._words["width"], self._words["outputs"])
        self._line = e.mul(self._words["taps_across"], self._words["outputs"])
        self._count = e.mul(self._words["taps_down"], self._line)

    def text(self) -> str:
        """The function's text."""
        e, words = self._e, self._words
        height = words["height"]
        _, first, last = my_part(e, e.mul(words["batch"], height))
        ends = e.quotient(e.add(last, e.sub(height, 1)), height)
        with e.loop(e.quotient(first, height), ends) as image:
            top = e.mul(image, height)
            start, end = e.most(e.sub(first, top), 0), e.least(e.sub(last, top), height)
            with e.loop(*self._rows(start, end)) as row, e.loop(0, words["columns"], TOGETHER) as column:
                self._multiply(e.add(e.mul(image, words["rows"]), row), column)
                for i in range(TOGETHER):
                    with e.when(e.let(f"icmp slt i64 {e.add(column, i)}, {words['columns']}")):
                        self._add(i, (row, e.add(column, i)), top, (start, end))
        return e.text()

    def _rows(self, start: str, end: str) -> tuple[str, str]:
        """The rows of images that reach into these of results."""
        e, words = self._e, self._words
        reach = e.sub(e.add(start, words["above"]), e.sub(words["taps_down"], 1))
        first = e.quotient(e.add(e.most(reach, 0), e.sub(words["stride_down"], 1)), words["stride_down"])
        last = e.quotient(e.add(e.sub(end, 1), words["above"]), words["stride_down"])
        return first, e.least(e.add(last, 1), words["rows"])

    def _multiply(self, row: str, column: str) -> None:
        """Puts the products of some positions from a column of a row on where `_add` reads them."""
        e, words = self._e, self._words
        channels, last = words["channels"], e.sub(words["columns"], 1)
        corner = e.mul(row, words["columns"])
        places = [e.add(corner, e.least(e.add(column, i), last)) for i in range(TOGETHER)]
        images = [e.at(self._a["images"], e.mul(place, channels)) for place in places]
        with e.loop(0, self._count, e.lanes) as first:
            sums = [e.variable(e.wide, e.number(0.0)) for _ in images]
            with e.loop(0, channels) as channel:
                taps = e.read(e.at(self._a["filter"], e.add(e.mul(channel, self._count), first)))
                for image, total in zip(images, sums):
                    element = e.splat(e.get("float", e.at(image, channel)))
                    e.set(e.wide, total, e.fma(element, taps, e.get(e.wide, total)))
            for i, total in enumerate(sums):
                e.write(e.at(self._own(i), first), e.get(e.wide, total))

    def _own(self, i: int) -> str:
        return self._e.at(self._products, i * (MOST_PRODUCTS + self._e.lanes))

    def _add(self, i: int, position: tuple[str, str], top: str, part: tuple[str, str]) -> None:
        """Adds the products of the i-th of some positions to the results of this thread's rows."""
        e, words = self._e, self._words
        (row, column), (start, end) = position, part
        above = e.sub(e.mul(row, words["stride_down"]), words["above"])
        beside = e.sub(e.mul(column, words["stride_across"]), words["beside"])
        left = e.mul(beside, words["outputs"])
        first, last = e.most(e.sub(start, above), 0), e.least(e.sub(end, above), words["taps_down"])
        with e.loop(first, last) as tap, e.loop(0, self._line, e.lanes) as element:
            target = e.add(left, element)
            behind = e.mask(e.least(e.sub(self._line, element), e.sub(self._row_size, target)))
            before = e.mask(e.sub(0, target))
            bits = e.vector("i1")
            mask = e.let(f"select {bits} {before}, {bits} zeroinitializer, {bits} {behind}")
            line = e.mul(e.add(top, e.add(above, tap)), self._row_size)
            place = e.at(self._a["results"], e.add(line, target))
            products = e.read(e.at(self._own(i), e.add(e.mul(tap, self._line), element)))
            e.write(place, e.plus(e.read(place, mask), products), mask)
