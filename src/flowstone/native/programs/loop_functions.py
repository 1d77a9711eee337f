"""Loops of programs as modules of their own, in LLVM's text: equal loops are compiled once.

A program whose arrays have another length has the same loops: only the number of iterations, and what is done
before and after them, differ. So a loop becomes a function of the addresses of what it shares with the rest.
Its names are given anew in the order of the text, and the text's hash names the function: whoever has such a
loop calls it, in any program and process (`kernels.py` loads it, from the cache or made).

What is small is copied in and out, so that LLVM keeps it in registers; constants are part of the function,
but for those that decide how often it runs.

    parts = LoopFunctions(writer, constant, modules)
    parts.put(loop, head, lines)         # into writer.lines, a line that stands for the loop
    parts.write()                        # at the end: modules["loop_3fa…"] = the text of the module
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from flowstone.native.programs.programs import Loop, Program, Statement
from flowstone.native.programs.writer import Writer

__all__ = ["FEWEST_STATEMENTS", "LoopFunctions", "loops_apart", "needed"]

FEWEST_STATEMENTS = 12  # of a loop, from which compiling it takes longer than calling it costs
_LONG = 200  # lines of a function that is called outside of loops, from which it is a module
_SMALL = 512  # bytes that are copied in and out
_NAME = re.compile(r"%([A-Za-z_][\w.]*)")
_DEFINED = re.compile(r"^ *%([A-Za-z_][\w.]*) = |^([A-Za-z_][\w.]*):", re.MULTILINE)
_LOCAL = re.compile(r"%([A-Za-z_][\w.]*)|^([A-Za-z_][\w.]*):", re.MULTILINE)
_GLOBAL = re.compile(r"@[\w.]+|!\d+")
_MADE = re.compile(r"^(?:declare|define) [^@]*(@[\w.]+)|^(@[\w.]+|!\d+) =", re.MULTILINE)
_NUMBERED = re.compile(r"@shared\d+|!\d+")
_ALLOCATED = re.compile(r"alloca (?:\[(\d+) x (\w+)\]|(\w+)), align \d+$")
_INPUT = re.compile(r" %m\d+ = load ptr, ")
_BYTES = {"ptr": 8, "i64": 8, "double": 8, "i32": 4, "float": 4, "i16": 2, "i8": 1}
_ENDS = {"fail", "interrupted"}  # blocks of every function


class _Part(NamedTuple):
    loop: Loop
    head: list[str]
    lines: list[str]
    mark: str


class LoopFunctions:
    """The loops of a program that become functions, whose texts are put into `modules` by their names.
    `constant(value, numbers)` gives the lines that store a constant, `sizes(text)` those that compute
    the open sizes of a text."""

    def __init__(
        self,
        writer: Writer,
        constant: Callable[[int, Sequence[object]], list[str]],
        sizes: Callable[[str], list[str]],
        modules: dict[str, str],
    ) -> None:
        self._writer, self._constant, self._sizes, self._modules = writer, constant, sizes, modules
        self._parts: list[_Part] = []

    def put(self, loop: Loop, head: list[str], lines: list[str]) -> None:
        """The loop, whose own memory and lines these are, stands here."""
        mark = f" ; loop {len(self._parts)}"
        self._parts.append(_Part(loop, head, lines, mark))
        self._writer.lines.append(mark)

    def write(self) -> None:
        """Puts a call, and the lines where that does not go, in the place of each mark."""
        writer = self._writer
        for part in self._parts:
            others = [each for each in self._parts if each is not part]
            found = self._function(part, "\n".join([*writer.lines, *(x for o in others for x in o.lines)]))
            place = writer.lines.index(part.mark)
            if found is None:
                writer.head += part.head
                writer.lines[place : place + 1] = part.lines
                continue
            text, addresses = found
            name = self._named("loop", text)
            writer.declarations[name] = f"declare i32 @{name}({', '.join(['ptr'] * len(addresses))})"
            writer.lines[place : place + 1] = self._call(name, addresses)
        for shared, text in writer.functions.items():
            is_long = text.startswith("define internal void ") and text.count("\n") >= _LONG
            if is_long and any(f"@{shared}(" in line for line in writer.lines):
                self._put_apart(shared, text)

    def _put_apart(self, shared: str, text: str) -> None:
        """A long function that is called outside of loops is a module, too."""
        writer = self._writer
        begin, body = text.replace("noinline ", "", 1).split("{", 1)
        begin = begin.replace("internal ", "", 1)
        others = [
            *[x for name, x in writer.functions.items() if name != shared],
            *writer.declarations.values(),
        ]
        text = _renamed("{".join([begin.replace(f"@{shared}(", "@whole("), body]))
        name = self._named("long", _with_needed(text, others))
        kinds = [each.split()[0] for each in begin[begin.index("(") + 1 : begin.index(")")].split(",")]
        writer.declarations[name] = f"declare void @{name}({', '.join(kinds)})"
        writer.lines[:] = [line.replace(f"@{shared}(", f"@{name}(") for line in writer.lines]

    def _named(self, kind: str, text: str) -> str:
        """The name of a module's function by its text, which is noted."""
        name = f"{kind}_{hashlib.sha256(text.encode()).hexdigest()[:32]}"
        self._modules[name] = text.replace("@whole(", f"@{name}(", 1)
        return name

    def _call(self, name: str, addresses: Sequence[str]) -> list[str]:
        code, ran, failed = f"%c{self._writer.label()}", self._writer.label(), self._writer.label()
        given = ", ".join(f"ptr %{each}" for each in addresses)
        return [
            f" {code} = call i32 @{name}({given})",
            f" switch i32 {code}, label %interrupted [ i32 0, label %{ran} i32 1, label %{failed} ]",
            f"{failed}:",
            " br label %fail",
            f"{ran}:",
        ]

    def _function(self, part: _Part, elsewhere: str) -> tuple[str, list[str]] | None:
        """The text of the function's module, and what it is called with; None if it takes more than
        addresses."""
        writer = self._writer
        own = "\n".join([*part.head, *part.lines])
        sizes = self._sizes(own)
        own = "\n".join([*sizes, own])
        inside = {a or b for a, b in _DEFINED.findall(own)} | _ENDS
        free = [name for name in dict.fromkeys(_NAME.findall(own)) if name not in inside]
        begun = [*writer.head, *[line for line in writer.lines if _INPUT.match(line)]]
        made = {line.split(" = ")[0].strip(" %"): line for line in begun if " = " in line}
        if not made.keys() >= set(free):
            return None
        wanted = {*_NAME.findall(elsewhere)}
        wanted |= {x for line in writer.head for x in _NAME.findall(line.split(" = ")[-1])}
        numbers = {f"m{value}": (value, known) for value, known in writer.program.constants}
        asked = {f"m{x}" for x in _read_before(writer, part.loop)}
        arguments, addresses = list[str](), list[str]()
        memory, before, after = list[str](), list[str](), list[str]()
        for name in free:
            size = _size(made[name])
            if size and name not in wanted:
                memory.append(made[name])
            elif size and name in numbers and name not in asked:
                memory.append(made[name])
                before += self._constant(*numbers[name])
            else:
                addresses.append(name)
                is_small = 0 < size <= _SMALL
                arguments.append(f"ptr{' noalias' * (size > 0)} %{name}{'_out' * is_small}")
                if is_small:
                    memory.append(made[name])
                    before.append(_copied(name, f"{name}_out", size))
                    after.append(_copied(f"{name}_out", name, size))
        writer.declarations["llvm.memcpy.p0.p0.i64"] = (
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
        )
        lines = [f"define i32 @whole({', '.join(arguments)}) {{", "entry:", " %outcome = alloca i32"]
        lines += [
            *sizes,
            *memory,
            *part.head,
            " store i32 0, ptr %outcome",
            *before,
            *part.lines,
            " br label %leave",
        ]
        for number, end in enumerate(("fail", "interrupted"), 1):
            lines += [f"{end}:", f" store i32 {number}, ptr %outcome", " br label %leave"]
        lines += ["leave:", *after, " %code = load i32, ptr %outcome", " ret i32 %code", "}"]
        text = _renamed("\n".join(lines))
        text = _with_needed(text, [*writer.functions.values(), *writer.declarations.values()])
        return text, addresses


def loops_apart(program: Program) -> list[tuple[Hashable, int]]:
    """The loops that become functions, if any do, without text: something by which loops of equal functions
    are alike, and how many statements each has."""
    loops = [each for each in program.body if isinstance(each, Loop)]
    inner = [list(program.statements((loop,))) for loop in loops]
    return [(_alike(program, body), len(body)) for body in inner if len(body) > FEWEST_STATEMENTS]


def _alike(program: Program, body: Sequence[Statement | Loop]) -> Hashable:
    """The statements with their values numbered anew, and the types and shapes of these."""
    numbers: dict[int, int] = {}
    found: list[Hashable] = []
    for each in body:
        values = (*each.operands, *each.results) if isinstance(each, Statement) else sum(each.states, ())
        kind = (each.op, each.attributes) if isinstance(each, Statement) else "loop"
        places = [numbers.setdefault(x, len(numbers)) for x in values]
        found.append((kind, *places, *[(program.values[x].dtype, program.values[x].dims) for x in values]))
    return tuple(found)


def _read_before(writer: Writer, loop: Loop) -> set[int]:
    """The memories that are read to find out whether there is another iteration."""
    found = set()
    for each in writer.program.statements(loop.before):
        operands = each.operands if isinstance(each, Statement) else [each.predicate]
        found |= {writer.values[x].memory for x in operands}
    return found


def _size(line: str) -> int:
    """The bytes that a line makes memory of; 0 if it does something else."""
    found = _ALLOCATED.search(line)
    if found is None:
        return 0
    count, kind, one = found.groups()
    return int(count or 1) * _BYTES[kind or one]


def _copied(target: str, source: str, size: int) -> str:
    return f" call void @llvm.memcpy.p0.p0.i64(ptr %{target}, ptr %{source}, i64 {size}, i1 false)"


def _renamed(text: str) -> str:
    """The text with other names of values and blocks, by their order, and of functions that are shared."""
    names: dict[str, str] = {}

    def renamed(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        new = names.setdefault(name, f"x{len(names)}")
        return f"%{new}" if found[1] else f"{new}:"

    return _LOCAL.sub(renamed, text)


def _with_needed(text: str, others: Sequence[str]) -> str:
    """The text with those of the functions, declarations and constants that it mentions."""
    whole = "\n".join([*needed(text, others), text])
    names: dict[str, str] = {}

    def renamed(found: re.Match[str]) -> str:
        sign = "@part" if found[0].startswith("@") else "!"
        return names.setdefault(found[0], f"{sign}{len(names)}")

    return _NUMBERED.sub(renamed, whole)


def needed(text: str, others: Iterable[str]) -> list[str]:
    """Those of other texts that this one mentions something of, or they of each other, in the order in which
    they are mentioned. A function that is called once has LLVM put it in the place of its call."""
    of: Mapping[str, str] = {a or b: each for each in others for a, b in _MADE.findall(each)}
    found: dict[str, None] = {}
    waiting, seen = [text], set[str]()
    while waiting:
        for name in dict.fromkeys(_GLOBAL.findall(waiting.pop(0))):
            if name in of and name not in seen:
                seen.add(name)
                if of[name] not in found:
                    found[of[name]] = None
                    waiting.append(of[name])
    result = []
    whole = "\n".join([text, *found])
    for each in found:
        (name, *_) = [a or b for a, b in _MADE.findall(each)]
        is_once = len(re.findall(rf"call [^\n]*{re.escape(name)}\(", whole)) < 2
        result.append(each.replace(") noinline {", ") {", 1) if is_once and "shared" in name else each)
    return result
