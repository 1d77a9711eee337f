"""LLVM's text for a program's statements on the largest numbers of rows.

| statement | operands | attributes | result |
| --- | --- | --- | --- |
| Largest | x | rows, size, count | int32 [rows, count]: where in the rows of x [rows, size] these are |
| Taken | x, places | size, count | what is there, so many for each row; fails where a place is not in it |

They are in falling order, equal ones in order of their places, NaN first: see `ops/numbers/ranking.py`. The
places so far stand in the result, sorted; a number is compared with the last of them, and moves up from
there.
"""

from __future__ import annotations

from collections.abc import Callable

from flowstone.native.codegen.emitter import FLOATS, KINDS
from flowstone.native.programs.indexed_code import index_of
from flowstone.native.programs.programs import Statement
from flowstone.native.programs.writer import Writer

__all__ = ["STATEMENTS"]


def _is_larger(writer: Writer, dtype: str, a: str, b: str) -> str:
    let, kind = writer.scalars.let, KINDS[dtype]
    if dtype not in FLOATS:
        order = "ugt" if dtype == "uint8" else "sgt"
        return let(f"icmp {order} {kind} {a}, {b}")
    both = let(f"fcmp ord {kind} {b}, {b}")
    is_first = let(f"and i1 {let(f'fcmp uno {kind} {a}, {a}')}, {both}")
    return let(f"or i1 {is_first}, {let(f'fcmp ogt {kind} {a}, {b}')}")


def _largest(writer: Writer, each: Statement) -> None:
    (x,), (result,), size = each.operands, each.results, dict(each.attributes)
    let, lines, most = writer.scalars.let, writer.lines, size["count"]
    dtype = writer.values[x].dtype
    kind = KINDS[dtype]
    count, at, last = (f"%{name}{writer.label()}" for name in ("count", "at", "last"))
    writer.allocate(count, "i64", align=8)
    writer.allocate(at, "i64", align=8)
    writer.allocate(last, kind, align=8)

    def row(o: str) -> None:
        base, out = let(f"mul i64 {o}, {size['size']}"), let(f"mul i64 {o}, {most}")

        def number_at(place: str) -> str:
            return writer.load(x, let(f"add i64 {base}, {place}"))

        def place_at(i: str) -> str:
            return let(f"sext i32 {writer.load(result, let(f'add i64 {out}, {i}'))} to i64")

        def put(i: str, place: str) -> None:
            writer.store(result, let(f"trunc i64 {place} to i32"), let(f"add i64 {out}, {i}"))

        def one(i: str) -> None:
            insert, head, look, move, end, after = (writer.label() for _ in range(6))
            number, filled = number_at(i), let(f"load i64, ptr {count}")
            has_room = let(f"icmp slt i64 {filled}, {most}")
            is_larger = _is_larger(writer, dtype, number, let(f"load {kind}, ptr {last}"))
            enters = let(f"or i1 {has_room}, {is_larger}")
            lines.extend([f" br i1 {enters}, label %{insert}, label %{after}", f"{insert}:"])
            place = let(f"select i1 {has_room}, i64 {filled}, i64 {most - 1}")
            lines.extend([f" store i64 {let(f'add i64 {place}, 1')}, ptr {count}"])
            lines.extend([f" store i64 {place}, ptr {at}"])
            writer.begin(head)
            place = let(f"load i64, ptr {at}")
            is_first = let(f"icmp eq i64 {place}, 0")
            lines.extend([f" br i1 {is_first}, label %{end}, label %{look}", f"{look}:"])
            before = let(f"sub i64 {place}, 1")
            other = place_at(before)
            is_larger = _is_larger(writer, dtype, number, number_at(other))
            lines.extend([f" br i1 {is_larger}, label %{move}, label %{end}", f"{move}:"])
            put(place, other)
            lines.extend([f" store i64 {before}, ptr {at}", f" br label %{head}", f"{end}:"])
            put(let(f"load i64, ptr {at}"), i)
            behind = place_at(let(f"sub i64 {let(f'load i64, ptr {count}')}, 1"))
            lines.append(f" store {kind} {number_at(behind)}, ptr {last}")
            writer.begin(after)

        lines.append(f" store i64 0, ptr {count}")
        lines.append(f" store {kind} {writer.load(x, base)}, ptr {last}")
        writer.for_each(size["size"], one)

    writer.for_each(size["rows"], row)


def _taken(writer: Writer, each: Statement) -> None:
    (x, places), (result,), size = each.operands, each.results, dict(each.attributes)
    let, count = writer.scalars.let, size["count"]

    def one(i: str) -> None:
        base = let(f"udiv i64 {i}, {count}")
        base = let(f"mul i64 {base}, {size['size']}")
        place = index_of(writer, places, i)
        writer.require(let(f"icmp ult i64 {place}, {size['size']}"))
        writer.store(result, writer.load(x, let(f"add i64 {base}, {place}")), i)

    writer.for_each(writer.values[places].size, one)


STATEMENTS: dict[str, Callable[[Writer, Statement], None]] = {"Largest": _largest, "Taken": _taken}
"""How statements on the largest numbers are written."""
