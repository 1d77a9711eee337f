"""LLVM's text of a program: ``i32 run(ptr addresses)``, which is 0 if the results are there, 1 if the program
must be run by other means, and 2 if its step must end, or a signal of Python ended it (`interruptions.py`).

`addresses` are those of the inputs, of the outputs and of the step, an object of Python. Every value has
memory on the stack of the thread that runs, padded to whole vectors, which LLVM turns into registers where it
is small: so statements, branches and loops are written one after the other, without a thought for what is
live. Operations by element are one loop over vectors for all neighbours of one size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.native.codegen import host
from flowstone.native.codegen.emitter import KINDS, SIZES, Emitter
from flowstone.native.numerics.elements import ELEMENTS
from flowstone.native.programs import array_code, container_code
from flowstone.native.programs.interruptions import allow_interruptions, look_for_interruption
from flowstone.native.programs.program_functions import write_shared
from flowstone.native.programs.program_memory import (
    FEW_VECTORS,
    arranged,
    group_of_elements,
    own_bytes,
    padded,
)
from flowstone.native.programs.programs import Guard, Loop, Program, Statement
from flowstone.native.programs.statement_texts import STATEMENTS

__all__ = ["Writer", "program_code"]

_WRITTEN_OUT = 4  # turns of a loop in code that runs once
_MUCH = 1 << 15  # bytes of values on their own, which leave room in the first cache
_MOST_ON_A_STACK = 1 << 18


def program_code(program: Program, declarations: dict[str, str]) -> str:
    """The text of ``run`` and what it calls."""
    return Writer(program, declarations).text()


class Writer:
    """Writes the statements of a program; what `array_code` and `container_code` write with."""

    def __init__(self, program: Program, declarations: dict[str, str]) -> None:
        self.program, self.values, self.declarations = program, program.values, declarations
        self.lanes = host.lanes()
        self.scalars, self.vectors = Emitter(1, declarations, "s"), Emitter(self.lanes, declarations, "v")
        self.lines: list[str] = []
        self.scalars.lines = self.vectors.lines = self.lines
        self.functions: dict[str, str] = {}  # texts by names
        self.runs_once = not program.has_loops
        self.shared: dict[Any, str] = {}  # names of those that statements share
        self.head: list[str] = []
        self._frees: list[str] = []
        self._labels = 0
        self.reads = program.reads()
        self._guard: Guard = ()
        self._guard_end = ""
        self._padded = array_code.needs_padding(program)

    def text(self) -> str:
        program = self.program
        self._memory()
        if self._frees:
            self.require(self.scalars.let("icmp ne ptr %memory, null"))
        self._take_inputs()
        for value, numbers in program.constants:
            self._constant(value, numbers)
        container_code.begin(self)
        self._block(program.body)
        self._give_outputs()
        self.lines.append(" br label %end")
        self.lines += ["fail:", " store i32 1, ptr %status", " br label %end"]
        self.lines += ["interrupted:", " store i32 2, ptr %status", " br label %end", "end:"]
        container_code.end(self)
        self.lines += self._frees
        self.lines += [" %code = load i32, ptr %status", " ret i32 %code"]
        body = "\n".join(["define internal i32 @run(ptr %a) {", "entry:", *self.head, *self.lines, "}"])
        return "\n".join([*self.functions.values(), body])

    # ---- memory

    def allocate(self, name: str, kind: str, count: int = 1, align: int = 64) -> None:
        """Memory of the running thread under this name."""
        what = kind if count == 1 else f"[{count} x {kind}]"
        self.head.append(f" {name} = alloca {what}, align {align}")

    def _memory(self) -> None:
        self.allocate("%status", "i32", align=4)
        self.head.append(" store i32 0, ptr %status")
        if self.program.has_loops:
            allow_interruptions(self)
        places = self._shared_memory()
        for number, value in enumerate(self.values):
            if value.memory != number or (number < self.program.inputs and number not in self._padded):
                continue
            if number in places:
                self.head.append(f" %m{number} = getelementptr i8, ptr %memory, i64 {places[number]}")
                continue
            count = 1 if value.size == 1 else padded(value.size)
            self.allocate(f"%m{number}", memory_kind(value.dtype), count)

    def _shared_memory(self) -> dict[int, int]:
        """The places of values that share memory, where all on their own would be much; on the heap beyond
        what a stack may have."""
        if own_bytes(self.program) <= _MUCH:
            return {}
        places, size = arranged(self.program, self._padded)
        if size <= _MOST_ON_A_STACK:
            self.allocate("%memory", "i8", size)
            return places
        self.declarations.update(_HEAP)
        size = -(-size // 64) * 64
        self.head.append(f" %memory = call ptr @aligned_alloc(i64 64, i64 {size})")
        self._frees = [" call void @free(ptr %memory)"]
        return places

    def _take_inputs(self) -> None:
        for i in range(self.program.inputs):
            value = self.values[i]
            name = f"%in{i}" if i in self._padded else f"%m{i}"
            self.lines += [f" %ia{i} = getelementptr ptr, ptr %a, i64 {i}", f" {name} = load ptr, ptr %ia{i}"]
            if i in self._padded:
                self.copy_bytes(f"%m{i}", name, value.size * SIZES[value.dtype])

    def _give_outputs(self) -> None:
        for i, number in enumerate(self.program.outputs):
            value = self.values[number]
            place = self.scalars.let(f"getelementptr ptr, ptr %a, i64 {self.program.inputs + i}")
            target = self.scalars.let(f"load ptr, ptr {place}")
            self.copy_bytes(target, self.address(number), value.size * SIZES[value.dtype])

    def _constant(self, value: int, numbers: Sequence[Any]) -> None:
        dtype = self.values[value].dtype
        kind = memory_kind(dtype)
        for i, number in enumerate(numbers):
            place = self.element(value, str(i))
            text = self.scalars.constant(dtype, number)
            text = {"true": "1", "false": "0"}.get(text, text)
            self.lines.append(f" store {kind} {text}, ptr {place}")

    def address(self, value: int) -> str:
        """Where the value lies."""
        return f"%m{self.values[value].memory}"

    def element(self, value: int, index: str) -> str:
        """The address of its element of this index."""
        address = self.address(value)
        if index == "0":
            return address
        return self.scalars.let(
            f"getelementptr {memory_kind(self.values[value].dtype)}, ptr {address}, i64 {index}"
        )

    def copy_bytes(self, target: str, source: str, count: int | str) -> None:
        """Copies bytes between memory that does not overlap."""
        self.declarations["llvm.memcpy.p0.p0.i64"] = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
        self.lines.append(
            f" call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {count}, i1 false)"
        )

    def load(self, value: int, index: str = "0") -> str:
        """An element, or the scalar that the value is."""
        dtype = self.values[value].dtype
        return self.load_from(dtype, self.element(value, index))

    def load_from(self, dtype: str, address: str) -> str:
        """The number at an address."""
        found = self.scalars.let(f"load {memory_kind(dtype)}, ptr {address}, align {SIZES[dtype]}")
        return self.scalars.let(f"icmp ne i8 {found}, 0") if dtype == "bool" else found

    def store(self, value: int, number: str, index: str = "0") -> None:
        """Sets an element."""
        self.store_to(self.values[value].dtype, number, self.element(value, index))

    def store_to(self, dtype: str, number: str, address: str) -> None:
        """Sets the number at an address."""
        if dtype == "bool":
            number = self.scalars.let(f"zext i1 {number} to i8")
        self.lines.append(f" store {memory_kind(dtype)} {number}, ptr {address}, align {SIZES[dtype]}")

    def index(self, value: int) -> str:
        """An integer scalar as an index of 64 bits."""
        found, dtype = self.load(value), self.values[value].dtype
        return found if dtype == "int64" else self.scalars.let(f"sext {KINDS[dtype]} {found} to i64")

    # ---- control

    def label(self) -> str:
        """A new name of a block."""
        self._labels += 1
        return f"l{self._labels}"

    def begin(self, label: str) -> None:
        """What follows is in the block of this name, to which the one before goes on."""
        self.lines += [f" br label %{label}", f"{label}:"]

    def require(self, condition: str) -> None:
        """Gives up unless the condition holds."""
        going_on = self.label()
        self.lines += [f" br i1 {condition}, label %{going_on}, label %fail", f"{going_on}:"]

    def for_each(self, count: int | str, write: Any) -> None:
        """Has `write(index)` write what is done for each index below `count`."""
        name, head, inside, after = f"%n{self._labels}", self.label(), self.label(), self.label()
        self.allocate(name, "i64", align=8)
        self.lines.append(f" store i64 0, ptr {name}")
        self.begin(head)
        index = self.scalars.let(f"load i64, ptr {name}")
        more = self.scalars.let(f"icmp slt i64 {index}, {count}")
        self.lines += [f" br i1 {more}, label %{inside}, label %{after}", f"{inside}:"]
        write(index)
        following = self.scalars.let(f"add i64 {index}, 1")
        self.lines.append(f" store i64 {following}, ptr {name}")
        self.lines += [f" br label %{head}{self._rolled(count)}", f"{after}:"]

    def _rolled(self, count: int | str) -> str:
        """What keeps LLVM from writing out turns of a long loop, which takes it longer than it saves in code
        that runs once."""
        if not self.runs_once or not isinstance(count, int) or count <= _WRITTEN_OUT:
            return ""
        self.declarations["!rolled"] = '!100 = !{!"llvm.loop.unroll.disable"}'
        number = 100 + len(self.declarations)
        self.declarations[f"!{number}"] = f"!{number} = distinct !{{!{number}, !100}}"
        return f", !llvm.loop !{number}"

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
                self._loop(each)
                i += 1
                continue
            group = group_of_elements(self.program, body, i)
            if not write_shared(self, group or [each]):
                self.write(group or [each])
            i += len(group) or 1
        self._enter(())
        self._guard, self._guard_end = outer

    def write(self, statements: Sequence[Statement]) -> None:
        """Writes a statement, or several that are one loop over the elements."""
        if statements[0].op in ELEMENTS:
            self._elements(statements)
        else:
            (each,) = statements
            STATEMENTS[each.op](self, each)

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

    def copy(self, target: int, source: int) -> None:
        """The value of `target` becomes that of `source`."""
        value = self.values[target]
        if value.size == 1:
            self.store(target, self.load(source))
        elif value.size <= FEW_VECTORS * self.lanes and self._is_padded(source):
            for i in range(-(-value.size // self.lanes)):
                place = str(i * self.lanes)
                self.store_vector(target, self.load_vector(source, place, raw=True), place, raw=True)
        else:
            self.copy_bytes(self.address(target), self.address(source), value.size * SIZES[value.dtype])

    def _is_padded(self, value: int) -> bool:
        memory = self.values[value].memory
        return memory >= self.program.inputs or memory in self._padded

    # ---- by element

    def _elements(self, group: Sequence[Statement]) -> None:
        size = self.values[group[0].results[0]].size
        if size == 1:
            self._apply(group, self.scalars, "0", {})
        elif size <= FEW_VECTORS * self.lanes:
            for i in range(-(-size // self.lanes)):
                self._apply(group, self.vectors, str(i * self.lanes), {})
        else:
            fixed = {x: self.splat(x) for each in group for x in each.operands if self.values[x].size == 1}

            def vector(i: str) -> None:
                place = self.scalars.let(f"mul i64 {i}, {self.lanes}")
                self._apply(group, self.vectors, place, fixed)

            self.for_each(-(-size // self.lanes), vector)

    def _apply(self, group: Sequence[Statement], e: Emitter, place: str, fixed: dict[int, str]) -> None:
        """The statements for the vector, or scalar, at this place."""
        inside: dict[int, int] = {}
        for each in group:
            for x in each.operands:
                inside[self.values[x].memory] = inside.get(self.values[x].memory, 0) + 1
        computed: dict[int, str] = {}
        for each in group:
            operands = []
            for x in each.operands:
                memory = self.values[x].memory
                if memory in computed:
                    operands.append(computed[memory])
                elif e.lanes == 1:
                    operands.append(self.load(x))
                elif self.values[x].size == 1:
                    operands.append(fixed[x] if x in fixed else self.splat(x))
                else:
                    operands.append(self.load_vector(x, place))
            result = each.results[0]
            dtype = self.values[each.operands[-1]].dtype
            found = ELEMENTS[each.op].emit(e, dtype, operands, dict(each.attributes))
            memory = self.values[result].memory
            computed[memory] = found
            if inside.get(memory, 0) == self.reads[memory]:
                continue  # nobody else reads it
            if e.lanes == 1:
                self.store(result, found)
            else:
                self.store_vector(result, found, place)

    def splat(self, value: int) -> str:
        """A scalar in all lanes."""
        return self.splat_of(self.load(value), KINDS[self.values[value].dtype])

    def splat_of(self, number: str, kind: str) -> str:
        """A number in all lanes."""
        vector = f"<{self.lanes} x {kind}>"
        first = self.vectors.let(f"insertelement {vector} poison, {kind} {number}, i32 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.vectors.let(f"shufflevector {vector} {first}, {vector} poison, {zeros}")

    def load_vector(self, value: int, place: str, raw: bool = False) -> str:
        """The elements from this place on; `raw`: truths as bytes."""
        dtype = self.values[value].dtype
        vector = self.vectors.vector(memory_kind(dtype))
        address = self.element(value, place)
        found = self.vectors.let(f"load {vector}, ptr {address}, align {SIZES[dtype]}")
        if dtype == "bool" and not raw:
            return self.vectors.let(f"icmp ne {vector} {found}, zeroinitializer")
        return found

    def store_vector(
        self, value: int, found: str, place: str, left: int | None = None, raw: bool = False
    ) -> None:
        """Sets the elements from this place on, or only those that are `left`."""
        dtype = self.values[value].dtype
        vector = self.vectors.vector(memory_kind(dtype))
        if dtype == "bool" and not raw:
            found = self.vectors.let(f"zext {self.vectors.vector('i1')} {found} to {vector}")
        address = self.element(value, place)
        if left is None or left >= self.lanes:
            self.lines.append(f" store {vector} {found}, ptr {address}, align {SIZES[dtype]}")
            return
        kind = memory_kind(dtype)
        name = f"llvm.masked.store.v{self.lanes}{ {'float': 'f32', 'double': 'f64'}.get(kind, kind) }.p0"
        mask = f"<{self.lanes} x i1>"
        self.declarations[name] = f"declare void @{name}({vector}, ptr, {mask})"
        chosen = ", ".join(f"i1 {'true' if i < left else 'false'}" for i in range(self.lanes))
        place = f"ptr align {SIZES[dtype]} {address}"
        self.lines.append(f" call void @{name}({vector} {found}, {place}, {mask} <{chosen}>)")


def memory_kind(dtype: str) -> str:
    """LLVM's type of an element in memory."""
    return "i8" if dtype == "bool" else KINDS[dtype]


_HEAP = {
    "aligned_alloc": "declare ptr @aligned_alloc(i64, i64)",
    "free": "declare void @free(ptr)",
}
