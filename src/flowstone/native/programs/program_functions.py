"""Functions that equal statements of a program share, in LLVM's text.

A deep network does the same on every layer, and LLVM takes as long for each repetition as for the first. So
what is a loop over many elements is a function of the addresses of the values, once for all statements that
differ in nothing else. What is used once LLVM puts in the place of its call. Small statements stay where they
are: their values live in registers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flowstone.native.numerics.elements import ELEMENTS
from flowstone.native.programs.program_memory import FEW_VECTORS
from flowstone.native.programs.programs import Program, Statement, Value
from flowstone.native.programs.statement_texts import write_statements
from flowstone.native.programs.writer import Writer

__all__ = ["write_shared"]

_FEWEST = 64  # elements, or products, from which a call costs nothing beside them


def write_shared(writer: Writer, statements: Sequence[Statement]) -> bool:
    """Writes statements, one or several that are one loop over the elements, as a call of a function that
    equal ones share; whether they suit that."""
    if writer.is_open or not all(_suits(writer, each) for each in statements):
        return False
    numbers: dict[int, int] = {}  # the function's own, by memory
    for each in statements:
        for x in (*each.operands, *each.results):
            numbers.setdefault(writer.values[x].memory, len(numbers))
    own = [_renumbered(writer, each, numbers) for each in statements]
    key = _key(writer, own, numbers)
    name = writer.shared.get(key)
    if name is None:
        name = writer.shared[key] = f"shared{len(writer.shared)}"
        writer.functions[name] = _function(writer, name, own, numbers)
    else:
        writer.functions[name] = writer.functions[name].replace(") {", ") noinline {", 1)
    places = ", ".join(f"ptr %m{memory}" for memory in _in_memory(writer, own, numbers))
    writer.lines.append(f" call void @{name}({places})")
    return True


def _suits(writer: Writer, each: Statement) -> bool:
    """Whether the statement is a loop of some length that cannot fail."""
    attributes = dict(each.attributes)
    if each.op in ELEMENTS:
        return writer.values[each.results[0]].size > FEW_VECTORS * writer.lanes
    if each.op == "MatMul":
        return bool(attributes["m"] * attributes["k"] * attributes["n"] >= _FEWEST)
    if each.op == "Copy":
        return len(each.operands) == 1 and math.prod(attributes["sizes"]) >= _FEWEST
    if each.op in ("Windows", "ArgMax", "ArgMin", "Reduce"):
        return writer.values[each.operands[0]].size >= _FEWEST
    return each.op == "Fill" and writer.values[each.results[0]].size >= _FEWEST


def _renumbered(writer: Writer, each: Statement, numbers: dict[int, int]) -> Statement:
    operands, results = (
        tuple([numbers[writer.values[x].memory] for x in xs]) for xs in (each.operands, each.results)
    )
    return each._replace(operands=operands, results=results, guard=())


def _in_memory(writer: Writer, own: Sequence[Statement], numbers: dict[int, int]) -> dict[int, int]:
    """Without the values that only these statements read: registers hold them."""
    made = {x for each in own for x in each.results if each.op in ELEMENTS}
    read = [x for each in own for x in each.operands]
    return {x: i for x, i in numbers.items() if i not in made or read.count(i) != writer.reads[x]}


def _key(writer: Writer, own: Sequence[Statement], numbers: dict[int, int]) -> Any:
    """What decides the function's text: statements, types and sizes, and what is read elsewhere too."""
    inside = [0] * len(numbers)
    for each in own:
        for x in each.operands:
            inside[x] += 1
    types = [(writer.values[x].dtype, writer.values[x].size) for x in numbers]
    kept = [inside[i] != writer.reads[x] for x, i in numbers.items()]
    return tuple(own), tuple(types), tuple(kept), writer.runs_once


def _function(writer: Writer, name: str, own: Sequence[Statement], numbers: dict[int, int]) -> str:
    values = [Value(writer.values[x].dtype, (writer.values[x].size,), i) for x, i in numbers.items()]
    program = Program(tuple(values), 0, (), (), (), ())
    inner = Writer(program, writer.declarations)
    inner.runs_once = writer.runs_once
    inner.reads = [writer.reads[x] for x in numbers]
    write_statements(inner, own)
    places = ", ".join(f"ptr %m{i}" for i in _in_memory(writer, own, numbers).values())
    lines = [
        f"define internal void @{name}({places}) {{",
        "entry:",
        *inner.head,
        *inner.lines,
        " ret void",
        "}",
    ]
    return "\n".join(lines)
