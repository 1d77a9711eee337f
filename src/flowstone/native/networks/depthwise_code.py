"""LLVM's text of convolutions channel by channel, and of their gradients by the images and the filter.

Images are [batch, height, width, channels] and results [batch, rows, columns, channels], float32; a filter is
[window_height, window_width, channels]. All three functions read and write rows of vectors of channels, as
they lie in memory; what pads the images is left out of the sums, never multiplied.

A convolution and its gradient by the images are one text, in which a target's sum takes its terms from a
source: ``target[q across_target + first_target] += source[q across + tap between] filter[first_tap + ...]``.
For several columns q at once a vector of the filter is read once. Windows that skip positions make of a row
of the images' gradient as many sequences of columns, each with every so many taps.
"""

from __future__ import annotations

from typing import NamedTuple

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.structured import Code

__all__ = ["PLACES", "TOGETHER", "WORDS", "depthwise_code"]

WORDS = (
    "threads", "batch", "height", "width", "channels", "rows", "columns", "window_height", "window_width",
    "down", "across", "above", "beside", "down_taps", "across_taps", "wide_channels",
)  # fmt: skip
"""The whole numbers of a call: `down` and `across` from one window to the next, `down_taps` and `across_taps`
from one tap to the next, of which one is 1; `above` and `beside` what pads the images; `wide_channels`: in
whole vectors."""
PLACES = {
    "convolve": ("images", "filter", "results"),
    "by_images": ("gradient", "filter", "results"),
    "by_filter": ("images", "gradient", "parts", "sums"),
}
"""The addresses that each function takes after that of the numbers, in order."""
TOGETHER = 64
"""Rows of results whose sums for the filter are added up before they are added to the others."""
_AT_ONCE = (8, 4, 1)  # columns
_TAPS = (4, 3, 2, 1)  # of a row of the filter whose sums are kept in registers


def depthwise_code(lanes: int) -> str:
    """The text of the functions of `PLACES`."""
    declarations: dict[str, str] = {}
    parts = [_line(lanes, declarations, count) for count in _AT_ONCE]
    parts += [_products(lanes, declarations, taps) for taps in _TAPS]
    parts += [write(lanes, declarations) for write in (_convolve_some, _by_images_some, _by_filter_some)]
    for name in PLACES:
        e = Code(name, ["ptr a"], lanes, declarations, is_public=True)
        share(e, f"{name}_some")
        parts.append(e.text())
    return "\n".join([*declarations.values(), *parts])


# ---- a convolution and its gradient by the images


class _Run(NamedTuple):
    """What a row of targets takes from rows of the source: addresses and whole numbers.

    `source`: of the first tap of the column 0, `filter` of that tap, `target` of the column 0; `rows` and
    `taps`: how many taps there are. Steps in elements: of the source from tap to tap down (`source_row`) and
    across (`source_tap`), and from column to column; likewise of the filter and the target.
    """

    source: str
    filter: str
    target: str
    rows: str
    taps: str
    source_row: str
    source_tap: str
    source_column: str
    filter_row: str
    filter_tap: str
    target_column: str
    channels: str


_KINDS = ("ptr", "ptr", "ptr", *["i64"] * (len(_Run._fields) - 3))


def _line(lanes: int, declarations: dict[str, str], count: int) -> str:
    """``line<count>``: so many columns of targets whose taps are all within the source."""
    parameters = [f"{kind} {name}" for kind, name in zip(_KINDS, _Run._fields)]
    e = Code(f"line{count}", parameters, lanes, declarations)
    r = _Run(*(f"%{name}" for name in _Run._fields))
    with e.loop(0, r.channels, lanes) as c:
        left = e.sub(r.channels, c)
        mask = e.mask(left)
        full = e.let(f"icmp sge i64 {left}, {lanes}")
        for condition, used in ((full, ""), (e.let(f"xor i1 {full}, true"), mask)):
            with e.when(condition):
                totals = [e.variable(e.wide, e.number(0.0)) for _ in range(count)]
                with e.loop(0, r.rows) as y:
                    line = e.at(e.at(r.source, e.mul(y, r.source_row)), c)
                    weights = e.at(e.at(r.filter, e.mul(y, r.filter_row)), c)
                    with e.loop(0, r.taps) as x:
                        weight = e.read(e.at(weights, e.mul(x, r.filter_tap)), used)
                        first = e.at(line, e.mul(x, r.source_tap))
                        for j, total in enumerate(totals):
                            value = e.read(e.at(first, e.mul(r.source_column, j)), used)
                            e.set(e.wide, total, e.fma(value, weight, e.get(e.wide, total)))
                for j, total in enumerate(totals):
                    place = e.at(e.at(r.target, e.mul(r.target_column, j)), c)
                    e.write(place, e.get(e.wide, total), used)
    return e.text()


def _call(e: Code, count: int, run: _Run) -> None:
    e.do(f"call void @line{count}({', '.join(f'{kind} {x}' for kind, x in zip(_KINDS, run))})")


class _Columns(NamedTuple):
    """Columns of targets: the first and the end; column q takes tap x from the column
    ``q step + start + x between`` of a source of so many columns, if there is one."""

    first: str
    end: str
    step: str
    start: str
    between: str
    limit: str


def _row(e: Code, columns: _Columns, run: _Run) -> None:
    """A row of targets; the addresses of `run` are those of the column 0 and of the source's column 0."""
    last = e.mul(e.sub(run.taps, 1), columns.between)
    low, high = e.least(last, 0), e.most(last, 0)
    inside = _ceiling(e, e.sub(0, e.add(columns.start, low)), columns.step)
    inside = e.least(e.most(columns.first, inside), columns.end)
    behind = _ceiling(e, e.sub(columns.limit, e.add(columns.start, high)), columns.step)
    behind = e.most(inside, e.least(behind, columns.end))
    _border(e, columns, run, (columns.first, inside))
    start = e.variable("i64", inside)
    for count in _AT_ONCE:
        here = e.get("i64", start)
        whole = e.add(here, e.mul(e.quotient(e.sub(behind, here), count), count))
        with e.loop(here, whole, count) as q:
            _call(e, count, _moved(e, columns, run, q))
        e.set("i64", start, whole)
    _border(e, columns, run, (behind, columns.end))


def _moved(e: Code, columns: _Columns, run: _Run, q: str) -> _Run:
    """The run from a column on."""
    source = e.at(run.source, e.mul(e.add(e.mul(q, columns.step), columns.start), run.channels))
    return run._replace(source=source, target=e.at(run.target, e.mul(q, run.target_column)))


def _border(e: Code, columns: _Columns, run: _Run, which: tuple[str, str]) -> None:
    """Columns of which some taps are outside: one after the other, with the taps that are within."""
    with e.loop(*which) as q:
        at = e.add(e.mul(q, columns.step), columns.start)
        first, end = _taps_within(e, at, columns.between, columns.limit, run.taps)
        moved = _moved(e, columns, run, q)
        source = e.at(moved.source, e.mul(first, run.source_tap))
        weights = e.at(run.filter, e.mul(first, run.filter_tap))
        _call(e, 1, moved._replace(source=source, filter=weights, taps=e.sub(end, first)))


def _taps_within(e: Code, at: str, between: str, limit: str, count: str) -> tuple[str, str]:
    """The taps x, from the first to the end, with 0 <= at + x between < limit; `between` may be negative."""
    forward = e.let(f"icmp sgt i64 {between}, 0")
    step = e.let(f"select i1 {forward}, i64 {between}, i64 {e.sub(0, between)}")
    # Backward, the same of the mirror image.
    at = e.let(f"select i1 {forward}, i64 {at}, i64 {e.sub(e.sub(limit, 1), at)}")
    first = e.least(e.most(_ceiling(e, e.sub(0, at), step), 0), count)
    return first, e.most(first, e.least(_ceiling(e, e.sub(limit, at), step), count))


def _ceiling(e: Code, a: str, b: str) -> str:
    """a / b rounded up, 0 if a is negative; b is positive."""
    return e.quotient(e.most(e.add(a, e.sub(b, 1)), 0), b)


def _convolve_some(lanes: int, declarations: dict[str, str]) -> str:
    """The results of a thread's rows."""
    e = Code("convolve_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["convolve"])
    words = words_of(e, a["words"], WORDS)
    channels, width = words["channels"], words["width"]
    line = e.mul(width, channels)
    _, start, end = my_part(e, e.mul(words["batch"], words["rows"]))
    with e.loop(start, end) as row:
        y0 = e.sub(e.mul(e.rest(row, words["rows"]), words["down"]), words["above"])
        taps = _taps_within(e, y0, words["down_taps"], words["height"], words["window_height"])
        image = e.mul(e.quotient(row, words["rows"]), words["height"])
        y = e.add(e.add(image, y0), e.mul(taps[0], words["down_taps"]))
        weights = e.mul(words["window_width"], channels)
        run = _Run(
            source=e.at(a["images"], e.mul(y, line)),
            filter=e.at(a["filter"], e.mul(taps[0], weights)),
            target=e.at(a["results"], e.mul(e.mul(row, words["columns"]), channels)),
            rows=e.sub(taps[1], taps[0]),
            taps=words["window_width"],
            source_row=e.mul(words["down_taps"], line),
            source_tap=e.mul(words["across_taps"], channels),
            source_column=e.mul(words["across"], channels),
            filter_row=weights,
            filter_tap=channels,
            target_column=channels,
            channels=channels,
        )
        start_column = e.sub(0, words["beside"])
        columns = _Columns("0", words["columns"], words["across"], start_column, words["across_taps"], width)
        _row(e, columns, run)
    return e.text()


def _by_images_some(lanes: int, declarations: dict[str, str]) -> str:
    """The gradient by a thread's rows of images.

    A row p of the padded images meets the taps ``p % down + m down`` in the rows ``p / down - m`` of results;
    where taps are apart, windows are not, and it meets all taps k in the rows ``p - k down_taps``.
    """
    e = Code("by_images_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["by_images"])
    words = words_of(e, a["words"], WORDS)
    channels, line = words["channels"], e.mul(words["columns"], words["channels"])
    weights = e.mul(words["window_width"], channels)
    _, start, end = my_part(e, e.mul(words["batch"], words["height"]))
    with e.loop(start, end) as row:
        p = e.add(e.rest(row, words["height"]), words["above"])
        phase, y0 = e.rest(p, words["down"]), e.quotient(p, words["down"])
        backward = e.sub(0, words["down_taps"])
        count = _ceiling(e, e.sub(words["window_height"], phase), words["down"])
        taps = _taps_within(e, y0, backward, words["rows"], count)
        image = e.mul(e.quotient(row, words["height"]), words["rows"])
        y = e.add(e.add(image, y0), e.mul(taps[0], backward))
        first = e.add(phase, e.mul(taps[0], words["down"]))
        with e.loop(0, words["across"]) as residue:
            # The columns c of the images with (c + beside) % across = residue, from the first one on.
            column = e.rest(e.sub(e.add(residue, e.mul(words["beside"], words["across"])), words["beside"]),
                            words["across"])  # fmt: skip
            at = e.add(column, words["beside"])
            across_weights = e.mul(words["across"], channels)
            run = _Run(
                source=e.at(a["gradient"], e.mul(y, line)),
                filter=e.at(a["filter"], e.add(e.mul(first, weights), e.mul(residue, channels))),
                target=e.at(a["results"], e.mul(e.add(e.mul(row, words["width"]), column), channels)),
                rows=e.sub(taps[1], taps[0]),
                taps=_ceiling(e, e.sub(words["window_width"], residue), words["across"]),
                source_row=e.mul(backward, line),
                source_tap=e.sub(0, e.mul(words["across_taps"], channels)),
                source_column=channels,
                filter_row=e.mul(words["down"], weights),
                filter_tap=across_weights,
                target_column=across_weights,
                channels=channels,
            )
            columns = _Columns(
                "0", _ceiling(e, e.sub(words["width"], column), words["across"]), "1",
                e.quotient(at, words["across"]), e.sub(0, words["across_taps"]), words["columns"],
            )  # fmt: skip
            _row(e, columns, run)
    return e.text()


# ---- the gradient by the filter


def _products(lanes: int, declarations: dict[str, str], taps: int) -> str:
    """``products<taps>``: adds up, for so many taps of a row of the filter, gradient times images over some
    columns; `step` and `tap` are elements of the images from column to column and from tap to tap."""
    parameters = [
        "ptr x",
        "ptr dy",
        "ptr sums",
        "i64 count",
        "i64 step",
        "i64 tap",
        "i64 channels",
        "i64 wide",
    ]
    e = Code(f"products{taps}", parameters, lanes, declarations)
    with e.loop(0, "%channels", lanes) as c:
        left = e.sub("%channels", c)
        mask = e.mask(left)
        full = e.let(f"icmp sge i64 {left}, {lanes}")
        places = [e.at("%sums", e.add(e.mul("%wide", k), c)) for k in range(taps)]
        for condition, used in ((full, ""), (e.let(f"xor i1 {full}, true"), mask)):
            with e.when(condition):
                totals = [e.variable(e.wide, e.read(place)) for place in places]
                x, dy = e.at("%x", c), e.at("%dy", c)
                with e.loop(0, "%count") as q:
                    factor = e.read(e.at(dy, e.mul(q, "%channels")), used)
                    first = e.at(x, e.mul(q, "%step"))
                    for k, total in enumerate(totals):
                        value = e.read(e.at(first, e.mul("%tap", k)), used)
                        e.set(e.wide, total, e.fma(value, factor, e.get(e.wide, total)))
                for place, total in zip(places, totals):
                    e.write(place, e.get(e.wide, total))
    return e.text()


def _by_filter_some(lanes: int, declarations: dict[str, str]) -> str:
    """The sums of a thread's rows of results [taps, channels], some rows' after the others'."""
    e = Code("by_filter_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["by_filter"])
    words = words_of(e, a["words"], WORDS)
    me, start, end = my_part(e, e.mul(words["batch"], words["rows"]))
    size = e.mul(e.mul(words["window_height"], words["window_width"]), words["wide_channels"])
    parts, sums = (e.at(a[name], e.mul(me, size)) for name in ("parts", "sums"))
    with e.loop(start, end, TOGETHER) as first:
        with e.loop(0, size, lanes) as i:
            e.write(e.at(parts, i), e.number(0.0))
        with e.loop(first, e.least(e.add(first, TOGETHER), end)) as row:
            _sum_row(e, a, words, row, parts)
        with e.loop(0, size, lanes) as i:
            place = e.at(sums, i)
            e.write(place, e.plus(e.read(place), e.read(e.at(parts, i))))
    return e.text()


def _sum_row(e: Code, a: dict[str, str], words: dict[str, str], row: str, parts: str) -> None:
    """Adds a row's products to the sums of all taps."""
    channels = words["channels"]
    y0 = e.sub(e.mul(e.rest(row, words["rows"]), words["down"]), words["above"])
    taps = _taps_within(e, y0, words["down_taps"], words["height"], words["window_height"])
    image = e.mul(e.quotient(row, words["rows"]), words["height"])
    gradient = e.at(a["gradient"], e.mul(e.mul(row, words["columns"]), channels))
    with e.loop(*taps) as y:
        line = e.add(e.add(image, y0), e.mul(y, words["down_taps"]))
        line = e.at(a["images"], e.mul(e.mul(line, words["width"]), channels))
        weights = e.at(parts, e.mul(e.mul(y, words["window_width"]), words["wide_channels"]))
        start = e.variable("i64", "0")
        for count in _TAPS:
            here = e.get("i64", start)
            left = e.sub(words["window_width"], here)
            whole = e.add(here, e.mul(e.quotient(left, count), count))
            with e.loop(here, whole, count) as x:
                _sum_taps(e, words, (line, gradient, weights), x, count)
            e.set("i64", start, whole)


def _sum_taps(e: Code, words: dict[str, str], places: tuple[str, str, str], x: str, count: int) -> None:
    """So many taps from x on: together where all are within the image, each alone beside it."""
    each = [_columns_of(e, words, e.add(x, k)) for k in range(count)]
    inside, behind = each[0][0], e.most(each[0][0], each[-1][1])
    _sum_columns(e, words, places, x, count, (inside, behind))
    if count == 1:
        return
    for k, (first, end) in enumerate(each):
        tap = e.add(x, k)
        _sum_columns(e, words, places, tap, 1, (first, e.least(inside, end)))
        _sum_columns(e, words, places, tap, 1, (e.most(behind, first), end))


def _columns_of(e: Code, words: dict[str, str], x: str) -> tuple[str, str]:
    """The columns of results, from the first to the end, whose tap x is within the image."""
    at = e.sub(e.mul(x, words["across_taps"]), words["beside"])
    first = _ceiling(e, e.sub(0, at), words["across"])
    return first, e.least(_ceiling(e, e.sub(words["width"], at), words["across"]), words["columns"])


def _sum_columns(
    e: Code,
    words: dict[str, str],
    places: tuple[str, str, str],
    x: str,
    count: int,
    which: tuple[str, str],
) -> None:
    """Adds up the products of some columns for so many taps from x on."""
    (line, gradient, weights), (first, end) = places, which
    channels = words["channels"]
    with e.when(e.let(f"icmp slt i64 {first}, {end}")):
        column = e.add(e.mul(first, words["across"]), e.mul(x, words["across_taps"]))
        source = e.at(line, e.mul(e.sub(column, words["beside"]), channels))
        dy = e.at(gradient, e.mul(first, channels))
        sums = e.at(weights, e.mul(x, words["wide_channels"]))
        step, tap = (e.mul(words[name], channels) for name in ("across", "across_taps"))
        e.do(f"call void @products{count}(ptr {source}, ptr {dy}, ptr {sums}, i64 {e.sub(end, first)}, "
             f"i64 {step}, i64 {tap}, i64 {channels}, i64 {words['wide_channels']})")  # fmt: skip
