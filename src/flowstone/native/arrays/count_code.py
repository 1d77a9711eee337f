"""LLVM's text of functions that count: numbers in bins of one width, and whole numbers in groups.

`bins_code`: threads share the numbers and count in arrays of their own. Where the number lies is computed as
by the kernel without machine code (`ops/numbers/histograms.py`), operation by operation. `groups_code`: one
thread goes through the elements in order, so that sums are those of that order.
"""

from __future__ import annotations

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import FLOATS, KINDS, Emitter
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, load

__all__ = ["BIN_PLACES", "BIN_WORDS", "GROUP_PLACES", "GROUP_WORDS", "bins_code", "groups_code"]

BIN_WORDS = ("threads", "count", "bins", "low", "tables")
BIN_PLACES = {"bins": ("values", "numbers", "counts", "notes")}
"""`low`: the first number of the first bin, of whole numbers; `numbers` (float64): the same of floats, and
how wide a bin is. `counts` [threads, tables, bins] and `notes` [threads], int64 and 0 at first: a note
becomes 1 if a number is NaN. Numbers that follow each other are counted in several `tables`, a power of 2, so
that none waits for the one before."""
GROUP_WORDS = ("threads", "count", "groups", "width", "bins")
GROUP_PLACES = {"groups": ("rows", "values", "weights", "out", "notes")}
"""`rows` int64 [count, rank]: with two columns the group, and always at last what must be below `width`.
Without rows (a rank of 0) each `width` elements are a group. `out` [groups, bins], 0 at first: how often each
value below `bins` occurs, or the sum of its weights, or 1. A note becomes 1 where a row is out of bounds."""


_TABLES = 4


def bins_code(dtype: str, lanes: int) -> str:
    """The text of `bins`, of numbers of a type."""
    declarations: dict[str, str] = {}
    e = Code("count_some", ["ptr a"], lanes, declarations)
    a = places_of(e, BIN_PLACES["bins"])
    words = words_of(e, a["words"], BIN_WORDS)
    me, start, end = my_part(e, words["count"])
    counts = e.at(a["counts"], e.mul(me, e.mul(words["tables"], words["bins"])), "i64")
    several = e.sub(words["tables"], 1)
    tables = [
        e.at(counts, e.mul(e.let(f"and i64 {several}, {i}"), words["bins"]), "i64") for i in range(_TABLES)
    ]
    low, step = (e.get("double", e.at(a["numbers"], i, "double")) for i in range(2))
    last = e.let(f"sitofp i64 {e.sub(words['bins'], 1)} to double")
    if dtype in FLOATS:
        low = e.one.convert(low, "float64", dtype)
    else:
        low = words["low"]
    kind = KINDS[dtype] if dtype in FLOATS else "i64"
    numbers = {1: (low, step, last)}
    numbers[lanes] = (
        in_all_lanes(e, kind, low), in_all_lanes(e, "double", step), in_all_lanes(e, "double", last)
    )  # fmt: skip
    found = e.array("i32", lanes)
    note = e.variable("i1", "false")
    whole = e.add(start, e.mul(e.quotient(e.sub(end, start), lanes), lanes))
    for some, first, until in ((e, start, whole), (e.one, whole, end)):
        with e.loop(first, until, some.lanes) as i:
            bins, is_nan = _bin(some, dtype, load(some, dtype, a["values"], i), numbers[some.lanes])
            if is_nan:
                if some.lanes > 1:
                    is_nan = e.call(f"llvm.vector.reduce.or.v{lanes}i1", "i1", [(e.vector("i1"), is_nan)])
                e.set("i1", note, e.let(f"or i1 {e.get('i1', note)}, {is_nan}"))
            some.do(f"store {some.vector('i32')} {bins}, ptr {found}, align 4")
            for lane in range(some.lanes):
                place = e.let(f"sext i32 {e.get('i32', e.at(found, lane, 'i32'))} to i64")
                place = e.at(tables[lane % _TABLES], place, "i64")
                e.set("i64", place, e.add(e.get("i64", place), 1))
    e.set("i64", e.at(a["notes"], me, "i64"), e.let(f"zext i1 {e.get('i1', note)} to i64"))
    parts = [e.text()]
    e = Code("bins", ["ptr a"], lanes, declarations, is_public=True)
    share(e, "count_some")
    return "\n".join([*declarations.values(), *parts, e.text()])


def _bin(some: Emitter, dtype: str, x: str, numbers: tuple[str, str, str]) -> tuple[str, str]:
    """The bins (i32) of numbers, and which are NaN, whose bins are 0."""
    low, step, last = numbers
    wide = "float64"
    if dtype in FLOATS:
        x = some.select(some.compare("fcmp ogt", dtype, low, x), dtype, low, x)
        offset = some.convert(some.binary("fsub", dtype, x, low), dtype, wide)
    else:
        x = some.intrinsic("smax", "int64", some.convert(x, dtype, "int64"), low)
        offset = some.convert(some.binary("sub", "int64", x, low), "int64", wide)
    place = some.binary("fdiv", wide, offset, step)
    zero, is_nan = some.constant(wide, 0), ""
    if dtype in FLOATS:
        is_nan = some.compare("fcmp uno", wide, place, zero)
    place = some.select(some.compare("fcmp ogt", wide, place, zero), wide, place, zero)
    place = some.select(some.compare("fcmp olt", wide, place, last), wide, place, last)
    return some.let(f"fptosi {some.type(wide)} {place} to {some.vector('i32')}"), is_nan


def groups_code(value: str, weight: str, rank: int, how: str) -> str:
    """The text of `groups`, for types of the values and of the weights: each value is "counted", "weighed" or
    "marked"."""
    e = Code("groups", ["ptr a"], 1, {}, is_public=True)
    a = places_of(e, GROUP_PLACES["groups"])
    words = words_of(e, a["words"], GROUP_WORDS)
    kind, bad = KINDS[weight], e.variable("i1", "false")

    def see(i: str, group: str) -> None:
        """Counts element i."""
        given = e.one.convert(e.get(KINDS[value], e.at(a["values"], i, KINDS[value])), value, "int64")
        fits = e.within(given, words["bins"])
        if rank:
            row = e.at(a["rows"], e.mul(i, rank), "i64")
            inside = e.within(e.word(row, rank - 1), words["width"])
            if rank > 1:
                group = e.word(row, 0)
                inside = e.let(f"and i1 {inside}, {e.within(group, words['groups'])}")
            e.set("i1", bad, e.let(f"or i1 {e.get('i1', bad)}, {e.let(f'xor i1 {inside}, true')}"))
            fits = e.let(f"and i1 {fits}, {inside}")
        with e.when(fits):
            place = e.at(a["out"], e.add(e.mul(group, words["bins"]), given), kind)
            one = e.constant(weight, 1)
            if how != "marked":
                more = e.get(kind, e.at(a["weights"], i, kind)) if how == "weighed" else one
                one = e.one.binary("fadd" if weight in FLOATS else "add", weight, e.get(kind, place), more)
            e.set(kind, place, one)

    if rank:
        with e.loop(0, words["count"]) as i:
            see(i, "0")
    else:
        with e.loop(0, words["groups"]) as group, e.loop(0, words["width"]) as j:
            see(e.add(e.mul(group, words["width"]), j), group)
    e.set("i64", a["notes"], e.let(f"zext i1 {e.get('i1', bad)} to i64"))
    return "\n".join([*e.declarations.values(), e.text()])
