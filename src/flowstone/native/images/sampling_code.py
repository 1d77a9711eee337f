"""LLVM's text of crops of images at places between pixels, and of their gradients.

A box ``[y1, x1, y2, x2]`` has the centres of the first and last row or column of its image at 0 and 1; the
crop's corner pixels lie on the box's corners, one row or column in its middle. `crops` reads, `spread` adds
the gradient of each pixel of a crop to the pixels that it lies between, `box_flows` sums up what moves each
box. Threads share the rows of the crops; for `spread` those of the images, so that no two add to the same
pixel, and each pixel's terms come in the order of the boxes. Places are computed in float32, step by step as
ATen's kernels in `ops/images/box_crops.py` do it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import Emitter, kind_of
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, load, store

__all__ = ["PLACES", "WORDS", "crop_code"]

WORDS = ("threads", "boxes", "rows", "columns", "batch", "height", "width", "channels")
"""The whole numbers of a call: how many boxes; the size of a crop; the sizes of the images."""
PLACES = {
    "crops": ("notes", "boxes", "images", "x", "beyond", "out"),
    "spread": ("notes", "boxes", "images", "dy", "dx"),
    "box_flows": ("notes", "boxes", "images", "x", "dy", "flows"),
}
"""The addresses that each function takes after that of the numbers, in order. `images`: int32, the image of
each box. Of `notes`, int64, the first becomes 1 where a box is not finite or has no image; nothing else is
done then. `beyond`: a float, for places outside. `dx` float32, 0 at first; `flows` [threads, boxes, 4]
float64, 0 at first."""
_FLOAT = "float32"


def crop_code(dtype: str, nearest: bool, lanes: int) -> str:
    """The text of the functions of `PLACES`, for images of this type; places are rounded if `nearest`."""
    declarations: dict[str, str] = {}
    parts = [
        _crops(dtype, nearest, lanes, declarations),
        _spread(nearest, lanes, declarations),
        _box_flows(dtype, lanes, declarations),
    ]
    for name in PLACES:
        parts.append(_checked(name, lanes, declarations))
    return "\n".join([*declarations.values(), *parts])


def _checked(name: str, lanes: int, declarations: dict[str, str]) -> str:
    """The function that looks at the boxes, and has the threads do the rest."""
    e = Code(name, ["ptr a"], lanes, declarations, is_public=True)
    a = places_of(e, PLACES[name])
    words = words_of(e, a["words"], WORDS)
    fine = e.variable("i1", "true")
    with e.loop(0, words["boxes"]) as box:
        number = e.let(f"sext i32 {e.get('i32', e.at(a['images'], box, 'i32'))} to i64")
        good = e.within(number, words["batch"])
        for i in range(4):
            x = e.get("float", e.at(a["boxes"], e.add(e.mul(box, 4), i)))
            zero = e.one.binary("fsub", _FLOAT, x, x)  # of an infinity or NaN, NaN
            good = e.let(f"and i1 {good}, {e.one.compare('fcmp ord', _FLOAT, zero, zero)}")
        e.set("i1", fine, e.let(f"and i1 {e.get('i1', fine)}, {good}"))
    is_fine = e.get("i1", fine)
    with e.when(is_fine):
        share(e, f"{name}_some")
    with e.when(e.let(f"xor i1 {is_fine}, true")):
        e.set("i64", a["notes"], "1")
    return e.text()


# ---- places


class Line(NamedTuple):
    """Where a crop's rows or columns lie: the first, how far the next, and the last pixel, all float."""

    first: str
    step: str
    last: str


class Place(NamedTuple):
    """One of them: whether it is inside; the pixels on both sides (i64), the second's share, and 1 - that."""

    inside: str
    pixels: tuple[str, str]
    shares: tuple[str, str]


def _line(e: Code, box: str, axis: int, length: str, count: str) -> Line:
    """Of a box, whose address this is, in this dimension."""
    one = e.one
    last = e.let(f"sitofp i64 {e.sub(length, 1)} to float")
    start, stop = (e.get("float", e.at(box, i)) for i in (axis, axis + 2))
    steps = e.let(f"sitofp i64 {e.sub(count, 1)} to float")
    span = one.binary("fmul", _FLOAT, one.binary("fsub", _FLOAT, stop, start), last)
    both = one.binary("fadd", _FLOAT, start, stop)
    middle = one.binary("fmul", _FLOAT, one.binary("fmul", _FLOAT, both, one.constant(_FLOAT, 0.5)), last)
    several = e.let(f"icmp sgt i64 {count}, 1")
    first = one.select(several, _FLOAT, one.binary("fmul", _FLOAT, start, last), middle)
    step = one.select(several, _FLOAT, one.binary("fdiv", _FLOAT, span, steps), one.constant(_FLOAT, 0))
    return Line(first, step, last)


def _place(e: Code, line: Line, i: str, nearest: bool) -> Place:
    """The i-th of a line."""
    one, zero = e.one, e.one.constant(_FLOAT, 0)
    number = e.let(f"sitofp i64 {i} to float")
    position = one.binary("fadd", _FLOAT, line.first, one.binary("fmul", _FLOAT, number, line.step))
    inside = e.let(
        f"and i1 {one.compare('fcmp oge', _FLOAT, position, zero)}, "
        f"{one.compare('fcmp ole', _FLOAT, position, line.last)}"
    )
    position = one.select(inside, _FLOAT, position, zero)
    unit = one.constant(_FLOAT, 1)
    if nearest:
        half = one.binary("fadd", _FLOAT, position, one.constant(_FLOAT, 0.5))
        pixel = _whole(e, one.intrinsic("floor", _FLOAT, half))
        last = _whole(e, line.last)
        pixel = e.least(pixel, last)
        return Place(inside, (pixel, pixel), (zero, unit))
    below = one.intrinsic("floor", _FLOAT, position)
    above = one.intrinsic("ceil", _FLOAT, position)
    part = one.binary("fsub", _FLOAT, position, below)
    return Place(inside, (_whole(e, below), _whole(e, above)), (part, one.binary("fsub", _FLOAT, unit, part)))


def _whole(e: Code, x: str) -> str:
    return e.let(f"fptosi float {x} to i64")


class _Crop(NamedTuple):
    """A row of a crop: its box's number, the row's, the first line of the box's image, and the places."""

    box: str
    row: str
    first_line: str
    place: Place
    columns: Line


def _row(e: Code, a: dict[str, str], words: dict[str, str], box: str, row: str, nearest: bool) -> _Crop:
    corners = e.at(a["boxes"], e.mul(box, 4))
    number = e.let(f"sext i32 {e.get('i32', e.at(a['images'], box, 'i32'))} to i64")
    down = _line(e, corners, 0, words["height"], words["rows"])
    place = _place(e, down, row, nearest)
    across = _line(e, corners, 1, words["width"], words["columns"])
    return _Crop(box, row, e.mul(number, words["height"]), place, across)


def _pixel(e: Code, words: dict[str, str], crop: _Crop, line: str, column: str) -> str:
    """The number of the first element of a pixel of the images."""
    whole = e.mul(e.add(crop.first_line, line), words["width"])
    return e.mul(e.add(whole, column), words["channels"])


def each_channel(e: Code, channels: str) -> Iterator[tuple[Emitter, str]]:
    """(emitter, channel): what is written for each runs for vectors from that channel on, or for it alone."""
    whole = e.mul(e.quotient(channels, e.lanes), e.lanes)
    with e.loop(0, whole, e.lanes) as c:
        yield e, c
    with e.loop(whole, channels) as c:
        yield e.one, c


# ---- the functions' parts


def _crops(dtype: str, nearest: bool, lanes: int, declarations: dict[str, str]) -> str:
    """A thread's rows of crops."""
    e = Code("crops_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["crops"])
    words = words_of(e, a["words"], WORDS)
    rows, columns, channels = words["rows"], words["columns"], words["channels"]
    beyond = e.get("float", a["beyond"])
    _, start, end = my_part(e, e.mul(words["boxes"], rows))
    with e.loop(start, end) as unit:
        crop = _row(e, a, words, e.quotient(unit, rows), e.rest(unit, rows), nearest)
        line = e.at(a["out"], e.mul(e.mul(unit, columns), channels))
        with e.loop(0, columns) as column:
            to = e.at(line, e.mul(column, channels))
            across = _place(e, crop.columns, column, nearest)
            inside = e.let(f"and i1 {crop.place.inside}, {across.inside}")
            with e.when(inside):
                _blend(e, dtype, nearest, words, crop, across, a["x"], to)
            with e.when(e.let(f"xor i1 {inside}, true")):
                for some, c in each_channel(e, channels):
                    store(some, _FLOAT, in_all_lanes(some, "float", beyond), to, c)
    return e.text()


def _blend(
    e: Code, dtype: str, nearest: bool, words: dict[str, str], crop: _Crop, across: Place, x: str, to: str
) -> None:
    """A pixel between four, first along the rows, then between them; or the nearest one."""
    chosen = [
        _pixel(e, words, crop, line, column)
        for line in crop.place.pixels[: 1 if nearest else 2]
        for column in across.pixels[: 1 if nearest else 2]
    ]
    sources = [e.at(x, pixel, kind_of(dtype)) for pixel in chosen]
    for some, c in each_channel(e, words["channels"]):
        found = [some.convert(load(some, dtype, source, c), dtype, _FLOAT) for source in sources]
        if not nearest:
            top, bottom = (_between(some, found[i], found[i + 1], across.shares[0]) for i in (0, 2))
            found = [_between(some, top, bottom, crop.place.shares[0])]
        store(some, _FLOAT, found[0], to, c)


def _between(some: Emitter, first: str, second: str, part: str) -> str:
    step = some.binary("fsub", _FLOAT, second, first)
    more = some.binary("fmul", _FLOAT, step, in_all_lanes(some, "float", part))
    return some.binary("fadd", _FLOAT, first, more)


def _spread(nearest: bool, lanes: int, declarations: dict[str, str]) -> str:
    """A thread's lines of the images: all crops' rows are looked at, and those that lie there added."""
    e = Code("spread_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["spread"])
    words = words_of(e, a["words"], WORDS)
    rows, columns, channels = words["rows"], words["columns"], words["channels"]
    _, start, end = my_part(e, e.mul(words["batch"], words["height"]))
    mine = e.sub(end, start)
    with e.loop(0, words["boxes"]) as box, e.loop(0, rows) as row:
        crop = _row(e, a, words, box, row, nearest)
        unit = e.add(e.mul(box, rows), row)
        source = e.at(a["dy"], e.mul(e.mul(unit, columns), channels))
        with e.when(crop.place.inside):
            for pixel, part in _sides(crop.place, nearest):
                line = e.add(crop.first_line, pixel)
                with e.when(e.within(e.sub(line, start), mine)), e.loop(0, columns) as column:
                    across = _place(e, crop.columns, column, nearest)
                    with e.when(across.inside):
                        for beside, share_ in _sides(across, nearest):
                            to = e.at(a["dx"], _pixel(e, words, crop, pixel, beside))
                            weight = e.one.binary("fmul", _FLOAT, part, share_)
                            _add_scaled(e, channels, e.at(source, e.mul(column, channels)), weight, to)
    return e.text()


def _sides(place: Place, nearest: bool) -> list[tuple[str, str]]:
    """The pixels of a place, with their weights."""
    sides = list(zip(place.pixels, reversed(place.shares)))
    return sides[:1] if nearest else sides


def _add_scaled(e: Code, channels: str, source: str, weight: str, to: str) -> None:
    for some, c in each_channel(e, channels):
        given, old = (load(some, _FLOAT, address, c) for address in (source, to))
        term = some.binary("fmul", _FLOAT, given, in_all_lanes(some, "float", weight))
        store(some, _FLOAT, some.binary("fadd", _FLOAT, old, term), to, c)


def _box_flows(dtype: str, lanes: int, declarations: dict[str, str]) -> str:
    """A thread's rows of crops: what of their gradient moves the corners of the boxes."""
    e = Code("box_flows_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["box_flows"])
    words = words_of(e, a["words"], WORDS)
    rows, columns, channels = words["rows"], words["columns"], words["channels"]
    me, start, end = my_part(e, e.mul(words["boxes"], rows))
    flows = e.at(a["flows"], e.mul(e.mul(me, words["boxes"]), 4), "double")
    with e.loop(start, end) as unit:
        crop = _row(e, a, words, e.quotient(unit, rows), e.rest(unit, rows), False)
        source = e.at(a["dy"], e.mul(e.mul(unit, columns), channels))
        mine = e.at(flows, e.mul(crop.box, 4), "double")
        with e.when(crop.place.inside), e.loop(0, columns) as column:
            across = _place(e, crop.columns, column, False)
            with e.when(across.inside):
                dy = e.at(source, e.mul(column, channels))
                found = _movements(e, dtype, words, crop, across, (a["x"], dy))
                for axis, (length, count, i) in enumerate(
                    ((words["height"], rows, crop.row), (words["width"], columns, column))
                ):
                    _add_movement(e, e.at(mine, axis, "double"), found[axis], length, count, i)
    return e.text()


def _movements(
    e: Code, dtype: str, words: dict[str, str], crop: _Crop, across: Place, arrays: tuple[str, str]
) -> list[str]:
    """The sums over a pixel's channels of its gradient times the slopes along the columns and the rows."""
    x, dy = arrays
    corners = [
        e.at(x, _pixel(e, words, crop, line, column), kind_of(dtype))
        for line in crop.place.pixels
        for column in across.pixels
    ]
    kinds = {some.lanes: some.type(_FLOAT) for some in (e, e.one)}
    totals = {
        lanes: [e.variable(kind, "zeroinitializer" if lanes > 1 else "0.0") for _ in range(2)]
        for lanes, kind in kinds.items()
    }
    for some, c in each_channel(e, words["channels"]):
        flow = load(some, _FLOAT, dy, c)
        top_left, top_right, low_left, low_right = (
            some.convert(load(some, dtype, each, c), dtype, _FLOAT) for each in corners
        )
        by_row = _mixed(some, across, (top_left, low_left), (top_right, low_right))
        by_column = _mixed(some, crop.place, (top_left, top_right), (low_left, low_right))
        for total, slope in zip(totals[some.lanes], (by_row, by_column)):
            term = some.binary("fmul", _FLOAT, flow, slope)
            kind = kinds[some.lanes]
            e.set(kind, total, some.binary("fadd", _FLOAT, e.get(kind, total), term))
    found = []
    for i in range(2):
        wide = e.get(kinds[e.lanes], totals[e.lanes][i])
        name, left = f"llvm.vector.reduce.fadd.v{e.lanes}f32", e.get("float", totals[1][i])
        found.append(e.call(name, "float", [("float", left), (kinds[e.lanes], wide)]))
    return found


def _mixed(some: Emitter, place: Place, first: tuple[str, str], second: tuple[str, str]) -> str:
    """The slopes between two pixels each, by the shares of the place."""
    slopes = [some.binary("fsub", _FLOAT, b, a) for a, b in (first, second)]
    part, rest = (in_all_lanes(some, "float", each) for each in place.shares)
    terms = [some.binary("fmul", _FLOAT, w, slope) for w, slope in zip((rest, part), slopes)]
    return some.binary("fadd", _FLOAT, *terms)


def _add_movement(e: Code, to: str, flow: str, length: str, count: str, i: str) -> None:
    """Adds to the flows of a box's start and stop, at `to` and two after it, those of its i-th place."""
    last, steps, number = (
        e.let(f"sitofp i64 {each} to double") for each in (e.sub(length, 1), e.sub(count, 1), i)
    )
    several = e.let(f"icmp sgt i64 {count}, 1")
    wide = e.let(f"fpext float {flow} to double")
    step = e.let(f"fdiv double {last}, {steps}")
    half = e.let(f"fmul double {last}, 0.5")
    stop = e.let(f"select i1 {several}, double {e.let(f'fmul double {number}, {step}')}, double {half}")
    start = e.let(f"fsub double {last}, {stop}")
    for place, factor in ((to, start), (e.at(to, 2, "double"), stop)):
        term = e.let(f"fmul double {wide}, {factor}")
        e.set("double", place, e.let(f"fadd double {e.get('double', place)}, {term}"))
