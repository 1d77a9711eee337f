"""LLVM's text for a program's statements that draw random numbers.

| statement | operands | attributes | result |
| --- | --- | --- | --- |
| Draw | stream, perhaps the least and the first beyond | how, blocks | numbers |
| Choice | weights [rows, classes], numbers [rows, n] | rows, classes | [rows, n]: a class of the row each |

A *stream* is int64 [3]: a key, and the lower and upper half of a counter (`ops/randomness/philox.py`), which
Draw moves on by so many blocks. `how` and the result's type name a function of `random_value_code.py`, so
that numbers are those that kernels draw. Integers fail where there are none between their bounds. Weights and
numbers of Choice are float64, the latter of [0, 1): a class is chosen as often as its part of the row's sum.
"""

from __future__ import annotations

from collections.abc import Callable

from flowstone.native.programs.programs import Statement
from flowstone.native.programs.writer import Writer
from flowstone.native.randomness.random_value_code import NAMES, PARAMETERS, filling_code

__all__ = ["STATEMENTS", "STREAM", "can_draw"]

STREAM = 3
"""The numbers of a stream."""


def can_draw(how: str, dtype: str) -> bool:
    """Whether there are such numbers."""
    return f"{how}_{dtype}" in NAMES


def _draw(writer: Writer, each: Statement) -> None:
    stream, *bounds = each.operands
    (result,), attributes = each.results, dict(each.attributes)
    let, value = writer.scalars.let, writer.values[each.results[0]]
    name = f"{attributes['how']}_{value.dtype}"
    if name not in writer.functions:
        writer.functions[name] = filling_code(name, writer.lanes, writer.declarations)
    key, low, high = (writer.load(stream, str(i)) for i in range(STREAM))
    least, width = "0", "1"
    if bounds:
        least, beyond = (writer.index(x) for x in bounds)
        writer.require(let(f"icmp slt i64 {least}, {beyond}"))
        width = let(f"sub i64 {beyond}, {least}")
    given = {"threads": "1", "count": str(value.size), "key": key, "low": low, "high": high}
    given |= {"least": least, "width": width, "shift": "0"}
    words, places = f"%w{writer.label()}", f"%p{writer.label()}"
    writer.allocate(words, "i64", len(PARAMETERS))
    writer.allocate(places, "ptr", 2)
    for i, each_name in enumerate(PARAMETERS):
        place = let(f"getelementptr i64, ptr {words}, i64 {i}")
        writer.lines.append(f" store i64 {given[each_name]}, ptr {place}")
    second = let(f"getelementptr ptr, ptr {places}, i64 1")
    writer.lines += [
        f" store ptr {words}, ptr {places}",
        f" store ptr {writer.address(result)}, ptr {second}",
    ]
    writer.lines.append(f" call void @{name}_some(ptr {places}, i64 0, i64 1)")
    following = let(f"add i64 {low}, {attributes['blocks']}")
    carry = let(f"zext i1 {let(f'icmp ult i64 {following}, {low}')} to i64")
    writer.store(stream, following, "1")
    writer.store(stream, let(f"add i64 {high}, {carry}"), "2")


def _choice(writer: Writer, each: Statement) -> None:
    """Counts the classes up to which the sum is no more than the number's part of it."""
    (weights, numbers), (result,), size = each.operands, each.results, dict(each.attributes)
    let, classes = writer.scalars.let, size["classes"]
    samples = writer.values[numbers].size // size["rows"]
    total, chosen = f"%sum{writer.label()}", f"%chosen{writer.label()}"
    writer.allocate(total, "double", align=8)
    writer.allocate(chosen, "i64", align=8)

    def one(i: str) -> None:
        base = let(f"mul i64 {let(f'udiv i64 {i}, {samples}')}, {classes}")

        def add_up(j: str) -> str:
            number = writer.load(weights, let(f"add i64 {base}, {j}"))
            so_far = let(f"fadd double {let(f'load double, ptr {total}')}, {number}")
            writer.lines.append(f" store double {so_far}, ptr {total}")
            return so_far

        def count(j: str) -> None:
            is_below = let(f"zext i1 {let(f'fcmp ole double {add_up(j)}, {bound}')} to i64")
            now = let(f"add i64 {let(f'load i64, ptr {chosen}')}, {is_below}")
            writer.lines.append(f" store i64 {now}, ptr {chosen}")

        writer.lines += [f" store double 0.0, ptr {total}", f" store i64 0, ptr {chosen}"]
        writer.for_each(classes, add_up)
        bound = let(f"fmul double {writer.load(numbers, i)}, {let(f'load double, ptr {total}')}")
        writer.lines.append(f" store double 0.0, ptr {total}")
        writer.for_each(classes, count)
        found = let(f"load i64, ptr {chosen}")
        is_class = let(f"icmp slt i64 {found}, {classes}")
        found = let(f"select i1 {is_class}, i64 {found}, i64 {classes - 1}")
        is_long = writer.values[result].dtype == "int64"
        writer.store(result, found if is_long else let(f"trunc i64 {found} to i32"), i)

    writer.for_each(writer.values[numbers].size, one)


STATEMENTS: dict[str, Callable[[Writer, Statement], None]] = {"Draw": _draw, "Choice": _choice}
"""How statements that draw are written."""
