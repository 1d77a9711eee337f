"""LLVM's text for the products of a program.

| statement | operands | attributes | result |
| --- | --- | --- | --- |
| MatMul | a, b | m, k, n, turns | a b, of a [m, k] and b [k, n] |

`turns` says which operand is stored by columns: "", "a" or "b". A block of the result is some rows by some
vectors of columns, as many sums as hide the time that one takes. Where b is stored by columns, vectors lie
along the sums, and those of some columns are folded to one vector at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flowstone.native.codegen.emitter import KINDS
from flowstone.native.programs.open_sizes import is_open
from flowstone.native.programs.programs import Statement
from flowstone.native.programs.sums_code import Sums
from flowstone.native.programs.writer import Writer

__all__ = ["BLOCK_ROWS", "PRODUCTS"]

_ACCUMULATORS = 8  # vectors that hide the time which an addition takes
BLOCK_ROWS = 4
"""Rows of a product's block."""
_COLUMNS = 4  # of a block: vectors


def _product(writer: Writer, each: Statement) -> None:
    size = dict(each.attributes)
    if "b" in size.get("turns", ""):
        _product_along(writer, each)
        return
    m, n = size["m"], size["n"]
    vectors = -(-n // writer.lanes)
    for first in range(0, vectors, _COLUMNS):
        columns = range(first, min(first + _COLUMNS, vectors))

        def block(row: str, rows: int, columns: range = columns) -> None:
            _block(writer, each, row, rows, columns)

        _by_rows(writer, m, block)


def _by_rows(writer: Writer, m: int, block: Callable[[str, int], None]) -> None:
    """Has `block(row, rows)` write all rows."""
    whole, rest = divmod(m, BLOCK_ROWS)
    if whole == 1:
        block("0", BLOCK_ROWS)
    elif is_open(whole) or whole:
        writer.for_each(whole, lambda i: block(writer.scalars.let(f"mul i64 {i}, {BLOCK_ROWS}"), BLOCK_ROWS))
    if is_open(rest):
        first = whole * BLOCK_ROWS
        writer.for_each(rest, lambda i: block(writer.scalars.let(f"add i64 {i}, {first}"), 1))
    elif rest:
        block(str(whole * BLOCK_ROWS), rest)


def _block(writer: Writer, each: Statement, row: str, rows: int, columns: range) -> None:
    """Some rows of the product, in some of its vectors."""
    size = dict(each.attributes)
    k, n, dtype = size["k"], size["n"], writer.values[each.results[0]].dtype
    parts = max(1, min(4, _ACCUMULATORS // (rows * len(columns)), 1 if is_open(k) else k))
    sums = Sums(writer, dtype, "Sum", [(u, r, c) for u in range(parts) for r in range(rows) for c in columns])

    def terms(i: str, u: int) -> None:
        places = writer.plus(f"mul i64 {i}, {n}", 0)
        right = {
            c: writer.load_vector(each.operands[1], writer.plus(places, c * writer.lanes)) for c in columns
        }
        for r in range(rows):
            number = writer.load(each.operands[0], _left(writer, each, writer.plus(row, r), i))
            left = writer.splat_of(number, KINDS[dtype])
            for c in columns:
                sums.add_product((u, r, c), left, right[c])

    def several(i: str) -> None:
        first = writer.scalars.let(f"mul i64 {i}, {parts}")
        for u in range(parts):
            terms(writer.plus(first, u), u)

    writer.for_each(k // parts, several)
    for u in range(k % parts):
        terms(str(k // parts * parts + u), u)
    for r in range(rows):
        start = writer.scalars.let(f"mul i64 {writer.plus(row, r)}, {n}")
        for c in columns:
            total = sums.total([(u, r, c) for u in range(parts)])
            left = n - c * writer.lanes if size["m"] != 1 else n  # behind the only row nothing follows
            writer.store_vector(each.results[0], total, writer.plus(start, c * writer.lanes), left)


def _left(writer: Writer, each: Statement, row: str, i: str) -> str:
    """The index of term `i` of a row of the first matrix."""
    size, let = dict(each.attributes), writer.scalars.let
    if "a" in size.get("turns", ""):
        row, i, width = i, row, size["m"]
    else:
        width = size["k"]
    start = let(f"mul i64 {row}, {width}")
    return let(f"add i64 {start}, {i}")


# ---- vectors along the sums


def _product_along(writer: Writer, each: Statement) -> None:
    size = dict(each.attributes)
    n, at_once = size["n"], min(_ACCUMULATORS // (1 if size["m"] == 1 else 2), writer.lanes)

    def block(row: str, rows: int) -> None:
        writer.for_each(
            n // at_once,
            lambda j: _folded_block(
                writer, each, row, rows, writer.scalars.let(f"mul i64 {j}, {at_once}"), at_once
            ),
        )
        for j in range(n // at_once * at_once, n):
            _folded_block(writer, each, row, rows, str(j), 1)

    _by_rows(writer, size["m"], block)


def _folded_block(writer: Writer, each: Statement, row: str, rows: int, column: str, columns: int) -> None:
    """Some rows of the product, in some of its columns."""
    size, let = dict(each.attributes), writer.scalars.let
    k, n, dtype = size["k"], size["n"], writer.values[each.results[0]].dtype
    kind, (a, b), (result,) = KINDS[dtype], each.operands, each.results
    sums = Sums(writer, dtype, "Sum", [(r, c) for r in range(rows) for c in range(columns)])

    def terms(i: str, left: int) -> None:
        def some(value: int, line: str) -> str:
            start = let(f"mul i64 {line}, {k}")
            return writer.load_some(value, let(f"add i64 {start}, {i}"), left)

        rights = [some(b, writer.plus(column, c)) for c in range(columns)]
        for r in range(rows):
            one = some(a, writer.plus(row, r))
            for c, other in enumerate(rights):
                sums.add_product((r, c), one, other)

    whole, rest = divmod(k, writer.lanes)
    writer.for_each(whole, lambda i: terms(let(f"mul i64 {i}, {writer.lanes}"), writer.lanes))
    if rest:
        terms(str(whole * writer.lanes), rest)
    for r in range(rows):
        found = _folded(writer, dtype, [sums.get((r, c)) for c in range(columns)])
        start = let(f"mul i64 {writer.plus(row, r)}, {n}")
        place = writer.element(result, let(f"add i64 {start}, {column}"))
        writer.lines.append(f" store <{columns} x {kind}> {found}, ptr {place}, align 4")


def _folded(writer: Writer, dtype: str, vectors: Sequence[str]) -> str:
    """A vector of the sums of each vector's lanes; of a power of two of them."""
    e, kind = writer.vectors, KINDS[dtype]
    found, width, group = list(vectors), writer.lanes, writer.lanes
    while group > 1:  # each vector is some groups of lanes, whose halves are added
        half = group // 2
        low = [i for i in range(width) if i % group < half]
        if len(found) > 1:
            pairs = list(zip(found[::2], found[1::2]))
            both = [*low, *[i + width for i in low]]
        else:
            pairs, both = [(found[0], "poison")], low
        after = len(both)
        found = [
            e.let(
                f"fadd <{after} x {kind}> {_chosen(writer, kind, width, pair, both)}, "
                f"{_chosen(writer, kind, width, pair, [i + half for i in both])}"
            )
            for pair in pairs
        ]
        width, group = after, half
    return found[0]


def _chosen(writer: Writer, kind: str, width: int, pair: Sequence[str], places: Sequence[int]) -> str:
    """The lanes of two vectors of these numbers, counted through both."""
    a, b = pair
    vector, mask = f"<{width} x {kind}>", ", ".join(f"i32 {i}" for i in places)
    return writer.vectors.let(f"shufflevector {vector} {a}, {vector} {b}, <{len(places)} x i32> <{mask}>")


PRODUCTS: dict[str, Callable[[Writer, Statement], None]] = {"MatMul": _product}
"""How products are written."""
