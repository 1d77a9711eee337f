"""LLVM's text of products of a sparse matrix and a dense one: a pass over the sparse elements.

An element (i, j) with the value x adds x times row j of the dense matrix to row i of the result. A thread has
a stretch of the elements, from the first of a row on, and notes what it finds wrong.
"""

from __future__ import annotations

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import KINDS, SIZES
from flowstone.native.codegen.structured import Code

__all__ = ["PLACES", "WORDS", "product_code"]

WORDS = ("threads", "count", "height", "inner", "columns", "row", "column")
"""The whole numbers of a call: how many elements; rows of the result and of the dense matrix, and the columns
of both; where in a pair of indices the `row` and the `column` are."""
PLACES = {"multiply": ("indices", "values", "dense", "result", "notes")}
"""The addresses that the function takes after that of the numbers, in order; the result is 0 at first. Of the
two numbers of `notes` the first becomes the place of an element that is out of bounds, the second of one
whose row is above its predecessor's; they stay where there is none."""


def product_code(values: str, indices: str, lanes: int) -> str:
    """The text of the function of `PLACES`, for these types by NumPy's names; `lanes` of the values."""
    declarations: dict[str, str] = {}
    some = _multiply_some(values, indices, lanes, declarations)
    e = Code("multiply", ["ptr a"], lanes, declarations, is_public=True)
    share(e, "multiply_some")
    return "\n".join([*declarations.values(), some, e.text()])


def _multiply_some(dtype: str, index: str, lanes: int, declarations: dict[str, str]) -> str:
    """A thread's elements."""
    e = Code("multiply_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["multiply"])
    words = words_of(e, a["words"], WORDS)
    count, columns, kind = words["count"], words["columns"], KINDS[dtype]

    def part(element: str, which: str) -> str:
        """A row or column of an element."""
        place = e.at(a["indices"], e.add(e.mul(element, 2), words[which]), KINDS[index])
        found = e.get(KINDS[index], place)
        return found if index == "int64" else e.let(f"sext {KINDS[index]} {found} to i64")

    def first_of_row(element: str) -> str:
        """The first element from this one on that begins a row, or the end."""
        found = e.variable("i64", element)
        with e.repeat() as leave:
            here = e.get("i64", found)
            leave(e.let(f"icmp eq i64 {here}, 0"))
            leave(e.let(f"icmp sge i64 {here}, {count}"))
            leave(e.let(f"icmp ne i64 {part(here, 'row')}, {part(e.sub(here, 1), 'row')}"))
            e.set("i64", found, e.add(here, 1))
        return e.get("i64", found)

    _, start, end = my_part(e, count)
    start, end = first_of_row(start), first_of_row(end)
    before = e.variable("i64", "0")
    with e.when(e.let(f"icmp sgt i64 {start}, 0")):
        e.set("i64", before, part(e.sub(start, 1), "row"))
    place = e.variable("i64", start)
    with e.repeat() as leave:
        element = e.get("i64", place)
        leave(e.let(f"icmp sge i64 {element}, {end}"))
        i, j = part(element, "row"), part(element, "column")
        fits = e.let(f"and i1 {e.within(i, words['height'])}, {e.within(j, words['inner'])}")
        leave(e.let(f"xor i1 {fits}, true"))
        with e.when(e.let(f"icmp slt i64 {i}, {e.get('i64', before)}")):
            e.set("i64", e.at(a["notes"], 1, "i64"), element)
        e.set("i64", before, i)
        x = e.get(kind, e.at(a["values"], element, kind))
        rows = [e.at(a[name], e.mul(at, columns), kind) for name, at in (("result", i), ("dense", j))]
        _add(e, dtype, x, rows, columns)
        e.set("i64", place, e.add(element, 1))
    stopped = e.get("i64", place)
    with e.when(e.let(f"icmp slt i64 {stopped}, {end}")):
        e.set("i64", a["notes"], stopped)
    return e.text()


def _add(e: Code, dtype: str, x: str, rows: list[str], columns: str) -> None:
    """Adds x times the second row to the first one."""
    kind, wide, aligned = KINDS[dtype], e.type(dtype), SIZES[dtype]
    first = e.let(f"insertelement {wide} poison, {kind} {x}, i32 0")
    every = e.let(f"shufflevector {wide} {first}, {wide} poison, <{e.lanes} x i32> zeroinitializer")
    suffix = f"f{8 * aligned}"
    whole = e.mul(e.quotient(columns, e.lanes), e.lanes)
    for begin, end, step, type_, factor in (("0", whole, e.lanes, wide, every), (whole, columns, 1, kind, x)):
        name = f"llvm.fma.{suffix}" if step == 1 else f"llvm.fma.v{e.lanes}{suffix}"
        with e.loop(begin, end, step) as n:
            to, source = (e.at(row, n, kind) for row in rows)
            old, given = (e.let(f"load {type_}, ptr {each}, align {aligned}") for each in (to, source))
            total = e.call(name, type_, [(type_, factor), (type_, given), (type_, old)])
            e.do(f"store {type_} {total}, ptr {to}, align {aligned}")
