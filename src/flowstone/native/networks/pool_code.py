"""LLVM's text of max pooling that keeps in a byte where in its window each maximum was, and of its gradient.

Images are [batch, height, width, channels], float32. As in TensorFlow the maximum passes over NaN, and is
the lowest number where there is no other; its place is the first of equal numbers, in a window that starts
with NaN the first of all. A position's gradient is the sum over the windows that it is the maximum of, in
the order of the windows, so that it has ATen's bits; it needs the bytes, but not the images.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.structured import Code

__all__ = ["PLACES", "WORDS", "pool_code"]

WORDS = (
    "threads", "batch", "height", "width", "channels", "rows", "columns", "window_height", "window_width",
    "down", "across", "above", "beside", "all_rows", "all_columns", "keeps_nan",
)  # fmt: skip
"""The whole numbers of a call: `rows` and `columns` of the results; `down` and `across` from one window to
the next; `above` and `beside` what pads the images; some of all rows and columns have no result; `keeps_nan`:
1 if windows of nothing but NaN have that, and such of minus infinity that."""
PLACES = {
    "pool": ("images", "maxima", "bytes"),
    "spread": ("bytes", "gradient", "results"),
    "put": ("bytes", "gradient", "results"),
}
"""The addresses that each function takes after that of the numbers, in order. ``put`` is ``spread`` for
windows side by side, of which every position is in one."""
_TOGETHER = 4  # vectors, for which a window's positions are found once
_INFINITE, _LOWEST, _NAN = "0xFFF0000000000000", "0xC7EFFFFFE0000000", "0x7FF8000000000000"


def pool_code(lanes: int) -> str:
    """The text of the functions of `PLACES`."""
    declarations: dict[str, str] = {}
    parts = [write(lanes, declarations) for write in (_pool_some, _spread_some, _put_some)]
    for name in PLACES:
        e = Code(name, ["ptr a"], lanes, declarations, is_public=True)
        share(e, f"{name}_some")
        parts.append(e.text())
    return "\n".join([*declarations.values(), *parts])


def _pool_some(lanes: int, declarations: dict[str, str]) -> str:
    """The maxima of a thread's rows of windows."""
    e = Code("pool_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["pool"])
    words = words_of(e, a["words"], WORDS)
    channels = words["channels"]
    keeps = e.let(f"icmp ne i64 {words['keeps_nan']}, 0")
    least, nothing = (
        e.splat(e.let(f"select i1 {keeps}, float {kept}, float {_LOWEST}")) for kept in (_INFINITE, _NAN)
    )
    _, start, end = my_part(e, e.mul(words["batch"], words["rows"]))
    with e.loop(start, end) as row:
        image = e.quotient(row, words["rows"])
        y0 = e.sub(e.mul(e.rest(row, words["rows"]), words["down"]), words["above"])
        rows = e.most(0, e.sub(0, y0)), e.least(words["window_height"], e.sub(words["height"], y0))
        line = e.add(e.mul(image, words["height"]), y0)
        with e.loop(0, words["columns"]) as column:
            x0 = e.sub(e.mul(column, words["across"]), words["beside"])
            columns = e.most(0, e.sub(0, x0)), e.least(words["window_width"], e.sub(words["width"], x0))
            first = e.at(a["images"], e.mul(e.add(e.mul(line, words["width"]), x0), channels))
            to = e.mul(e.add(e.mul(row, words["columns"]), column), channels)
            for c, masks in e.vectors(channels, _TOGETHER):
                found = _maxima(e, words, rows, columns, e.at(first, c), masks, least, nothing)
                target = e.add(to, c)
                for i, mask in enumerate(masks):
                    here = e.add(target, i * lanes)
                    e.write(e.at(a["maxima"], here), found[i][0], mask)
                    _write_bytes(e, e.at(a["bytes"], here, "i8"), found[i][1], mask)
    return e.text()


def _maxima(
    e: Code,
    words: dict[str, str],
    rows: tuple[str, str],
    columns: tuple[str, str],
    first: str,
    masks: Sequence[str],
    least: str,
    nothing: str,
) -> list[tuple[str, str]]:
    """The largest numbers of a window, and where in it they are, as i32; for vectors side by side.

    `least`: below what no maximum is; `nothing`: what windows of NaN have. The place of a NaN that a window
    begins with is the first, as in TensorFlow: nothing is larger. Only then is its maximum looked for again.
    """
    places, bits = e.vector("i32"), e.vector("i1")
    start = e.add(e.mul(rows[0], words["window_width"]), columns[0])
    corner = e.at(first, e.mul(e.add(e.mul(rows[0], words["width"]), columns[0]), words["channels"]))
    at_corner = [e.read(e.at(corner, i * e.lanes), mask) for i, mask in enumerate(masks)]
    highest = [e.variable(e.wide, value) for value in at_corner]
    at = [e.variable(places, _everywhere(e, start, "i32")) for _ in masks]
    for y, x, source in _positions(e, words, rows, columns, first):
        here = _everywhere(e, e.add(e.mul(y, words["window_width"]), x), "i32")
        for i, mask in enumerate(masks):
            wins, value = _larger(e, e.at(source, i * e.lanes), mask, highest[i])
            e.set(e.wide, highest[i], value)
            chosen = f"{bits} {wins}, {places} {here}, {places} {e.get(places, at[i])}"
            e.set(places, at[i], e.let(f"select {chosen}"))
    strange = [e.compare("fcmp uno", "float32", value, value) for value in at_corner]
    any_strange = strange[0]
    for each in strange[1:]:
        any_strange = e.let(f"or {bits} {any_strange}, {each}")
    e.declarations["any"] = f"declare i1 @llvm.vector.reduce.or.v{e.lanes}i1({bits})"
    with e.when(e.let(f"call i1 @llvm.vector.reduce.or.v{e.lanes}i1({bits} {any_strange})")):
        for each in highest:
            e.set(e.wide, each, e.splat(_INFINITE))
        for _, _, source in _positions(e, words, rows, columns, first):
            for i, mask in enumerate(masks):
                e.set(e.wide, highest[i], _larger(e, e.at(source, i * e.lanes), mask, highest[i])[1])
        for one, each in zip(strange, highest):
            value = e.get(e.wide, each)
            is_none = e.compare("fcmp oeq", "float32", value, e.splat(_INFINITE))
            e.set(e.wide, each, e.select(e.let(f"and {bits} {one}, {is_none}"), "float32", nothing, value))
    found = []
    for value, place in zip((e.get(e.wide, each) for each in highest), at):
        is_below = e.compare("fcmp olt", "float32", value, least)
        found.append((e.select(is_below, "float32", least, value), e.get(places, place)))
    return found


def _positions(
    e: Code, words: dict[str, str], rows: tuple[str, str], columns: tuple[str, str], first: str
) -> Iterator[tuple[str, str, str]]:
    """What is written for it runs for each position of a window: the row, the column, and the address."""
    with e.loop(*rows) as y, e.loop(*columns) as x:
        yield y, x, e.at(first, e.mul(e.add(e.mul(y, words["width"]), x), words["channels"]))


def _larger(e: Code, source: str, mask: str, highest: str) -> tuple[str, str]:
    """Whether the numbers there are larger than those of a variable, and the larger ones."""
    value, before = e.read(source, mask), e.get(e.wide, highest)
    wins = e.compare("fcmp ogt", "float32", value, before)
    return wins, e.select(wins, "float32", value, before)


def _write_bytes(e: Code, address: str, places: str, mask: str) -> None:
    narrow, bits = e.vector("i8"), e.vector("i1")
    places = e.let(f"trunc {e.vector('i32')} {places} to {narrow}")
    if not mask:
        e.do(f"store {narrow} {places}, ptr {address}, align 1")
        return
    name = f"llvm.masked.store.v{e.lanes}i8.p0"
    e.declarations[name] = f"declare void @{name}({narrow}, ptr, {bits})"
    e.do(f"call void @{name}({narrow} {places}, ptr align 1 {address}, {bits} {mask})")


def _spread_some(lanes: int, declarations: dict[str, str]) -> str:
    """The gradient of a thread's rows of images."""
    e = Code("spread_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["spread"])
    words = words_of(e, a["words"], WORDS)
    channels = words["channels"]
    _, start, end = my_part(e, e.mul(words["batch"], words["height"]))
    with e.loop(start, end) as line:
        y = e.add(e.rest(line, words["height"]), words["above"])
        rows = _windows(e, y, words["window_height"], words["down"], words["rows"])
        first = e.mul(e.quotient(line, words["height"]), words["rows"])
        with e.loop(0, words["width"]) as column:
            x = e.add(column, words["beside"])
            columns = _windows(e, x, words["window_width"], words["across"], words["columns"])
            to = e.mul(e.add(e.mul(line, words["width"]), column), channels)
            for c, masks in e.vectors(channels, _TOGETHER):
                totals = [e.variable(e.wide, e.number(0.0)) for _ in masks]
                with e.loop(*rows) as i, e.loop(*columns) as j:
                    within = e.sub(y, e.mul(i, words["down"])), e.sub(x, e.mul(j, words["across"]))
                    place = e.add(e.mul(within[0], words["window_width"]), within[1])
                    source = e.add(e.mul(e.add(first, i), words["columns"]), j)
                    source, place = e.add(e.mul(source, channels), c), _everywhere(e, place, "i8")
                    for k, mask in enumerate(masks):
                        value = _where(e, a, e.add(source, k * lanes), place, mask)
                        e.set(e.wide, totals[k], e.plus(e.get(e.wide, totals[k]), value))
                for k, mask in enumerate(masks):
                    target = e.at(a["results"], e.add(e.add(to, c), k * lanes))
                    e.write(target, e.get(e.wide, totals[k]), mask)
    return e.text()


def _put_some(lanes: int, declarations: dict[str, str]) -> str:
    """The gradient of what a thread's rows of windows see."""
    e = Code("put_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["put"])
    words = words_of(e, a["words"], WORDS)
    channels = words["channels"]
    _, start, end = my_part(e, e.mul(words["batch"], words["all_rows"]))
    with e.loop(start, end) as unit:
        image, row = e.quotient(unit, words["all_rows"]), e.rest(unit, words["all_rows"])
        y0 = e.sub(e.mul(row, words["down"]), words["above"])
        rows = e.most(0, e.sub(0, y0)), e.least(words["window_height"], e.sub(words["height"], y0))
        line = e.add(e.mul(image, words["height"]), y0)
        source = e.mul(e.add(e.mul(image, words["rows"]), row), words["columns"])
        with e.loop(0, words["all_columns"]) as column:
            x0 = e.sub(e.mul(column, words["across"]), words["beside"])
            columns = e.most(0, e.sub(0, x0)), e.least(words["window_width"], e.sub(words["width"], x0))
            to = e.mul(e.add(e.mul(line, words["width"]), x0), channels)
            here = e.mul(e.add(source, column), channels)

            def positions(c: str) -> Iterator[tuple[str, str]]:
                """Of each position of the window, what a byte there says and where its gradient is."""
                first = e.at(a["results"], e.add(to, c))
                with e.loop(*rows) as y, e.loop(*columns) as x:
                    place = _everywhere(e, e.add(e.mul(y, words["window_width"]), x), "i8")
                    yield place, e.at(first, e.mul(e.add(e.mul(y, words["width"]), x), channels))

            exists = e.let(f"and i1 {e.within(row, words['rows'])}, {e.within(column, words['columns'])}")
            with e.when(exists):
                for c, (mask,) in e.vectors(channels):
                    found, dy = (
                        _bytes(e, a, e.add(here, c), mask),
                        e.read(e.at(a["gradient"], e.add(here, c)), mask),
                    )
                    for place, target in positions(c):
                        wins = e.let(f"icmp eq {e.vector('i8')} {found}, {place}")
                        e.write(target, e.select(wins, "float32", dy, e.number(0.0)), mask)
            with e.when(e.let(f"xor i1 {exists}, true")):
                for c, (mask,) in e.vectors(channels):
                    for _, target in positions(c):
                        e.write(target, e.number(0.0), mask)
    return e.text()


def _windows(e: Code, i: str, size: str, step: str, count: str) -> tuple[str, str]:
    """The windows in one direction that position i of the padded image is in: the first and the end."""
    before = e.most(0, e.add(e.sub(i, size), 1))
    return e.quotient(e.add(before, e.sub(step, 1)), step), e.least(count, e.add(e.quotient(i, step), 1))


def _where(e: Code, a: dict[str, str], source: str, place: str, mask: str) -> str:
    """The gradient of maxima that were at this place of their windows, 0 of others."""
    here = e.let(f"icmp eq {e.vector('i8')} {_bytes(e, a, source, mask)}, {place}")
    value = e.read(e.at(a["gradient"], source), mask)
    return e.select(here, "float32", value, e.number(0.0))


def _bytes(e: Code, a: dict[str, str], source: str, mask: str) -> str:
    """The bytes from this one on."""
    narrow, bits = e.vector("i8"), e.vector("i1")
    address = e.at(a["bytes"], source, "i8")
    if not mask:
        return e.let(f"load {narrow}, ptr {address}, align 1")
    name = f"llvm.masked.load.v{e.lanes}i8.p0"
    e.declarations[name] = f"declare {narrow} @{name}(ptr, {bits}, {narrow})"
    return e.let(f"call {narrow} @{name}(ptr align 1 {address}, {bits} {mask}, {narrow} zeroinitializer)")


def _everywhere(e: Code, number: str, kind: str) -> str:
    """The vector of one whole number."""
    vector = e.vector(kind)
    first = e.let(f"insertelement {vector} poison, {kind} {e.let(f'trunc i64 {number} to {kind}')}, i32 0")
    return e.let(f"shufflevector {vector} {first}, {vector} poison, <{e.lanes} x i32> zeroinitializer")
