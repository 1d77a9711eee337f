"""What LLVM's text of programs is written with: the lines so far, the values' memory, and how elements are
read, set, copied and repeated. `Writer` knows nothing of what statements mean.

Every value has memory on the stack of the thread that runs, padded to whole vectors, which LLVM turns into
registers where it is small: so statements, branches and loops are written one after the other, without a
thought for what is live.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.native.codegen import host
from flowstone.native.codegen.emitter import KINDS, SIZES, Emitter
from flowstone.native.programs.open_sizes import Open, is_at_most, is_open
from flowstone.native.programs.program_memory import FEW_VECTORS, needs_padding
from flowstone.native.programs.programs import Program

__all__ = ["Writer", "memory_kind"]

_WRITTEN_OUT = 4  # turns of a loop in code that runs once


class Writer:
    """Lines of a function of LLVM over the values of a program."""

    def __init__(self, program: Program, declarations: dict[str, str]) -> None:
        self.program, self.values, self.declarations = program, program.values, declarations
        self.lanes = host.lanes()
        self.scalars, self.vectors = Emitter(1, declarations, "s"), Emitter(self.lanes, declarations, "v")
        self.lines: list[str] = []
        self.scalars.lines = self.vectors.lines = self.lines
        self.head: list[str] = []  # what the function's entry begins with
        self.functions: dict[str, str] = {}  # texts of those that this one calls, by names
        self.shared: dict[Any, str] = {}  # names of those that equal statements share
        self.runs_once, self.is_open = not program.has_loops, program.is_open
        self.reads = program.reads()
        self.copied = needs_padding(program)  # inputs whose elements are copied to memory of whole vectors
        self._labels = 0

    # ---- memory

    def allocate(self, name: str, kind: str, count: int = 1, align: int = 64) -> None:
        """Memory of the running thread under this name."""
        what = kind if count == 1 else f"{kind}, i64 {count}" if is_open(count) else f"[{count} x {kind}]"
        self.head.append(f" {name} = alloca {what}, align {align}")

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

    def copy(self, target: int, source: int) -> None:
        """The value of `target` becomes that of `source`."""
        value = self.values[target]
        if value.size == 1:
            self.store(target, self.load(source))
        elif is_at_most(value.size, FEW_VECTORS * self.lanes) and self._is_padded(source):
            for i in range(-(-value.size // self.lanes)):
                place = str(i * self.lanes)
                self.store_vector(target, self.load_vector(source, place, raw=True), place, raw=True)
        else:
            self.copy_bytes(self.address(target), self.address(source), value.size * SIZES[value.dtype])

    def _is_padded(self, value: int) -> bool:
        memory = self.values[value].memory
        return memory >= self.program.inputs or memory in self.copied

    def plus(self, text: str, number: int) -> str:
        """An index of so much more; `text`: an index, or an instruction that gives one."""
        value = self.scalars.let(text) if " " in text else text
        if not number:
            return value
        return str(int(value) + number) if value.isdigit() else self.scalars.let(f"add i64 {value}, {number}")

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

    def for_each(self, count: int | str | Open, write: Callable[[str], object]) -> None:
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

    def _rolled(self, count: int | str | Open) -> str:
        """What keeps LLVM from writing out turns of a long loop, which takes it longer than it saves in code
        that runs once."""
        if not self.runs_once or not isinstance(count, int) or count <= _WRITTEN_OUT:
            return ""
        self.declarations["!rolled"] = '!100 = !{!"llvm.loop.unroll.disable"}'
        number = 100 + len(self.declarations)
        self.declarations[f"!{number}"] = f"!{number} = distinct !{{!{number}, !100}}"
        return f", !llvm.loop !{number}"

    # ---- vectors

    def splat(self, value: int) -> str:
        """A scalar in all lanes."""
        return self.splat_of(self.load(value), KINDS[self.values[value].dtype])

    def splat_of(self, number: str, kind: str) -> str:
        """A number in all lanes."""
        vector = f"<{self.lanes} x {kind}>"
        first = self.vectors.let(f"insertelement {vector} poison, {kind} {number}, i32 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.vectors.let(f"shufflevector {vector} {first}, {vector} poison, {zeros}")

    def load_some(self, value: int, place: str, left: int) -> str:
        """The elements from this place on that are `left`, and zeros behind them."""
        if left >= self.lanes:
            return self.load_vector(value, place)
        dtype = self.values[value].dtype
        vector, kind = self.vectors.type(dtype), KINDS[dtype]
        name = f"llvm.masked.load.v{self.lanes}{ {'float': 'f32', 'double': 'f64'}.get(kind, kind) }.p0"
        mask = f"<{self.lanes} x i1>"
        self.declarations[name] = f"declare {vector} @{name}(ptr, {mask}, {vector})"
        chosen = ", ".join(f"i1 {'true' if i < left else 'false'}" for i in range(self.lanes))
        address = f"ptr align {SIZES[dtype]} {self.element(value, place)}"
        return self.vectors.let(
            f"call {vector} @{name}({address}, {mask} <{chosen}>, {vector} zeroinitializer)"
        )

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
