"""LLVM's text of a program: ``i32 run(ptr addresses)``, which is 0 if the results are there, 1 if the program
must be run by other means, and 2 if its step must end, or a signal of Python ended it (`interruptions.py`).

`addresses` are those of the inputs, of the outputs and of the step, an object of Python. Here are the memory
of all values and the order of what runs: guards, loops and their states; `statement_texts.py` writes each
statement.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from flowstone.native.codegen.emitter import SIZES
from flowstone.native.codegen.parts import has_teams
from flowstone.native.programs import container_code
from flowstone.native.programs.interruptions import allow_interruptions, look_for_interruption
from flowstone.native.programs.loop_functions import FEWEST_STATEMENTS, LoopFunctions, needed
from flowstone.native.programs.open_sizes import definitions, is_open, register
from flowstone.native.programs.part_code import write_parts
from flowstone.native.programs.program_functions import write_shared
from flowstone.native.programs.program_memory import (
    arranged,
    given_directly,
    group_of_elements,
    open_places,
    own_bytes,
    padded,
)
from flowstone.native.programs.programs import Guard, Loop, Program, Statement
from flowstone.native.programs.row_parts import Part
from flowstone.native.programs.statement_texts import write_statements
from flowstone.native.programs.writer import Writer, memory_kind

__all__ = ["program_code"]

_MUCH = 1 << 15  # bytes of values on their own, which leave room in the first cache
_MOST_ON_A_STACK = 1 << 18
_MOST_OPEN = 1 << 23  # bytes of values of open sizes, beyond which ATen's kernels are as fast
_HEAP = {
    "aligned_alloc": "declare ptr @aligned_alloc(i64, i64)",
    "free": "declare void @free(ptr)",
}


def program_code(
    program: Program, declarations: dict[str, str], modules: dict[str, str] | None = None
) -> str:
    """The text of ``run`` and what it calls. Loops of some length are put into `modules`, if there are any,
    as texts of their own by the names of their functions (`loop_functions.py`)."""
    return _Run(program, declarations, modules).text()


class _Run(Writer):
    """Writes the function ``run``."""

    def __init__(
        self,
        program: Program,
        declarations: dict[str, str],
        modules: dict[str, str] | None,
        part: Part | None = None,
    ) -> None:
        super().__init__(program, declarations)
        self._modules, self._part = modules, part
        if part is not None:  # what is not by rows lies in memory of whole vectors already
            self.copied = {i for i in self.copied if part.inputs[i][1]}
        self._apart: LoopFunctions | None = None
        if modules is not None and program.containers:  # sequences, whose lengths may vary
            self._apart = LoopFunctions(self, self._constant_lines, self._sizes, modules)
        self.runs_once = self.runs_once or self._apart is not None
        self._needs: list[str] = []  # conditions on memory on the heap
        self._frees: list[str] = []
        self._open: dict[int, int] = {}  # the places of values of open sizes
        self._given = given_directly(program)
        self._guard: Guard = ()
        self._guard_end = ""

    def text(self) -> str:
        program = self.program
        self._memory()
        if self._part is None:
            container_code.begin(self)
        else:
            container_code.take(self, program.inputs + len(program.outputs))
        for condition in self._needs:
            self.require(condition)
        self._take_inputs()
        for value, numbers in program.constants:
            self._constant(value, numbers)
        self._block(program.body)
        self._give_outputs()
        self.lines.append(" br label %end")
        self.lines += ["fail:", " store i32 1, ptr %status", " br label %end"]
        self.lines += ["interrupted:", " store i32 2, ptr %status", " br label %end", "end:"]
        if self._part is None:
            container_code.end(self)
        self.lines += self._frees
        self.lines += [" %code = load i32, ptr %status", " ret i32 %code"]
        if self._apart is not None:
            self._apart.write()
        begin = self.head[: self.is_open]
        sizes = self._sizes("\n".join([*self.head, *self.lines]))
        head = [*begin, *sizes, *self.head[self.is_open :]]
        lines = ["define internal i32 @run(ptr %a) {", "entry:", *head, *self.lines, "}"]
        body = "\n".join(lines)
        return "\n".join([*needed(body, self.functions.values()), body])

    def _sizes(self, text: str) -> list[str]:
        """The lines that begin with the named sizes and compute the others of a text."""
        lines, names = [], self.program.open_names
        own = definitions(text, {register(name) for name in names})
        for i, name in enumerate(names):
            if own or register(name) in text:
                lines.append(f' %"place {i}" = getelementptr i64, ptr %sizes, i64 {i}')
                lines.append(f' {register(name)} = load i64, ptr %"place {i}"')
        return lines + own

    # ---- memory

    def _memory(self) -> None:
        if self.is_open:
            place = self.program.inputs + len(self.program.outputs) + 1
            self.head.append(f" %sizes = getelementptr i64, ptr %a, i64 {place}")
        self.allocate("%status", "i32", align=4)
        self.head.append(" store i32 0, ptr %status")
        if self.program.has_loops and self._part is None:
            allow_interruptions(self)
        places = self._shared_memory()
        self._open_memory()
        for number, value in enumerate(self.values):
            if value.memory != number or (number < self.program.inputs and number not in self.copied):
                continue
            if number in self._given:
                place = self.program.inputs + self._given[number]
                self.head.append(f" %given{number} = getelementptr ptr, ptr %a, i64 {place}")
                self.head.append(f" %m{number} = load ptr, ptr %given{number}")
                continue
            if number in self._open:
                start = f"%open_start{self._open[number]}"
                self.head.append(f" %m{number} = getelementptr i8, ptr %open_memory, i64 {start}")
                continue
            if number in places:
                self.head.append(f" %m{number} = getelementptr i8, ptr %memory, i64 {places[number]}")
                continue
            count = 1 if value.size == 1 else padded(value.size)
            self.allocate(f"%m{number}", memory_kind(value.dtype), count)

    def _open_memory(self) -> None:
        """The places of values of open sizes, on the heap; the program gives up if they are many bytes."""
        if not self.is_open:
            return
        self._open, sizes = open_places(self.program, self.copied)
        if not self._open:
            return
        self.declarations.update(_HEAP)
        starts = [f"%open_start{i}" for i in range(len(sizes) + 1)]
        self.head.append(f" {starts[0]} = add i64 0, 0")
        for start, size, following in zip(starts, sizes, starts[1:]):
            self.head.append(f" {following} = add i64 {start}, {size}")
        self.head += [
            f" %open_fits = icmp ule i64 {starts[-1]}, {_MOST_OPEN}",
            f" %open_size = select i1 %open_fits, i64 {starts[-1]}, i64 64",
            " %open_memory = call ptr @aligned_alloc(i64 64, i64 %open_size)",
            " %open_is_there = icmp ne ptr %open_memory, null",
        ]
        self._needs += ["%open_fits", "%open_is_there"]
        self._frees.append(" call void @free(ptr %open_memory)")

    def _shared_memory(self) -> dict[int, int]:
        """The places of values that share memory, where all on their own would be much; on the heap beyond
        what a stack may have."""
        if own_bytes(self.program) <= _MUCH:
            return {}
        places, size = arranged(self.program, self.copied)
        if size <= _MOST_ON_A_STACK:
            self.allocate("%memory", "i8", size)
            return places
        self.declarations.update(_HEAP)
        size = -(-size // 64) * 64
        self.head.append(f" %memory = call ptr @aligned_alloc(i64 64, i64 {size})")
        self.head.append(" %memory_is_there = icmp ne ptr %memory, null")
        self._needs.append("%memory_is_there")
        self._frees.append(" call void @free(ptr %memory)")
        return places

    def _take_inputs(self) -> None:
        for i in range(self.program.inputs):
            value = self.values[i]
            name = f"%in{i}" if i in self.copied else f"%m{i}"
            self.lines += [
                f" %ia{i} = getelementptr ptr, ptr %a, i64 {i}",
                f" {name} = load ptr, ptr %ia{i}",
            ]
            if i in self.copied:
                self.copy_bytes(f"%m{i}", name, value.size * SIZES[value.dtype])

    def _give_outputs(self) -> None:
        for i, number in enumerate(self.program.outputs):
            if number in self._given:
                continue
            value = self.values[number]
            place = self.scalars.let(f"getelementptr ptr, ptr %a, i64 {self.program.inputs + i}")
            target = self.scalars.let(f"load ptr, ptr {place}")
            self.copy_bytes(target, self.address(number), value.size * SIZES[value.dtype])

    def _constant(self, value: int, numbers: Sequence[Any]) -> None:
        dtype = self.values[value].dtype
        kind = memory_kind(dtype)
        for i, number in enumerate(numbers):
            place = self.element(value, str(i))
            if is_open(number):
                number = number if kind == "i64" else self.scalars.let(f"trunc i64 {number} to {kind}")
                self.lines.append(f" store {kind} {number}, ptr {place}")
                continue
            text = self.scalars.constant(dtype, number)
            text = {"true": "1", "false": "0"}.get(text, text)
            self.lines.append(f" store {kind} {text}, ptr {place}")

    def _constant_lines(self, value: int, numbers: Sequence[Any]) -> list[str]:
        outer = self._begin_lines([])
        self._constant(value, numbers)
        return self._begin_lines(outer)

    def _begin_lines(self, lines: list[str]) -> list[str]:
        """What follows is written there; returns where it was written before."""
        before = self.lines
        self.lines = self.scalars.lines = self.vectors.lines = lines
        return before

    # ---- order

    def _enter(self, guard: Guard) -> None:
        """Sees to it that what follows is run where the guard holds."""
        if guard == self._guard:
            return
        if self._guard_end:
            self.begin(self._guard_end)
        self._guard, self._guard_end = guard, ""
        if not guard:
            return
        inside, self._guard_end = self.label(), self.label()
        either = "false"
        for term in guard:
            both = "true"
            for predicate, wanted in term:
                asked = self.load(predicate)
                asked = asked if wanted else self.scalars.let(f"xor i1 {asked}, true")
                both = self.scalars.let(f"and i1 {both}, {asked}")
            either = self.scalars.let(f"or i1 {either}, {both}")
        self.lines += [f" br i1 {either}, label %{inside}, label %{self._guard_end}", f"{inside}:"]

    def _block(self, body: Sequence[Statement | Loop]) -> None:
        outer, self._guard, self._guard_end = (self._guard, self._guard_end), (), ""
        i = 0
        while i < len(body):
            each = body[i]
            self._enter(each.guard)
            if isinstance(each, Loop):
                self._whole_loop(each)
                i += 1
                continue
            group = group_of_elements(self.program, body, i)
            if not write_shared(self, group or [each]):
                write_statements(self, group or [each])
            i += len(group) or 1
        self._enter(())
        self._guard, self._guard_end = outer

    def _whole_loop(self, loop: Loop) -> None:
        """In lines of its own, if it is in no other and has some length."""
        if loop.parts and self._modules is not None and has_teams():
            write_parts(self, loop, self._module_of)
            return
        inner = list(self.program.statements((*loop.before, *loop.body)))
        if self._apart is None or len(inner) < FEWEST_STATEMENTS:
            once, self.runs_once = self.runs_once, False
            self._loop(loop)
            self.runs_once = once
            return
        apart, self._apart, self.runs_once = self._apart, None, False
        lines, (head, self.head) = self._begin_lines([]), (self.head, [])
        self._loop(loop)
        own, (own_head, self.head) = self._begin_lines(lines), (self.head, head)
        self._apart, self.runs_once = apart, True
        apart.put(loop, own_head, own)

    def _module_of(self, part: Part) -> str:
        """The name of the function of a loop's part, whose text is noted; equal parts have equal texts."""
        declarations: dict[str, str] = {}
        text = _Run(part.program, declarations, None, part).text()
        text = "\n".join([*declarations.values(), text]).replace(
            "define internal i32 @run(", "define i32 @whole(", 1
        )
        name = f"rows_{hashlib.sha256(text.encode()).hexdigest()[:32]}"
        assert self._modules is not None
        self._modules[name] = text.replace("@whole(", f"@{name}(", 1)
        self.declarations[name] = f"declare i32 @{name}(ptr)"
        return name

    def _loop(self, loop: Loop) -> None:
        head, inside, after = self.label(), self.label(), self.label()
        for first, state, _ in loop.states:
            self.copy(state, first)
        self.begin(head)
        self._block(loop.before)
        more = self.load(loop.predicate)
        self.lines += [f" br i1 {more}, label %{inside}, label %{after}", f"{inside}:"]
        self._block(loop.body)
        self._next_values(loop)
        if self._part is None:  # only the thread that Python knows may ask
            look_for_interruption(self, loop)
        self.lines += [f" br label %{head}", f"{after}:"]

    def _next_values(self, loop: Loop) -> None:
        """Sets the states all at once."""
        states = {state for _, state, _ in loop.states}
        moved = [(s, x) for _, s, x in loop.states if self.values[x].memory != self.values[s].memory]
        waiting = []
        for state, following in moved:
            if self.values[following].memory in states:
                name = f"%t{self.label()}"
                value = self.values[following]
                self.allocate(name, memory_kind(value.dtype), 1 if value.size == 1 else padded(value.size))
                self.copy_bytes(name, self.address(following), value.size * SIZES[value.dtype])
                waiting.append((state, name, value))
        for state, following in moved:
            if self.values[following].memory not in states:
                self.copy(state, following)
        for state, name, value in waiting:
            self.copy_bytes(self.address(state), name, value.size * SIZES[value.dtype])
