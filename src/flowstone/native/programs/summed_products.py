"""LLVM's text for sums of products that a loop adds to, as gradients of a recurrence by its weights are.

| statement | operands | attributes | result |
| --- | --- | --- | --- |
| BeginSum | the first value, if it is not zero | rows, m, n, containers | the sum |
| AddProduct | a, b | the same | the sum, to which a'b is added: of a [rows, m] and b [rows, n] |
| EndSum | | the same | the sum, complete |

An iteration has few rows, so that its own product would read and write the whole sum for a few terms. So rows
are kept, in two `containers`, until there are `_ROWS` of them, and multiplied then; and at the end. Where an
iteration has as many, it multiplies. The result is always the same value, in memory of its own, and holds the
sum only after `EndSum`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.native.codegen.emitter import KINDS, SIZES
from flowstone.native.programs.open_sizes import is_at_most
from flowstone.native.programs.programs import Statement, Value
from flowstone.native.programs.sums_code import Sums
from flowstone.native.programs.writer import Writer

__all__ = ["STATEMENTS"]

_ROWS = 32  # that are multiplied at a time
_BLOCK_ROWS, _BLOCK_VECTORS = (
    6,
    3,
)  # of the sum, which registers hold; of 16 registers with narrow vectors fewer


def _kept(size: dict[str, Any]) -> int:
    """Of how many iterations rows are kept; 0: of none."""
    return int(_ROWS // size["rows"]) if is_at_most(size["rows"], _ROWS // 2) else 0


def _base(size: dict[str, Any]) -> str:
    return f"%base{size['containers'][0]}"


def _begin(writer: Writer, each: Statement) -> None:
    size, let = dict(each.attributes), writer.scalars.let
    (total,) = each.results
    writer.allocate(_base(size), "ptr", align=8)
    if each.operands:
        value = writer.values[total]
        writer.copy_bytes(
            writer.address(total), writer.address(each.operands[0]), value.size * SIZES[value.dtype]
        )
    first = writer.address(total) if each.operands else "null"
    writer.lines.append(f" store ptr {first}, ptr {_base(size)}")
    if not _kept(size):
        return
    dtype = writer.values[total].dtype
    for i, width in zip(size["containers"], (size["m"], size["n"])):
        count = _kept(size) * size["rows"] * width + writer.lanes  # vectors are read beyond the end
        data = let(f"load ptr, ptr %data{i}")
        new = let(f"call ptr @realloc(ptr {data}, i64 {count * SIZES[dtype]})")
        writer.require(let(f"icmp ne ptr {new}, null"))
        writer.lines += [f" store ptr {new}, ptr %data{i}", f" store i64 0, ptr %count{i}"]


def _add(writer: Writer, each: Statement) -> None:
    size, let, lines = dict(each.attributes), writer.scalars.let, writer.lines
    kept = _kept(size)
    if not kept:
        _multiply(writer, each, [writer.address(x) for x in each.operands], str(size["rows"]))
        return
    first = size["containers"][0]
    count, dtype = let(f"load i64, ptr %count{first}"), writer.values[each.results[0]].dtype
    for i, x in zip(size["containers"], each.operands):
        bytes_of_one = writer.values[x].size * SIZES[dtype]
        data, offset = let(f"load ptr, ptr %data{i}"), let(f"mul i64 {count}, {bytes_of_one}")
        writer.copy_bytes(let(f"getelementptr i8, ptr {data}, i64 {offset}"), writer.address(x), bytes_of_one)
    more = let(f"add i64 {count}, 1")
    lines.append(f" store i64 {more}, ptr %count{first}")
    full, on = writer.label(), writer.label()
    lines += [f" br i1 {let(f'icmp eq i64 {more}, {kept}')}, label %{full}, label %{on}", f"{full}:"]
    _multiply_kept(writer, each, str(kept * size["rows"]))
    writer.begin(on)


def _end(writer: Writer, each: Statement) -> None:
    size, let, lines = dict(each.attributes), writer.scalars.let, writer.lines
    (total,) = each.results
    if _kept(size):
        count = let(f"load i64, ptr %count{size['containers'][0]}")
        some, none = writer.label(), writer.label()
        lines += [f" br i1 {let(f'icmp sgt i64 {count}, 0')}, label %{some}, label %{none}", f"{some}:"]
        _multiply_kept(writer, each, let(f"mul i64 {count}, {size['rows']}"))
        writer.begin(none)
    empty, done = writer.label(), writer.label()
    is_empty = let(f"icmp eq ptr {let(f'load ptr, ptr {_base(size)}')}, null")
    lines += [f" br i1 {is_empty}, label %{empty}, label %{done}", f"{empty}:"]
    value = writer.values[total]
    name = "llvm.memset.p0.i64"
    writer.declarations[name] = f"declare void @{name}(ptr, i8, i64, i1)"
    words = f"ptr {writer.address(total)}, i8 0, i64 {value.size * SIZES[value.dtype]}, i1 false"
    lines.append(f" call void @{name}({words})")
    writer.begin(done)


def _multiply_kept(writer: Writer, each: Statement, rows: str) -> None:
    containers = dict(each.attributes)["containers"]
    places = [writer.scalars.let(f"load ptr, ptr %data{i}") for i in containers]
    _multiply(writer, each, places, rows)
    writer.lines.append(f" store i64 0, ptr %count{containers[0]}")


def _multiply(writer: Writer, each: Statement, places: list[str], rows: str) -> None:
    size = dict(each.attributes)
    total, base = writer.address(each.results[0]), _base(size)
    is_first = writer.scalars.let(f"icmp eq ptr {writer.scalars.let(f'load ptr, ptr {base}')}, null")
    words = f"ptr {total}, ptr {places[0]}, ptr {places[1]}, i64 {rows}, i1 {is_first}"
    function = _function(writer, writer.values[each.results[0]].dtype, size["m"], size["n"])
    writer.lines += [f" call void @{function}({words})", f" store ptr {total}, ptr {base}"]


def _function(writer: Writer, dtype: str, m: int, n: int) -> str:
    """The name of the function that adds a product to a sum, or sets it; equal ones share it."""
    key = ("summed", dtype, m, n)
    name = writer.shared.get(key)
    if name is None:
        name = writer.shared[key] = f"shared{len(writer.shared)}"
        writer.functions[name] = _function_text(writer, name, dtype, m, n)
    return name


def _function_text(writer: Writer, name: str, dtype: str, m: int, n: int) -> str:
    values = tuple(Value(dtype, (size,), i) for i, size in enumerate((m * n, m, n)))
    inner = Writer(writer.program._replace(values=values, inputs=0, constants=(), body=(), outputs=()),
                   writer.declarations)  # fmt: skip
    wide = inner.lanes >= 16 and SIZES[dtype] == 4
    tall, broad = (_BLOCK_ROWS, _BLOCK_VECTORS + 1) if wide else (_BLOCK_ROWS // 2, _BLOCK_VECTORS)
    let, width = inner.scalars.let, broad * inner.lanes

    def panel(column: str, left: int) -> None:
        vectors = -(-min(left, width) // inner.lanes)
        whole, rest = divmod(m, tall)
        if whole:
            inner.for_each(
                whole,
                lambda i: _block(inner, m, n, (let(f"mul i64 {i}, {tall}"), tall), (column, vectors, left)),
            )
        if rest:
            _block(inner, m, n, (str(whole * tall), rest), (column, vectors, left))

    whole, rest = divmod(n, width)
    if whole:
        inner.for_each(whole, lambda j: panel(let(f"mul i64 {j}, {width}"), width))
    if rest:
        panel(str(whole * width), rest)
    return "\n".join([
        f"define internal void @{name}(ptr %m0, ptr %m1, ptr %m2, i64 %rows, i1 %isfirst) noinline {{",
        "entry:", *inner.head, *inner.lines, " ret void", "}",
    ])  # fmt: skip


def _block(inner: Writer, m: int, n: int, lines: tuple[str, int], columns: tuple[str, int, int]) -> None:
    """Some rows of the sum, in some vectors of it."""
    (row, rows), (column, vectors, left) = lines, columns
    let, e, dtype = inner.scalars.let, inner.vectors, inner.values[0].dtype
    keys = [(r, c) for r in range(rows) for c in range(vectors)]
    sums, kind = Sums(inner, dtype, "Sum", keys), e.type(dtype)
    places = {}
    for r, c in keys:
        start = let(f"mul i64 {inner.plus(row, r)}, {n}")
        places[r, c] = inner.plus(let(f"add i64 {start}, {column}"), c * inner.lanes)
        before = inner.load_some(0, places[r, c], left - c * inner.lanes)
        sums.set((r, c), e.let(f"select i1 %isfirst, {kind} zeroinitializer, {kind} {before}"))

    def term(i: str) -> None:
        start = let(f"add i64 {let(f'mul i64 {i}, {n}')}, {column}")
        right = [inner.load_vector(2, inner.plus(start, c * inner.lanes)) for c in range(vectors)]
        below = let(f"add i64 {let(f'mul i64 {i}, {m}')}, {row}")
        for r in range(rows):
            one = inner.splat_of(inner.load(1, inner.plus(below, r)), KINDS[dtype])
            for c in range(vectors):
                sums.add_product((r, c), one, right[c])

    inner.for_each("%rows", term)
    for r, c in keys:
        inner.store_vector(0, sums.get((r, c)), places[r, c], left - c * inner.lanes)


STATEMENTS: dict[str, Callable[[Writer, Statement], None]] = {
    "BeginSum": _begin,
    "AddProduct": _add,
    "EndSum": _end,
}
"""How the statements are written."""
