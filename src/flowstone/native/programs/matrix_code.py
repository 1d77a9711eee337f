"""LLVM's text for a program's statement ``Matrix``: small square matrices inverted, solved and factored.

| attributes | |
| --- | --- |
| how | a function of `small_matrix_code.py`: solve, substitute, invert, determine or factor |
| size, columns, count | of a matrix, of its right-hand sides, and how many matrices there are |
| adjoint, turned | see `small_matrix_code.layout_of` |

Operands are the matrices, and perhaps right-hand sides. A program fails where a pivot is zero or not finite.
"""

from __future__ import annotations

from collections.abc import Callable

from flowstone.native.codegen import host
from flowstone.native.codegen.emitter import SIZES
from flowstone.native.matrices.small_matrix_code import layout_of, one_matrix_code
from flowstone.native.programs.programs import Statement
from flowstone.native.programs.writer import Writer

__all__ = ["STATEMENTS"]


def _matrix(writer: Writer, each: Statement) -> None:
    given = dict(each.attributes)
    values = (*each.operands, *each.results)
    function, let = _function(writer, each), writer.scalars.let
    failed = f"%failed{writer.label()}"
    writer.allocate(failed, "i64", align=8)
    writer.lines.append(f" store i64 0, ptr {failed}")
    parts = [writer.values[x].size // given["count"] for x in values]

    def one(i: str) -> None:
        starts = [i if part == 1 or i == "0" else let(f"mul i64 {i}, {part}") for part in parts]
        places = [writer.element(x, start) for x, start in zip(values, starts)]
        words = ", ".join(f"ptr {place}" for place in (*places, failed))
        writer.lines.append(f" call void @{function}({words})")

    if given["count"] == 1:
        one("0")
    else:
        writer.for_each(given["count"], one)
    writer.require(let(f"icmp eq i64 {let(f'load i64, ptr {failed}')}, 0"))


def _function(writer: Writer, each: Statement) -> str:
    """The name of the function for one matrix, which equal statements share."""
    given, dtype = dict(each.attributes), writer.values[each.results[0]].dtype
    key = ("matrix", dtype, each.attributes)
    name = writer.shared.get(key)
    if name is None:
        name = writer.shared[key] = f"shared{len(writer.shared)}"
        words = {**layout_of(given["size"], given["adjoint"], given["turned"]), "columns": given["columns"]}
        lanes = host.lanes() * SIZES["float32"] // SIZES[dtype]
        writer.functions[name] = one_matrix_code(name, given["how"], dtype, words, lanes, writer.declarations)
    return name


STATEMENTS: dict[str, Callable[[Writer, Statement], None]] = {"Matrix": _matrix}
"""How the statement is written."""
