"""LLVM's text of loops in parts of their rows (`row_parts.py`): a team of threads does a part at a time.

A part is a function ``i32 part(ptr addresses)`` of where its inputs, outputs and containers begin, as a
program's is. Here their addresses are written to tables, one a part: first the function, last what it
returns. Any number of threads may do them; without a team they are done one after the other.
"""

from __future__ import annotations

from collections.abc import Callable

from flowstone.native.codegen.parts import by_team
from flowstone.native.programs import container_code
from flowstone.native.programs.programs import Loop
from flowstone.native.programs.row_parts import Part, part_of
from flowstone.native.programs.writer import Writer

__all__ = ["write_parts"]


def write_parts(writer: Writer, loop: Loop, function_of: Callable[[Part], str]) -> None:
    """Writes the loop; `function_of` gives the name of a part's function."""
    let, lines = writer.scalars.let, writer.lines
    parts = {rows: part_of(writer.program, loop, rows) for rows in dict.fromkeys(loop.parts)}
    functions = {rows: function_of(part) for rows, part in parts.items()}
    first = parts[loop.parts[0]]
    size = 2 + len(first.inputs) + len(first.outputs) + 3 * len(first.containers)
    tables, copies, row = f"%parts{writer.label()}", list[str](), 0
    writer.allocate(tables, "ptr", size * len(loop.parts), align=8)
    for i, rows in enumerate(loop.parts):
        words = [f"ptr @{functions[rows]}"]
        for value, is_by_rows in (*first.inputs, *first.outputs):
            width = writer.values[value].size // sum(loop.parts)
            words.append(f"ptr {writer.element(value, str(row * width * is_by_rows))}")
        for number, container in zip(first.containers, parts[rows].program.containers):
            width = container.size // rows if container.pitch else 0
            found, copy = container_code.give(writer, number, row * width, i > 0)
            words += found
            copies += [copy] * (i > 0)
        for j, word in enumerate(words):
            place = let(f"getelementptr ptr, ptr {tables}, i64 {i * size + j}")
            lines.append(f" store {word}, ptr {place}")
        row += rows
    name = f"rows{writer.label()}"
    writer.declarations[name] = (
        _SHARE.replace("NAME", name).replace("SIZE", str(size)).replace("LAST", str(size - 1))
        .replace("PARTS", str(len(loop.parts)))
    )  # fmt: skip
    lines.append(f" call void @{by_team(name, writer.declarations)}(ptr {tables}, i32 0)")
    lines += [f" call void @free(ptr {copy})" for copy in copies]
    for i in range(len(loop.parts)):
        place = let(f"getelementptr ptr, ptr {tables}, i64 {i * size + size - 1}")
        writer.require(let(f"icmp eq i32 {let(f'load i32, ptr {place}')}, 0"))


_SHARE = """define internal void @NAME(ptr %a, i64 %t, i64 %n) {
entry:
 %t1 = add i64 %t, 1
 %m0 = mul i64 %t, PARTS
 %p0 = udiv i64 %m0, %n
 %m1 = mul i64 %t1, PARTS
 %p1 = udiv i64 %m1, %n
 br label %head
head:
 %p = phi i64 [%p0, %entry], [%p2, %work]
 %more = icmp slt i64 %p, %p1
 br i1 %more, label %work, label %done
work:
 %first = mul i64 %p, SIZE
 %table = getelementptr ptr, ptr %a, i64 %first
 %function = load ptr, ptr %table
 %given = getelementptr ptr, ptr %table, i64 1
 %code = call i32 %function(ptr %given)
 %place = getelementptr ptr, ptr %table, i64 LAST
 store i32 %code, ptr %place
 %p2 = add i64 %p, 1
 br label %head
done:
 ret void
}"""
