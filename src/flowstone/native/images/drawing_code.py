"""LLVM's text of boxes drawn into images as lines of one pixel (`ops/images/box_drawing.py`).

Threads share the images. Of each the boxes are drawn one after the other, so that later ones cover earlier
ones.
"""

from __future__ import annotations

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.structured import Code

__all__ = ["PLACES", "WORDS", "drawing_code"]

WORDS = ("threads", "batch", "boxes", "height", "width", "colours")
"""The whole numbers of a call: how many images, boxes in each, and colours; the images' sizes."""
PLACES = {"draw": ("boxes", "colours", "out")}
"""The addresses that the function takes after that of the numbers, in order; `boxes` float32, `colours`
[colours, channels] of the images' type. `out` has the images."""
_FLOAT, _FAR, _LARGEST = "float32", 2.0**31, 3.4028234663852886e38


def drawing_code(kind: str, channels: int, lanes: int) -> str:
    """The text of the function, for so many channels of elements that LLVM calls `kind`."""
    declarations: dict[str, str] = {}
    some = _draw_some(kind, channels, lanes, declarations)
    e = Code("draw", ["ptr a"], lanes, declarations, is_public=True)
    share(e, "draw_some")
    return "\n".join([*declarations.values(), some, e.text()])


def _draw_some(kind: str, channels: int, lanes: int, declarations: dict[str, str]) -> str:
    """A thread's images."""
    e = Code("draw_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["draw"])
    words = words_of(e, a["words"], WORDS)
    height, width = words["height"], words["width"]
    _, start, end = my_part(e, words["batch"])
    with e.loop(start, end) as image, e.loop(0, words["boxes"]) as number:
        box = e.at(a["boxes"], e.mul(e.add(e.mul(image, words["boxes"]), number), 4))
        (y1, x1, y2, x2), seen = _corners(e, box, height, width)
        with e.when(seen):
            place = e.at(a["colours"], e.mul(e.rest(number, words["colours"]), channels), kind)
            colour = [e.get(kind, e.at(place, c, kind)) for c in range(channels)]
            picture = e.at(a["out"], e.mul(e.mul(e.mul(image, height), width), channels), kind)
            top, bottom = e.most(y1, 0), e.least(y2, e.sub(height, 1))
            left, right = e.most(x1, 0), e.least(x2, e.sub(width, 1))
            for line, drawn, first, last, along, apart in (
                (top, f"icmp sge i64 {y1}, 0", left, right, 1, width),
                (bottom, f"icmp slt i64 {y2}, {height}", left, right, 1, width),
                (left, f"icmp sge i64 {x1}, 0", top, bottom, width, 1),
                (right, f"icmp slt i64 {x2}, {width}", top, bottom, width, 1),
            ):
                with e.when(e.let(drawn)), e.loop(first, e.add(last, 1)) as i:
                    pixel = e.add(e.mul(i, along), e.mul(line, apart))
                    to = e.at(picture, e.mul(pixel, channels), kind)
                    for c, value in enumerate(colour):
                        e.set(kind, e.at(to, c, kind), value)
    return e.text()


def _corners(e: Code, box: str, height: str, width: str) -> tuple[list[str], str]:
    """The rows and columns of a box, and whether any of it is in the image; NaN is nowhere."""
    one = e.one
    corners, seen = [], "true"
    last = [e.let(f"sitofp i64 {e.sub(size, 1)} to float") for size in (height, width)]
    for i in range(4):
        x = e.get("float", e.at(box, i))
        seen = e.let(f"and i1 {seen}, {one.compare('fcmp ord', _FLOAT, x, x)}")
        for place in (_LARGEST, _FAR):
            bound, least = one.constant(_FLOAT, place), one.constant(_FLOAT, -place)
            x = one.select(one.compare("fcmp olt", _FLOAT, x, bound), _FLOAT, x, bound)
            x = one.select(one.compare("fcmp ogt", _FLOAT, x, least), _FLOAT, x, least)
            if place == _LARGEST:
                x = one.binary("fmul", _FLOAT, x, last[i % 2])
        corners.append(e.let(f"fptosi float {x} to i64"))
    y1, x1, y2, x2 = corners
    for first, second, size in ((y1, y2, height), (x1, x2, width)):
        for condition in (f"sle i64 {first}, {second}", f"slt i64 {first}, {size}", f"sge i64 {second}, 0"):
            seen = e.let(f"and i1 {seen}, {e.let(f'icmp {condition}')}")
    return corners, seen
