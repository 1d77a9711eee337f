"""LLVM's text of max pooling that keeps in a byte where in its window each maximum was, and of its gradient.

Images are [batch, height, width, channels], float32. As in ATen, the first of equal numbers is the maximum,
and NaN is larger than all. A position's gradient is the sum over the windows that it is the maximum of, in
the order of the windows, so that it has ATen's bits; it needs the bytes, but not the images.
"""

from __future__ import annotations

from flowstone.native.code_library import my_part, places_of, share, words_of
from flowstone.native.structured import Code

__all__ = ["PLACES", "WORDS", "pool_code"]

WORDS = (
    "threads", "batch", "height", "width", "channels", "rows", "columns", "window_height", "window_width",
    "down", "across", "above", "beside", "all_rows", "all_columns",
)  # fmt: skip
"""The whole numbers of a call: `rows` and `columns` of the results; `down` and `across` from one window to
the next; `above` and `beside` what pads the images; some of all rows and columns have no result."""
PLACES = {
    "pool": ("images", "maxima", "bytes"),
    "spread": ("bytes", "gradient", "results"),
    "put": ("bytes", "gradient", "results"),
}
"""The addresses that each function takes after that of the numbers, in order. ``put`` is ``spread`` for
windows side by side, of which every position is in one."""
_LOWEST = "0xFFF0000000000000"


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
            with e.loop(0, channels, lanes) as c:
                left = e.sub(channels, c)
                mask = e.mask(left)
                highest, at = _maximum(e, words, rows, columns, e.at(first, c), mask)
                target = e.add(to, c)
                _write(
                    e, e.at(a["maxima"], target), e.at(a["bytes"], target, "i8"), (highest, at), mask, left
                )
    return e.text()


def _maximum(
    e: Code, words: dict[str, str], rows: tuple[str, str], columns: tuple[str, str], first: str, mask: str
) -> tuple[str, str]:
    """The largest numbers of a window, and where in it they are, as i32."""
    places = e.vector("i32")
    start = e.add(e.mul(rows[0], words["window_width"]), columns[0])
    highest = e.variable(e.wide, e.splat(f"{_LOWEST}"))
    at = e.variable(places, _everywhere(e, start, "i32"))
    with e.loop(*rows) as y, e.loop(*columns) as x:
        value = e.read(e.at(first, e.mul(e.add(e.mul(y, words["width"]), x), words["channels"])), mask)
        before = e.get(e.wide, highest)
        larger = e.compare("fcmp ogt", "float32", value, before)
        strange = e.compare("fcmp uno", "float32", value, value)
        wins = e.let(f"or {e.vector('i1')} {larger}, {strange}")
        e.set(e.wide, highest, e.select(wins, "float32", value, before))
        here = _everywhere(e, e.add(e.mul(y, words["window_width"]), x), "i32")
        chosen = f"{e.vector('i1')} {wins}, {places} {here}, {places} {e.get(places, at)}"
        e.set(places, at, e.let(f"select {chosen}"))
    return e.get(e.wide, highest), e.get(places, at)


def _write(e: Code, maxima: str, bytes_: str, found: tuple[str, str], mask: str, left: str) -> None:
    narrow, bits = e.vector("i8"), e.vector("i1")
    highest, at = found
    at = e.let(f"trunc {e.vector('i32')} {at} to {narrow}")
    full = e.let(f"icmp sge i64 {left}, {e.lanes}")
    with e.when(full):
        e.write(maxima, highest)
        e.do(f"store {narrow} {at}, ptr {bytes_}, align 1")
    with e.when(e.let(f"xor i1 {full}, true")):
        e.write(maxima, highest, mask)
        name = f"llvm.masked.store.v{e.lanes}i8.p0"
        e.declarations[name] = f"declare void @{name}({narrow}, ptr, {bits})"
        e.do(f"call void @{name}({narrow} {at}, ptr align 1 {bytes_}, {bits} {mask})")


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
            with e.loop(0, channels, lanes) as c:
                left = e.sub(channels, c)
                mask = e.mask(left)
                total = e.variable(e.wide, e.number(0.0))
                with e.loop(*rows) as i, e.loop(*columns) as j:
                    within = e.sub(y, e.mul(i, words["down"])), e.sub(x, e.mul(j, words["across"]))
                    place = e.add(e.mul(within[0], words["window_width"]), within[1])
                    source = e.add(e.mul(e.add(first, i), words["columns"]), j)
                    source = e.add(e.mul(source, channels), c)
                    value = _where(e, a, source, place, mask)
                    e.set(e.wide, total, e.plus(e.get(e.wide, total), value))
                e.write_masked(e.at(a["results"], e.add(to, c)), e.get(e.wide, total), mask, left)
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
            exists = e.let(f"and i1 {e.within(row, words['rows'])}, {e.within(column, words['columns'])}")
            with e.loop(0, channels, lanes) as c:
                left = e.sub(channels, c)
                mask, seen = e.mask(left), e.mask(e.let(f"select i1 {exists}, i64 {left}, i64 0"))
                found, dy = (
                    _bytes(e, a, e.add(here, c), seen),
                    e.read(e.at(a["gradient"], e.add(here, c)), seen),
                )
                first = e.at(a["results"], e.add(to, c))
                with e.loop(*rows) as y, e.loop(*columns) as x:
                    place = _everywhere(e, e.add(e.mul(y, words["window_width"]), x), "i8")
                    wins = e.let(f"icmp eq {e.vector('i8')} {found}, {place}")
                    target = e.at(first, e.mul(e.add(e.mul(y, words["width"]), x), channels))
                    value = e.select(wins, "float32", dy, e.number(0.0))
                    e.write_masked(target, value, mask, left)
    return e.text()


def _windows(e: Code, i: str, size: str, step: str, count: str) -> tuple[str, str]:
    """The windows in one direction that position i of the padded image is in: the first and the end."""
    before = e.most(0, e.add(e.sub(i, size), 1))
    return e.quotient(e.add(before, e.sub(step, 1)), step), e.least(count, e.add(e.quotient(i, step), 1))


def _where(e: Code, a: dict[str, str], source: str, place: str, mask: str) -> str:
    """The gradient of maxima that were at this place of their windows, 0 of others."""
    narrow, found = e.vector("i8"), _bytes(e, a, source, mask)
    here = e.let(f"icmp eq {narrow} {found}, {_everywhere(e, place, 'i8')}")
    value = e.read(e.at(a["gradient"], source), mask)
    return e.select(here, "float32", value, e.number(0.0))


def _bytes(e: Code, a: dict[str, str], source: str, mask: str) -> str:
    """The bytes from this one on."""
    narrow, bits = e.vector("i8"), e.vector("i1")
    name = f"llvm.masked.load.v{e.lanes}i8.p0"
    e.declarations[name] = f"declare {narrow} @{name}(ptr, {bits}, {narrow})"
    address = e.at(a["bytes"], source, "i8")
    return e.let(f"call {narrow} @{name}(ptr align 1 {address}, {bits} {mask}, {narrow} zeroinitializer)")


def _everywhere(e: Code, number: str, kind: str) -> str:
    """The vector of one whole number."""
    vector = e.vector(kind)
    first = e.let(f"insertelement {vector} poison, {kind} {e.let(f'trunc i64 {number} to {kind}')}, i32 0")
    return e.let(f"shufflevector {vector} {first}, {vector} poison, <{e.lanes} x i32> zeroinitializer")
