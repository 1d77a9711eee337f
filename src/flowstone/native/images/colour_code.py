"""LLVM's text of conversions and adjustments of colours (`ops/images/colours.py`), some pixels at once.

A pixel is three float32 numbers in a row. Threads share the pixels. Each operation is rounded, in the order
of ATen's kernels there, so that the results are theirs.
"""

from __future__ import annotations

from collections.abc import Callable

from flowstone.native.codegen.arithmetic import Arithmetic
from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import Emitter
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes

__all__ = ["PLACES", "WORDS", "colour_code"]

WORDS = ("threads", "pixels")
"""The whole numbers of a call."""
PLACES = dict.fromkeys(("to_hsv", "to_rgb", "turned", "coloured"), ("number", "images", "out"))
"""The addresses that each function takes after that of the words. `number`, a float32, is how many sixths of
the circle hues are `turned` by, from -6 to 6, or by what saturations are multiplied."""
_FLOAT = "float32"
_Pixel = tuple[str, str, str]


class _Colours(Arithmetic):
    """Arithmetic of float32, and what colours are made of."""

    TYPE = _FLOAT

    def chosen(
        self, predicate: str, a: str | float, b: str | float, yes: str | float, no: str | float
    ) -> str:
        """`yes` where the comparison holds, else `no`."""
        return self.where(self.is_(predicate, a, b), yes, no)

    def bounded(self, x: str) -> str:
        """x between 0 and 1; NaN stays. So written, each is one instruction of x86."""
        x = self.chosen("ogt", 0.0, x, 0.0, x)
        return self.chosen("olt", 1.0, x, 1.0, x)

    def size(self, x: str) -> str:
        return self.intrinsic("fabs", x)

    def span(self, pixel: _Pixel) -> tuple[str, str]:
        """The greatest and the least channel."""
        r, g, b = pixel
        greatest, least = (
            self.intrinsic(name, self.intrinsic(name, r, g), b) for name in ("maximum", "minimum")
        )
        return greatest, least

    def hue(self, pixel: _Pixel, greatest: str, spread: str) -> str:
        """In sixths of the circle."""
        r, g, b = pixel
        of_b = self.add(self.div(self.sub(r, g), spread), 4.0)
        of_g = self.add(self.div(self.sub(b, r), spread), 2.0)
        hue = self.chosen("oeq", g, greatest, of_g, of_b)
        hue = self.chosen("oeq", r, greatest, self.div(self.sub(g, b), spread), hue)
        hue = self.chosen("ogt", spread, 0.0, hue, 0.0)
        return self.chosen("olt", hue, 0.0, self.add(hue, 6.0), hue)

    def pure(self, hue: str) -> _Pixel:
        """The share of each channel in the pure colour of a hue in sixths."""
        red = self.bounded(self.sub(self.size(self.sub(hue, 3.0)), 1.0))
        green, blue = (
            self.bounded(self.add(self.e.negate(_FLOAT, self.size(self.sub(hue, place))), 2.0))
            for place in (2.0, 4.0)
        )
        return red, green, blue

    def to_hsv(self, pixel: _Pixel) -> _Pixel:
        greatest, least = self.span(pixel)
        spread = self.sub(greatest, least)
        saturation = self.chosen("ogt", greatest, 0.0, self.div(spread, greatest), 0.0)
        return self.div(self.hue(pixel, greatest, spread), 6.0), saturation, greatest

    def to_rgb(self, pixel: _Pixel) -> _Pixel:
        hue, saturation, value = pixel
        grey = self.sub(1.0, saturation)
        r, g, b = (
            self.mul(self.add(self.mul(each, saturation), grey), value)
            for each in self.pure(self.mul(hue, 6.0))
        )
        return r, g, b

    def turned(self, pixel: _Pixel, sixths: str) -> _Pixel:
        greatest, least = self.span(pixel)
        spread = self.sub(greatest, least)
        hue = self.add(self.hue(pixel, greatest, spread), sixths)
        for _ in range(2):
            hue = self.chosen("oge", hue, 6.0, self.sub(hue, 6.0), hue)
        hue = self.chosen("olt", hue, 0.0, self.add(hue, 6.0), hue)
        r, g, b = (self.add(self.mul(each, spread), least) for each in self.pure(hue))
        return r, g, b

    def coloured(self, pixel: _Pixel, scale: str) -> _Pixel:
        hue, saturation, value = self.to_hsv(pixel)
        return self.to_rgb((hue, self.bounded(self.mul(saturation, scale)), value))


def colour_code(lanes: int) -> str:
    """The text of all functions."""
    declarations: dict[str, str] = {}
    changes: dict[str, Callable[[_Colours, _Pixel, str], _Pixel]] = {
        "to_hsv": lambda c, pixel, _: c.to_hsv(pixel),
        "to_rgb": lambda c, pixel, _: c.to_rgb(pixel),
        "turned": _Colours.turned,
        "coloured": _Colours.coloured,
    }
    parts = []
    for name, change in changes.items():
        e = Code(f"{name}_some", ["ptr a"], lanes, declarations)
        a = places_of(e, PLACES[name])
        _, start, end = my_part(e, words_of(e, a["words"], WORDS)["pixels"])
        number = e.get("float", a["number"])
        whole = e.add(start, e.mul(e.quotient(e.sub(end, start), lanes), lanes))
        for some, first, last in ((e, start, whole), (e.one, whole, end)):
            wide = in_all_lanes(some, "float", number)
            with e.loop(first, last, some.lanes) as i:
                at = e.mul(i, 3)
                pixel = change(_Colours(some), _read(e, some, e.at(a["images"], at)), wide)
                _write(e, some, pixel, e.at(a["out"], at))
        parts.append(e.text())
        e = Code(name, ["ptr a"], lanes, declarations, is_public=True)
        share(e, f"{name}_some")
        parts.append(e.text())
    return "\n".join([*declarations.values(), *parts])


def _picked(e: Code, x: str, y: str, count: int, places: list[int]) -> str:
    """A vector of these elements of two vectors of so many."""
    kind = f"<{count} x float>"
    chosen = ", ".join(f"i32 {place}" for place in places)
    return e.let(f"shufflevector {kind} {x}, {kind} {y}, <{len(places)} x i32> <{chosen}>")


def _read(e: Code, some: Emitter, address: str) -> _Pixel:
    """The channels of as many pixels as the emitter has lanes."""
    n = some.lanes
    if n == 1:
        r, g, b = (e.get("float", e.at(address, i)) for i in range(3))
        return r, g, b
    row = e.let(f"load <{3 * n} x float>, ptr {address}, align 4")
    r, g, b = (_picked(e, row, "poison", 3 * n, list(range(i, 3 * n, 3))) for i in range(3))
    return r, g, b


def _write(e: Code, some: Emitter, pixel: _Pixel, address: str) -> None:
    n = some.lanes
    if n == 1:
        for i, channel in enumerate(pixel):
            e.set("float", e.at(address, i), channel)
        return
    two = _picked(e, pixel[0], pixel[1], n, list(range(2 * n)))
    third = _picked(e, pixel[2], "poison", n, [i % n for i in range(2 * n)])
    row = _picked(e, two, third, 2 * n, [channel * n + i for i in range(n) for channel in range(3)])
    e.do(f"store <{3 * n} x float> {row}, ptr {address}, align 4")
