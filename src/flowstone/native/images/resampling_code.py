"""LLVM's text of images resampled along rows and columns: weighted sums of a few pixels each.

``rows_columns`` sums up lines and then, of each sum, its pixels, so that what lies between stays in the
nearest cache. ``columns`` and ``rows`` are its two halves. Threads share the resulting lines. Pixels of few
channels are gathered, a vector of elements at a time; those of many are read as they lie. Terms are added in
their order, each product rounded once with its sum, as ATen's `addcmul` does.
"""

from __future__ import annotations

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.structured import Code

__all__ = ["PLACES", "WORDS", "resampling_code"]

WORDS = (
    "threads", "batch", "height", "line", "rows", "columns", "channels", "new_line", "row_terms",
    "column_terms", "gathers", "apart",
)  # fmt: skip
"""The whole numbers of a call: `line` and `new_line` are elements, `gathers` is 1 for few channels,
`apart` how far the lines of `between` are apart."""
_ROWS = ("row_places", "row_weights")
_COLUMNS = ("column_places", "column_weights", "elements", "element_weights")
PLACES = {
    "rows_columns": ("x", "out", "between", *_ROWS, *_COLUMNS),
    "columns": ("x", "out", *_COLUMNS),
    "rows": ("x", "out", *_ROWS),
}
"""The addresses that each function takes after that of the numbers, in order. Places are int64, [rows or
columns, terms], weights float32; `elements` int32 [terms, new_line] says the same of a line's elements, and
`between` has a line for each thread."""


def resampling_code(lanes: int) -> str:
    """The text of the functions of `PLACES`."""
    declarations: dict[str, str] = {}
    parts = [text for name in PLACES for text in _texts(name, lanes, declarations)]
    return "\n".join([*declarations.values(), *parts])


def _texts(name: str, lanes: int, declarations: dict[str, str]) -> list[str]:
    e = Code(f"{name}_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES[name])
    words = words_of(e, a["words"], WORDS)
    total = e.variable(e.wide, e.number(0))
    height = words["height"] if name == "columns" else words["rows"]
    me, start, end = my_part(e, e.mul(words["batch"], height))
    between = e.at(a["between"], e.mul(me, words["apart"])) if name == "rows_columns" else ""
    with e.loop(start, end) as unit:
        if name == "columns":
            _columns(e, a, words, e.at(a["x"], e.mul(unit, words["line"])), unit, total)
        else:
            out = between or e.at(a["out"], e.mul(unit, words["line"]))
            _row(e, a, words, unit, out, total)
        if between:
            _columns(e, a, words, between, unit, total)
    public = Code(name, ["ptr a"], lanes, declarations, is_public=True)
    share(public, f"{name}_some")
    return [e.text(), public.text()]


def _row(e: Code, a: dict[str, str], words: dict[str, str], unit: str, out: str, total: str) -> None:
    """The sum of an image's lines that is this one of all results."""
    image, row = e.quotient(unit, words["rows"]), e.rest(unit, words["rows"])
    first, terms = e.mul(image, words["height"]), e.mul(row, words["row_terms"])
    places, weights = e.at(a["row_places"], terms, "i64"), e.at(a["row_weights"], terms)
    for i, masks in e.vectors(words["line"]):
        with e.loop(0, words["row_terms"]) as k:
            line = e.mul(e.add(first, e.get("i64", e.at(places, k, "i64"))), words["line"])
            value = e.read(e.at(a["x"], e.add(line, i)), masks[0])
            _add(e, total, k, value, e.splat(e.get("float", e.at(weights, k))))
        e.write(e.at(out, i), e.get(e.wide, total), masks[0])


def _columns(e: Code, a: dict[str, str], words: dict[str, str], line: str, unit: str, total: str) -> None:
    """The sums of a line's pixels."""
    out = e.at(a["out"], e.mul(unit, words["new_line"]))
    gathers = e.let(f"icmp ne i64 {words['gathers']}, 0")
    with e.when(gathers):
        for i, masks in e.vectors(words["new_line"]):
            with e.loop(0, words["column_terms"]) as k:
                at = e.add(e.mul(k, words["new_line"]), i)
                value = _gathered(e, line, e.at(a["elements"], at, "i32"), masks[0])
                _add(e, total, k, value, e.read(e.at(a["element_weights"], at), masks[0]))
            e.write(e.at(out, i), e.get(e.wide, total), masks[0])
    with e.when(e.let(f"xor i1 {gathers}, true")), e.loop(0, words["columns"]) as column:
        terms = e.mul(column, words["column_terms"])
        places, weights = e.at(a["column_places"], terms, "i64"), e.at(a["column_weights"], terms)
        pixel = e.at(out, e.mul(column, words["channels"]))
        for i, masks in e.vectors(words["channels"]):
            with e.loop(0, words["column_terms"]) as k:
                place = e.mul(e.get("i64", e.at(places, k, "i64")), words["channels"])
                value = e.read(e.at(line, e.add(place, i)), masks[0])
                _add(e, total, k, value, e.splat(e.get("float", e.at(weights, k))))
            e.write(e.at(pixel, i), e.get(e.wide, total), masks[0])


def _add(e: Code, total: str, k: str, value: str, weight: str) -> None:
    """Adds a term, or begins with it."""
    is_first = e.let(f"icmp eq i64 {k}, 0")
    more = e.fma(value, weight, e.get(e.wide, total))
    first = e.times(value, weight)
    e.set(e.wide, total, e.let(f"select i1 {is_first}, {e.wide} {first}, {e.wide} {more}"))


def _gathered(e: Code, address: str, numbers: str, mask: str) -> str:
    """The vector of a line's elements with these numbers, a vector of int32 in memory."""
    kind, bits, pointers = e.vector("i32"), e.vector("i1"), e.vector("ptr")
    name = f"llvm.masked.load.v{e.lanes}i32.p0"
    e.declarations[name] = f"declare {kind} @{name}(ptr, {bits}, {kind})"
    mask = mask or e.constant("bool", True)
    found = e.let(f"call {kind} @{name}(ptr align 4 {numbers}, {bits} {mask}, {kind} zeroinitializer)")
    places = e.let(f"getelementptr float, ptr {address}, {kind} {found}")
    name = f"llvm.masked.gather.v{e.lanes}f32.v{e.lanes}p0"
    e.declarations[name] = f"declare {e.wide} @{name}({pointers}, {bits}, {e.wide})"
    return e.let(
        f"call {e.wide} @{name}({pointers} align 4 {places}, {bits} {mask}, {e.wide} zeroinitializer)"
    )
