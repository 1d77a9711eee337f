"""LLVM's text of the histogram of numbers over limits that grow by a factor, on both sides of zero.

One pass, by one thread: the sums are added up in order. A number's place among the positive limits is looked
up by the first bits of its size, its exponent and four bits of what follows, which tell it within one limit.
"""

from __future__ import annotations

from flowstone.native.codegen.code_library import places_of, words_of
from flowstone.native.codegen.emitter import KINDS
from flowstone.native.codegen.structured import Code

__all__ = ["PLACES", "SHIFT", "TABLES", "WORDS", "histogram_code"]

WORDS = ("count", "sides", "first", "cells")
"""How many numbers, and positive limits; the `first` of so many cells, in which sizes lie whose bits but the
last `SHIFT` are equal. Sizes before and behind them lie in the first and the last."""
PLACES = {"histogram": ("values", "below", "limits", "counts", "totals")}
"""`below` int32 [cells]: how many limits are at most a cell's least size; at most one more is in a cell.
`limits` float64 [sides]. `counts` int64 [`TABLES`, 2 sides + 1], 0 at first: the numbers from each limit on
below the next, and in the last what is not below. Numbers that follow each other are counted in tables of
their own, so that none waits for the one before. `totals` float64: the least and the largest number, the sum,
the sum of squares."""
SHIFT, TABLES = 48, 4
_WIDE = "float64"


def histogram_code(dtype: str) -> str:
    """The text of `histogram` for a type of numbers."""
    e = Code("histogram", ["ptr a"], 1, {}, is_public=True)
    a = places_of(e, PLACES["histogram"])
    words = words_of(e, a["words"], WORDS)
    least, largest = (e.variable("double", e.constant(_WIDE, x)) for x in (float("inf"), -float("inf")))
    total, squares = (e.variable("double", e.constant(_WIDE, 0)) for _ in range(2))
    buckets = e.add(e.mul(words["sides"], 2), 1)
    tables = [e.at(a["counts"], e.mul(buckets, i), "i64") for i in range(TABLES)]

    def see(i: str, table: str) -> None:
        """Counts the i-th number."""
        kind = KINDS[dtype]
        x = e.convert(e.get(kind, e.at(a["values"], i, kind)), dtype, _WIDE)
        for place, predicate in ((least, "fcmp olt"), (largest, "fcmp ogt")):
            held = e.get("double", place)
            e.set("double", place, e.select(e.compare(predicate, _WIDE, x, held), _WIDE, x, held))
        e.set("double", total, e.binary("fadd", _WIDE, e.get("double", total), x))
        square = e.binary("fmul", _WIDE, x, x)
        e.set("double", squares, e.binary("fadd", _WIDE, e.get("double", squares), square))
        bucket = e.at(table, _bucket(e, a, words, x), "i64")
        e.set("i64", bucket, e.add(e.get("i64", bucket), 1))

    whole = e.mul(e.quotient(words["count"], TABLES), TABLES)
    with e.loop(0, whole, TABLES) as i:
        for j, table in enumerate(tables):
            see(e.add(i, j), table)
    with e.loop(whole, words["count"]) as i:
        see(i, tables[0])
    for j, place in enumerate((least, largest, total, squares)):
        e.set("double", e.at(a["totals"], j, "double"), e.get("double", place))
    return "\n".join([*e.declarations.values(), e.text()])


def _bucket(e: Code, a: dict[str, str], words: dict[str, str], x: str) -> str:
    """Of a number below zero as many limits are at most that as are, on the other side, not below its size:
    those at most the next smaller size are left out."""
    is_below = e.compare("fcmp olt", _WIDE, x, e.constant(_WIDE, 0))
    bits = e.let(f"bitcast double {e.intrinsic('fabs', _WIDE, x)} to i64")
    bits = e.sub(bits, e.let(f"zext i1 {is_below} to i64"))
    cell = e.sub(e.let(f"lshr i64 {bits}, {SHIFT}"), words["first"])
    cell = e.least(e.most(cell, 0), e.sub(words["cells"], 1))
    before = e.let(f"sext i32 {e.get('i32', e.at(a['below'], cell, 'i32'))} to i64")
    limit = e.get("i64", e.at(a["limits"], before, "i64"))
    reached = e.let(f"zext i1 {e.let(f'icmp sge i64 {bits}, {limit}')} to i64")  # as the numbers, of one sign
    before = e.add(before, reached)
    above = e.add(e.add(words["sides"], 1), before)
    above = e.least(above, e.mul(words["sides"], 2))
    return e.let(f"select i1 {is_below}, i64 {e.sub(words['sides'], before)}, i64 {above}")
