"""LLVM's text of sums of products over windows of small images: convolutions, and both their gradients.

    results[place[r] + …] = sum over terms t of windows[start[r] + offset[t]] * factors[t], and a bias

`windows` is a copy of the images with zeros around them, in which neighbouring rows r of a block lie side by
side; each factor is a row of numbers, one for each column of the result. A block has so many rows, and
columns, that all its sums stay in registers. `direct_tables.py` says where everything lies, for any geometry:
the text knows no images.

Terms that are many are added up some at a time. What is not finite is noted, for zeros around the images
times infinity are no numbers.
"""

from __future__ import annotations

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.structured import Code

__all__ = ["PLACES", "TOGETHER", "WORDS", "direct_code", "rows_of_blocks"]

WORDS = (
    "threads", "image_rows", "rows", "width", "channels", "image_step", "row_step", "first", "channel_step",
    "size", "taps", "tap_rows", "tap_columns", "columns", "vectors", "row_gap",
    "biased", "rectified", "strange",
)  # fmt: skip
"""The whole numbers of a call. Of the copy: `rows` of `width` positions with `channels` of `image_rows`
images go to `first` + `image_step` image + `row_step` row + the column's place + `channel_step` channel, in
an array of `size` elements. Of factors that are turned around: so many `taps` [tap_rows, tap_columns], 0
where none are. Of the result: its `columns`, `vectors` of them at once, and how far its rows are apart;
whether a bias is added, and what is negative made zero. From `strange` on a number a thread."""
PLACES = {
    "windows": ("images", "factors", "results", "copy", "turned", "bias", "places", "taps", "terms", "blocks",
                "ranges"),
}  # fmt: skip
"""The addresses that the function takes after that of the numbers, in order: `places` of columns and `taps`
say what goes where; `terms` are offsets; a block is (start, place, first term, end of terms); `ranges` say
which blocks have how many rows."""
TOGETHER = 1024
"""Terms that are added up before they are added to the others."""


def rows_of_blocks(lanes: int, vectors: int) -> int:
    """The most rows of a block of so many vectors."""
    return {1: 14, 2: 12, 3: 8, 4: 6}[vectors] if lanes == 16 else {1: 8, 2: 6, 3: 4, 4: 3}[vectors]


def direct_code(lanes: int) -> str:
    """The text of the function of `PLACES`."""
    declarations: dict[str, str] = {}
    parts = []
    for vectors in range(1, 5):
        for rows in range(1, rows_of_blocks(lanes, vectors) + 1):
            parts.append(_block(lanes, declarations, vectors, rows))
    parts += [_copy(lanes, declarations), _turn(lanes, declarations), _some(lanes, declarations)]
    e = Code("windows", ["ptr a"], lanes, declarations, is_public=True)
    e.do("call void @copy(ptr %a)")
    e.do("call void @turn(ptr %a)")
    share(e, "some")
    return "\n".join([*declarations.values(), *parts, e.text()])


def _copy(lanes: int, declarations: dict[str, str]) -> str:
    """Writes the copy, if there is one."""
    e = Code("copy", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["windows"])
    words = words_of(e, a["words"], WORDS)
    width, channels = words["width"], words["channels"]
    for i, masks in e.vectors(words["size"]):
        e.write(e.at(a["copy"], i), e.number(0.0), masks[0])
    is_copied = e.let(f"icmp sgt i64 {words['size']}, 0")
    images = e.let(f"select i1 {is_copied}, i64 {words['image_rows']}, i64 0")
    with e.loop(0, images) as image, e.loop(0, words["rows"]) as row:
        source = e.mul(e.mul(e.add(e.mul(image, words["rows"]), row), width), channels)
        target = e.add(e.mul(image, words["image_step"]), e.mul(row, words["row_step"]))
        start = e.at(a["copy"], e.add(target, words["first"]))
        with e.loop(0, width) as column:
            read = e.at(a["images"], e.add(source, e.mul(column, channels)))
            place = e.at(start, e.word(e.at(a["places"], column, "i64"), 0))
            _copy_channels(e, read, place, words)
    return e.text()


def _copy_channels(e: Code, read: str, place: str, words: dict[str, str]) -> None:
    """The channels of a position, side by side or apart."""
    beside = e.let(f"icmp eq i64 {words['channel_step']}, 1")
    with e.when(beside):
        for i, masks in e.vectors(words["channels"]):
            e.write(e.at(place, i), e.read(e.at(read, i), masks[0]), masks[0])
    with e.when(e.let(f"xor i1 {beside}, true")), e.loop(0, words["channels"]) as i:
        value = e.get("float", e.at(read, i))
        e.set("float", e.at(place, e.mul(i, words["channel_step"])), value)


def _turn(lanes: int, declarations: dict[str, str]) -> str:
    """Writes the matrices of the filter that `taps` names, each turned around."""
    e = Code("turn", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["windows"])
    words = words_of(e, a["words"], WORDS)
    rows, columns = words["tap_rows"], words["tap_columns"]
    with e.loop(0, words["taps"]) as tap:
        source = e.at(a["factors"], e.word(e.at(a["taps"], tap, "i64"), 0))
        target = e.at(a["turned"], e.mul(tap, e.mul(rows, columns)))
        with e.loop(0, columns) as column, e.loop(0, rows) as row:
            value = e.get("float", e.at(source, e.add(e.mul(row, columns), column)))
            e.set("float", e.at(target, e.add(e.mul(column, rows), row)), value)
    return e.text()


_PARAMETERS = (
    "ptr windows", "ptr factors", "ptr results", "ptr terms", "i64 count", "i64 columns", "i64 row_gap",
    "i64 left", "ptr bias", "i64 rectified", "ptr strange",
)  # fmt: skip
_ARGUMENTS = [each.split() for each in _PARAMETERS]


def _block(lanes: int, declarations: dict[str, str], vectors: int, rows: int) -> str:
    """``block<vectors>_<rows>``: so many rows and vectors of the result, of which the last ones are masked;
    `left`: how many columns there are from the first one on."""
    e = Code(f"block{vectors}_{rows}", _PARAMETERS, lanes, declarations)
    masks = [e.mask(e.sub("%left", lanes * v)) for v in range(vectors)]
    cells = [(r, v) for r in range(rows) for v in range(vectors)]
    with e.loop(0, "%count", TOGETHER) as first:
        sums = {cell: e.variable(e.wide, e.number(0.0)) for cell in cells}
        with e.loop(first, e.least(e.add(first, TOGETHER), "%count")) as t:
            start = e.at("%windows", e.word(e.at("%terms", t, "i64"), 0))
            line = e.at("%factors", e.mul(t, "%columns"))
            right = [e.read(e.at(line, lanes * v), masks[v]) for v in range(vectors)]
            for r in range(rows):
                left = e.splat(e.get("float", e.at(start, r)))
                for v in range(vectors):
                    total = sums[r, v]
                    e.set(e.wide, total, e.fma(left, right[v], e.get(e.wide, total)))
        again = e.let(f"icmp sgt i64 {first}, 0")
        with e.when(again):
            for (r, v), total in sums.items():
                before = e.read(_place(e, r, v), masks[v])
                e.set(e.wide, total, e.plus(before, e.get(e.wide, total)))
        is_end = e.let(f"icmp sge i64 {e.add(first, TOGETHER)}, %count")
        with e.when(is_end):
            _finish(e, sums, masks)
        for (r, v), total in sums.items():
            e.write(_place(e, r, v), e.get(e.wide, total), masks[v])
    return e.text()


def _finish(e: Code, sums: dict[tuple[int, int], str], masks: list[str]) -> None:
    """Notes what is strange of a block's sums, and adds what comes after them."""
    strange = e.get(e.wide, "%strange")
    for total in sums.values():
        strange = e.fma(e.get(e.wide, total), e.number(0.0), strange)
    e.set(e.wide, "%strange", strange)
    with e.when(e.let("icmp ne ptr %bias, null")):
        added = [e.read(e.at("%bias", e.lanes * v), mask) for v, mask in enumerate(masks)]
        for (_, v), total in sums.items():
            e.set(e.wide, total, e.plus(e.get(e.wide, total), added[v]))
    with e.when(e.let("icmp ne i64 %rectified, 0")):
        for total in sums.values():
            value = e.get(e.wide, total)
            negative = e.let(f"fcmp olt {e.wide} {value}, {e.number(0.0)}")
            chosen = e.let(f"select {e.vector('i1')} {negative}, {e.wide} {e.number(0.0)}, {e.wide} {value}")
            e.set(e.wide, total, chosen)


def _place(e: Code, row: int, vector: int) -> str:
    """Where a block's row and vector of the result lie."""
    return e.at(e.at("%results", e.mul("%row_gap", row)), e.lanes * vector)


def _some(lanes: int, declarations: dict[str, str]) -> str:
    """This thread's blocks."""
    e = Code("some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["windows"])
    words = words_of(e, a["words"], WORDS)
    strange = e.array("float", lanes)
    e.set(e.wide, strange, e.number(0.0))
    me = "0"
    for vectors in range(1, 5):
        with e.when(e.let(f"icmp eq i64 {words['vectors']}, {vectors}")):
            for rows in range(1, rows_of_blocks(lanes, vectors) + 1):
                first, end = (e.word(a["ranges"], i) for i in (rows - 1, rows))
                with e.when(e.let(f"icmp slt i64 {first}, {end}")):
                    me, start, stop = my_part(e, e.sub(end, first))
                    with e.loop(e.add(first, start), e.add(first, stop)) as i:
                        _columns(e, a, words, i, (vectors, rows), strange)
    me, _, _ = my_part(e, "1")
    with e.loop(0, lanes) as i:
        value = e.get("float", e.at(strange, i))
        with e.when(e.let(f"fcmp une float {value}, 0.0")):
            e.set("i64", e.at(a["words"], e.add(me, WORDS.index("strange")), "i64"), "1")
    return e.text()


def _columns(
    e: Code, a: dict[str, str], words: dict[str, str], block: str, size: tuple[int, int], strange: str
) -> None:
    """All columns of a block of so many (vectors, rows)."""
    vectors, rows = size
    start, place, first, end = (e.word(e.at(a["blocks"], e.mul(block, 4), "i64"), i) for i in range(4))
    columns = words["columns"]
    factors = e.at(a["turned"], e.mul(first, columns))
    biased = e.let(f"icmp ne i64 {words['biased']}, 0")
    with e.loop(0, columns, vectors * e.lanes) as c:
        bias = e.let(f"select i1 {biased}, ptr {e.at(a['bias'], c)}, ptr null")
        values = (
            e.at(a["copy"], start), e.at(factors, c), e.at(e.at(a["results"], place), c),
            e.at(a["terms"], first, "i64"), e.sub(end, first), columns, words["row_gap"],
            e.sub(columns, c), bias, words["rectified"], strange,
        )  # fmt: skip
        listed = ", ".join(f"{kind} {value}" for (kind, _), value in zip(_ARGUMENTS, values))
        e.do(f"call void @block{vectors}_{rows}({listed})")
