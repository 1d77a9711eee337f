"""LLVM's text of the gradients of fractional pooling: what flows from windows of any sizes to their elements.

Windows are given by the first place and the number of places of each, along rows and along columns. Threads
share the images. The largest element of a window is the first of equals, and NaN where a window starts with
it; other NaN are passed over.
"""

from __future__ import annotations

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import FLOATS, KINDS
from flowstone.native.codegen.structured import Code

__all__ = ["PLACES", "WORDS", "cut_window_code"]

WORDS = ("threads", "batch", "height", "width", "channels", "rows", "columns")
"""The whole numbers of a call: the images' sizes, and how many windows there are along rows and columns."""
_WINDOWS = ("row_starts", "row_counts", "column_starts", "column_counts")
PLACES = {"to_largest": ("x", "dy", *_WINDOWS, "out"), "to_all": ("dy", *_WINDOWS, "out")}
"""The addresses that each function takes after that of the numbers; windows are int64, `out` starts with
zeros. `to_all` is there for floating point alone."""


def cut_window_code(dtype: str) -> str:
    """The text of the functions for images of a type."""
    declarations: dict[str, str] = {}
    names = PLACES if dtype in FLOATS else ("to_largest",)
    texts = [text for name in names for text in _Flow(name, dtype, declarations).texts()]
    return "\n".join([*declarations.values(), *texts])


class _Flow:
    """One function."""

    def __init__(self, name: str, dtype: str, declarations: dict[str, str]) -> None:
        self._name, self._dtype, self._kind = name, dtype, KINDS[dtype]
        self._declarations = declarations
        self._e = e = Code(f"{name}_some", ["ptr a"], 1, declarations)
        self._a = places_of(e, PLACES[name])
        self._words = words_of(e, self._a["words"], WORDS)

    def texts(self) -> list[str]:
        """What one thread does, and the function that others call."""
        e, words = self._e, self._words
        best, place = e.variable(self._kind, e.constant(self._dtype, 0)), e.variable("i64", "0")
        _, first, last = my_part(e, words["batch"])
        with e.loop(first, last) as image:
            corner = e.mul(image, e.mul(words["height"], words["width"]))
            with e.loop(0, words["rows"]) as row, e.loop(0, words["columns"]) as column:
                window = [self._window("row", row), self._window("column", column)]
                at = e.add(e.mul(e.add(e.mul(image, words["rows"]), row), words["columns"]), column)
                with e.loop(0, words["channels"]) as channel:
                    element = e.add(e.mul(at, words["channels"]), channel)
                    dy = e.get(self._kind, e.at(self._a["dy"], element, self._kind))
                    if self._name == "to_largest":
                        self._to_largest(dy, corner, window, channel, best, place)
                    else:
                        self._to_all(dy, corner, window, channel)
        public = Code(self._name, ["ptr a"], 1, self._declarations, is_public=True)
        share(public, f"{self._name}_some")
        return [e.text(), public.text()]

    def _window(self, axis: str, number: str) -> tuple[str, str]:
        """The first place of a window, and the end."""
        e = self._e
        start, count = (
            e.get("i64", e.at(self._a[f"{axis}_{what}"], number, "i64")) for what in ("starts", "counts")
        )
        return start, e.add(start, count)

    def _element(self, corner: str, row: str, column: str, channel: str) -> str:
        e, words = self._e, self._words
        pixel = e.add(e.add(corner, e.mul(row, words["width"])), column)
        return e.add(e.mul(pixel, words["channels"]), channel)

    def _add(self, element: str, dy: str) -> None:
        e, kind = self._e, self._kind
        target = e.at(self._a["out"], element, kind)
        name = "fadd" if self._dtype in FLOATS else "add"
        e.set(kind, target, e.binary(name, self._dtype, e.get(kind, target), dy))

    def _to_largest(
        self, dy: str, corner: str, window: list[tuple[str, str]], channel: str, best: str, place: str
    ) -> None:
        e, kind = self._e, self._kind
        rows, columns = window
        first = self._element(corner, rows[0], columns[0], channel)
        e.set("i64", place, first)
        e.set(kind, best, e.get(kind, e.at(self._a["x"], first, kind)))
        with e.loop(*rows) as row, e.loop(*columns) as column:
            element = self._element(corner, row, column, channel)
            value, so_far = e.get(kind, e.at(self._a["x"], element, kind)), e.get(kind, best)
            is_larger = self._is_larger(value, so_far)
            e.set(kind, best, e.select(is_larger, self._dtype, value, so_far))
            e.set("i64", place, e.select(is_larger, "int64", element, e.get("i64", place)))
        self._add(e.get("i64", place), dy)

    def _is_larger(self, value: str, so_far: str) -> str:
        e, dtype = self._e, self._dtype
        if dtype not in FLOATS:
            return e.compare("icmp sgt", dtype, value, so_far)
        return e.compare("fcmp ogt", dtype, value, so_far)

    def _to_all(self, dy: str, corner: str, window: list[tuple[str, str]], channel: str) -> None:
        e = self._e
        rows, columns = window
        size = e.mul(e.sub(rows[1], rows[0]), e.sub(columns[1], columns[0]))
        part = e.binary("fdiv", self._dtype, dy, e.let(f"sitofp i64 {size} to {self._kind}"))
        with e.loop(*rows) as row, e.loop(*columns) as column:
            self._add(self._element(corner, row, column, channel), part)
