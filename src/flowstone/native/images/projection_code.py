"""LLVM's text of images seen through projective transforms (`ops/images/projective_transforms.py`).

Threads share the rows of the results. Of each pixel the place in the image is computed in float32, step by
step as ATen's kernels do it, and mapped as the mode says; then the nearest pixel is read, or what is between
four. A pixel beyond the image is read from a row of fill values.
"""

from __future__ import annotations

from collections.abc import Callable

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import KINDS, Emitter, kind_of
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, load, store
from flowstone.native.images.sampling_code import each_channel

__all__ = ["PLACES", "WORDS", "projection_code"]

WORDS = ("threads", "batch", "rows", "columns", "height", "width", "channels", "step")
"""The whole numbers of a call: how many images; the size of the results and of the images; how many numbers
a transform is from that of the next image, 8 or 0."""
PLACES = {"project": ("transforms", "x", "fill", "out")}
"""The addresses that the function takes after that of the numbers, in order; `fill`: [channels]."""
_FLOAT, _FAR = "float32", 2.0**30


def projection_code(dtype: str, mode: str, nearest: bool, lanes: int) -> str:
    """The text of the function for images of a type, in one of the modes CONSTANT, REFLECT, WRAP, NEAREST;
    places are rounded if `nearest`."""
    declarations: dict[str, str] = {}
    some = _project_some(dtype, mode, nearest, lanes, declarations)
    e = Code("project", ["ptr a"], lanes, declarations, is_public=True)
    share(e, "project_some")
    return "\n".join([*declarations.values(), some, e.text()])


def _project_some(dtype: str, mode: str, nearest: bool, lanes: int, declarations: dict[str, str]) -> str:
    """A thread's rows."""
    e = Code("project_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["project"])
    words = words_of(e, a["words"], WORDS)
    rows, columns, channels, kind = words["rows"], words["columns"], words["channels"], kind_of(dtype)
    _, start, end = my_part(e, e.mul(words["batch"], rows))
    with e.loop(start, end) as unit:
        image, row = e.quotient(unit, rows), e.rest(unit, rows)
        place_of = _places(e, e.at(a["transforms"], e.mul(image, words["step"])), row)
        pixel_of = _pixels(e, a, words, image, kind)
        with e.loop(0, columns) as column:
            across, down, known = place_of(column)
            across, down = _mapped(e, across, words["width"], mode), _mapped(e, down, words["height"], mode)
            to = e.at(a["out"], e.mul(e.add(e.mul(unit, columns), column), channels), kind)
            if nearest:
                source = pixel_of(_rounded(e, down), _rounded(e, across))
                source = e.let(f"select i1 {known}, ptr {source}, ptr {a['fill']}")
                _copy(e, dtype, channels, source, to)
            else:
                with e.when(known):
                    _blend(e, dtype, channels, pixel_of, (down, across), to)
                with e.when(e.let(f"xor i1 {known}, true")):
                    _copy(e, dtype, channels, a["fill"], to)
    return e.text()


def _places(e: Code, transform: str, row: str) -> Callable[[str], tuple[str, str, str]]:
    """A function of the column: the place's column and row in the image, float, and whether there is one."""
    one = e.one
    numbers = [e.get("float", e.at(transform, i)) for i in range(8)]
    y = e.let(f"sitofp i64 {row} to float")
    (a0, a1, a2), (b0, b1, b2), (c0, c1) = numbers[:3], numbers[3:6], numbers[6:]
    by_row = [one.binary("fmul", _FLOAT, each, y) for each in (a1, b1, c1)]
    unit, far = one.constant(_FLOAT, 1), one.constant(_FLOAT, _FAR)
    near = one.constant(_FLOAT, -_FAR)

    def term(factor: str, x: str, i: int, last: str) -> str:
        found = one.binary("fadd", _FLOAT, one.binary("fmul", _FLOAT, factor, x), by_row[i])
        return one.binary("fadd", _FLOAT, found, last)

    def bounded(x: str) -> str:
        x = one.select(one.compare("fcmp ogt", _FLOAT, x, near), _FLOAT, x, near)  # NaN is there as well
        return one.select(one.compare("fcmp olt", _FLOAT, x, far), _FLOAT, x, far)

    def place(column: str) -> tuple[str, str, str]:
        x = e.let(f"sitofp i64 {column} to float")
        k = term(c0, x, 2, unit)
        across, down = (
            bounded(one.binary("fdiv", _FLOAT, term(first, x, i, last), k))
            for i, (first, last) in enumerate(((a0, a2), (b0, b2)))
        )
        return across, down, one.compare("fcmp une", _FLOAT, k, one.constant(_FLOAT, 0))

    return place


# ---- beyond the image


def _mapped(e: Code, place: str, length: str, mode: str) -> str:
    """The place as the mode understands it; without the mode CONSTANT it is in the image then."""
    one = e.one
    if mode == "CONSTANT":
        return place
    last = e.let(f"sitofp i64 {e.sub(length, 1)} to float")
    if mode == "REFLECT":
        place = _mirrored(e, place, length)
    elif mode == "WRAP":
        place = _wrapped(e, place, length, last)
    zero = one.constant(_FLOAT, 0)
    place = one.select(one.compare("fcmp olt", _FLOAT, place, zero), _FLOAT, zero, place)
    return one.select(one.compare("fcmp ogt", _FLOAT, place, last), _FLOAT, last, place)


def _mirrored(e: Code, place: str, length: str) -> str:
    """Of the place modulo twice the length, what lies in the second half turned round."""
    one, twice = e.one, e.mul(length, 2)
    below = one.intrinsic("floor", _FLOAT, place)
    part = e.let(
        f"fsub double {e.let(f'fpext float {place} to double')}, {e.let(f'fpext float {below} to double')}"
    )
    whole = e.let(f"srem i64 {e.let(f'fptosi float {below} to i64')}, {twice}")
    lifted = e.let(f"select i1 {e.let(f'icmp slt i64 {whole}, 0')}, i64 {e.add(whole, twice)}, i64 {whole}")
    place = e.let(f"fadd double {e.let(f'sitofp i64 {lifted} to double')}, {part}")
    place = e.let(f"fptrunc double {place} to float")
    sizes = [e.let(f"sitofp i64 {each} to float") for each in (length, twice)]
    turned = one.binary("fsub", _FLOAT, sizes[1], place)
    turned = one.binary("fsub", _FLOAT, turned, one.constant(_FLOAT, 1))
    return one.select(one.compare("fcmp oge", _FLOAT, place, sizes[0]), _FLOAT, turned, place)


def _wrapped(e: Code, place: str, length: str, last: str) -> str:
    one, zero = e.one, e.one.constant(_FLOAT, 0)
    size = e.let(f"sitofp i64 {length} to float")

    def times_around(x: str) -> str:
        return one.intrinsic("trunc", _FLOAT, one.binary("fdiv", _FLOAT, x, last))

    more = one.binary("fadd", _FLOAT, times_around(one.negate(_FLOAT, place)), one.constant(_FLOAT, 1))
    before = one.binary("fadd", _FLOAT, place, one.binary("fmul", _FLOAT, size, more))
    after = one.binary("fsub", _FLOAT, place, one.binary("fmul", _FLOAT, size, times_around(place)))
    after = one.select(one.compare("fcmp ogt", _FLOAT, place, last), _FLOAT, after, place)
    found = one.select(one.compare("fcmp olt", _FLOAT, place, zero), _FLOAT, before, after)
    return one.select(e.let(f"icmp sgt i64 {length}, 1"), _FLOAT, found, zero)


def _rounded(e: Code, place: str) -> str:
    """The nearest whole number; of a half, the one further from zero."""
    one = e.one
    size = one.intrinsic("fabs", _FLOAT, place)
    size = one.intrinsic("floor", _FLOAT, one.binary("fadd", _FLOAT, size, one.constant(_FLOAT, 0.5)))
    return one.intrinsic("copysign", _FLOAT, size, place)


# ---- pixels


def _pixels(
    e: Code, a: dict[str, str], words: dict[str, str], image: str, kind: str
) -> Callable[[str, str], str]:
    """A function of a whole row and column, float: where the pixel is."""
    first_line = e.mul(image, words["height"])

    def pixel(down: str, across: str) -> str:
        row, column = (e.let(f"fptosi float {each} to i64") for each in (down, across))
        rows, columns = e.within(row, words["height"]), e.within(column, words["width"])
        number = e.add(e.mul(e.add(first_line, row), words["width"]), column)
        address = e.at(a["x"], e.mul(number, words["channels"]), kind)
        return e.let(f"select i1 {e.let(f'and i1 {rows}, {columns}')}, ptr {address}, ptr {a['fill']}")

    return pixel


def _copy(e: Code, dtype: str, channels: str, source: str, to: str) -> None:
    for some, c in each_channel(e, channels):
        store(some, dtype, load(some, dtype, source, c), to, c)


def _blend(
    e: Code,
    dtype: str,
    channels: str,
    pixel_of: Callable[[str, str], str],
    place: tuple[str, str],
    to: str,
) -> None:
    """Between the four pixels around a place, first along the rows."""
    one, unit = e.one, e.one.constant(_FLOAT, 1)
    first = [one.intrinsic("floor", _FLOAT, each) for each in place]
    second = [one.binary("fadd", _FLOAT, each, unit) for each in first]
    wide = "float64" if dtype == "float64" else _FLOAT
    parts = [
        one.convert(one.binary("fsub", _FLOAT, each, below), _FLOAT, wide)
        for each, below in zip(place, first)
    ]
    rests = [one.binary("fsub", wide, one.constant(wide, 1), part) for part in parts]
    sources = [pixel_of(down, across) for down in (first[0], second[0]) for across in (first[1], second[1])]
    for some, c in each_channel(e, channels):
        found = [some.convert(load(some, dtype, each, c), dtype, wide) for each in sources]
        top, bottom = (_mixed(some, wide, found[i], found[i + 1], rests[1], parts[1]) for i in (0, 2))
        result = _mixed(some, wide, top, bottom, rests[0], parts[0])
        store(some, dtype, some.convert(result, wide, dtype), to, c)


def _mixed(some: Emitter, wide: str, first: str, second: str, rest: str, part: str) -> str:
    shares = (in_all_lanes(some, KINDS[wide], each) for each in (rest, part))
    terms = [some.binary("fmul", wide, w, x) for w, x in zip(shares, (first, second))]
    return some.binary("fadd", wide, *terms)
