"""LLVM's text of functions with loops: an `Emitter` that also writes counted loops, conditions and variables.

What changes in a loop is a *variable*, a place on the stack that LLVM keeps in a register. Whole numbers are
i64, addresses ptr. Vectors are of float32; memory at the end of a row is read and written under a mask.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from flowstone.native.codegen.emitter import Emitter

__all__ = ["Code"]

_VECTOR = "float32"


class Code(Emitter):
    """One function's text so far: ``text()`` when it is complete. `one` adds scalars to it.

    `parameters`: the types and names of what it takes, such as ``ptr a``. If `is_public`, others find it by
    its name.
    """

    def __init__(
        self,
        name: str,
        parameters: Sequence[str],
        lanes: int,
        declarations: dict[str, str],
        is_public: bool = False,
    ) -> None:
        super().__init__(lanes, declarations)
        self._name, self._parameters, self._linkage = name, parameters, "" if is_public else "internal "
        self._places: list[str] = []
        self._blocks = 0
        self.one = Emitter(1, declarations, "s")  # the same text, by scalars
        self.one.lines = self.lines

    def text(self) -> str:
        """The whole function, which returns nothing."""
        words = ", ".join(f"{kind} %{name}" for kind, name in (p.split() for p in self._parameters))
        head = f"define {self._linkage}void @{self._name}({words}) noinline nounwind {{\nentry:"
        return "\n".join([head, *self._places, *self.lines, " ret void\n}"])

    def takes(self, *parameters: str) -> None:
        """Adds parameters, where they are not there yet, after those that it takes."""
        self._parameters = list(dict.fromkeys([*self._parameters, *parameters]))

    # ---- variables and blocks

    def variable(self, kind: str, value: str) -> str:
        """The place of a new variable that has this value now."""
        place = f"%place{len(self._places)}"
        self._places.append(f" {place} = alloca {kind}")
        self.do(f"store {kind} {value}, ptr {place}")
        return place

    def array(self, kind: str, count: int) -> str:
        """The address of so many elements on the stack."""
        place = f"%place{len(self._places)}"
        self._places.append(f" {place} = alloca [{count} x {kind}], align 64")
        return place

    def get(self, kind: str, place: str) -> str:
        """What is in memory at an address, or in a variable."""
        return self.let(f"load {kind}, ptr {place}")

    def set(self, kind: str, place: str, value: str) -> None:
        """Puts a value there."""
        self.do(f"store {kind} {value}, ptr {place}")

    @contextlib.contextmanager
    def loop(self, start: str | int, end: str | int, step: str | int = 1) -> Iterator[str]:
        """Runs what is written within for each number from start to, not including, end."""
        self._blocks += 1
        names = [f"{word}{self._blocks}" for word in ("head", "body", "done")]
        head, body, done = names
        counter = self.variable("i64", str(start))
        self.do(f"br label %{head}")
        self.lines.append(f"{head}:")
        i = self.get("i64", counter)
        self.do(f"br i1 {self.let(f'icmp slt i64 {i}, {end}')}, label %{body}, label %{done}")
        self.lines.append(f"{body}:")
        yield i
        self.set("i64", counter, self.add(i, step))
        self.do(f"br label %{head}")
        self.lines.append(f"{done}:")

    @contextlib.contextmanager
    def repeat(self) -> Iterator[Callable[[str], None]]:
        """Runs what is written within again and again; ``leave(condition)``, called there, ends it where the
        condition, an i1, holds."""
        self._blocks += 1
        head, done = f"head{self._blocks}", f"done{self._blocks}"
        self.do(f"br label %{head}")
        self.lines.append(f"{head}:")

        def leave(condition: str) -> None:
            self._blocks += 1
            stay = f"stay{self._blocks}"
            self.do(f"br i1 {condition}, label %{done}, label %{stay}")
            self.lines.append(f"{stay}:")

        yield leave
        self.do(f"br label %{head}")
        self.lines.append(f"{done}:")

    @contextlib.contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Runs what is written within if the condition, an i1, holds."""
        self._blocks += 1
        inside, after = f"then{self._blocks}", f"after{self._blocks}"
        self.do(f"br i1 {condition}, label %{inside}, label %{after}")
        self.lines.append(f"{inside}:")
        yield
        self.do(f"br label %{after}")
        self.lines.append(f"{after}:")

    def vectors(self, count: str, together: int = 1) -> Iterator[tuple[str, list[str]]]:
        """(element, masks): what is written for each runs from that element on for a vector a mask. Whole
        vectors, so many `together`, have empty masks; the last pair is for what is left of `count` elements.
        """
        done: str = "0"
        for number in dict.fromkeys((together, 1)):
            size = number * self.lanes
            end = self.mul(self.quotient(count, size), size)
            with self.loop(done, end, size) as i:
                yield i, [""] * number
            done = end
        with self.when(self.let(f"icmp slt i64 {done}, {count}")):
            yield done, [self.mask(self.sub(count, done))]

    # ---- whole numbers and addresses

    def add(self, a: str | int, b: str | int) -> str:
        """a + b."""
        return self.let(f"add nsw i64 {a}, {b}")

    def sub(self, a: str | int, b: str | int) -> str:
        """a - b."""
        return self.let(f"sub nsw i64 {a}, {b}")

    def mul(self, a: str | int, b: str | int) -> str:
        """a * b."""
        return self.let(f"mul nsw i64 {a}, {b}")

    def quotient(self, a: str | int, b: str | int) -> str:
        """a / b without the rest, of numbers that are not negative."""
        return self.let(f"udiv i64 {a}, {b}")

    def rest(self, a: str | int, b: str | int) -> str:
        """What is left of a / b."""
        return self.let(f"urem i64 {a}, {b}")

    def least(self, a: str | int, b: str | int) -> str:
        """The smaller of two numbers."""
        return self.let(f"select i1 {self.let(f'icmp slt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def most(self, a: str | int, b: str | int) -> str:
        """The larger of two numbers."""
        return self.let(f"select i1 {self.let(f'icmp sgt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def within(self, i: str, end: str | int) -> str:
        """Whether 0 <= i < end, as an i1."""
        return self.let(f"icmp ult i64 {i}, {end}")  # of a negative number, a large one

    def at(self, address: str, i: str | int, kind: str = "float") -> str:
        """The address of the i-th element from there."""
        return self.let(f"getelementptr {kind}, ptr {address}, i64 {i}")

    def word(self, address: str, i: int) -> str:
        """The i-th of an array of whole numbers."""
        return self.get("i64", self.at(address, i, "i64"))

    def pointer(self, address: str, i: int) -> str:
        """The i-th of an array of addresses."""
        return self.get("ptr", self.at(address, i, "ptr"))

    # ---- vectors

    @property
    def wide(self) -> str:
        """The type of a vector of float32."""
        return self.type(_VECTOR)

    def number(self, value: float) -> str:
        """The vector of one number."""
        return self.constant(_VECTOR, value)

    def splat(self, scalar: str) -> str:
        """The vector of one float."""
        first = self.let(f"insertelement {self.wide} poison, float {scalar}, i32 0")
        return self.let(
            f"shufflevector {self.wide} {first}, {self.wide} poison, <{self.lanes} x i32> zeroinitializer"
        )

    def read(self, address: str, mask: str = "") -> str:
        """The vector at an address; under a mask zeros elsewhere."""
        if not mask:
            return self.let(f"load {self.wide}, ptr {address}, align 4")
        name, bits = f"llvm.masked.load.v{self.lanes}f32.p0", self.vector("i1")
        self.declarations[name] = f"declare {self.wide} @{name}(ptr, {bits}, {self.wide})"
        return self.let(
            f"call {self.wide} @{name}(ptr align 4 {address}, {bits} {mask}, {self.wide} zeroinitializer)"
        )

    def write(self, address: str, value: str, mask: str = "") -> None:
        """Puts a vector there."""
        if not mask:
            self.do(f"store {self.wide} {value}, ptr {address}, align 4")
            return
        name, bits = f"llvm.masked.store.v{self.lanes}f32.p0", self.vector("i1")
        self.declarations[name] = f"declare void @{name}({self.wide}, ptr, {bits})"
        self.do(f"call void @{name}({self.wide} {value}, ptr align 4 {address}, {bits} {mask})")

    def gather(self, address: str, apart: str, mask: str) -> str:
        """The vector of elements that lie so many apart, from an address on; under the mask zeros."""
        numbers, pointers, bits = self.vector("i64"), self.vector("ptr"), self.vector("i1")
        first = self.let(f"insertelement {numbers} poison, i64 {apart}, i32 0")
        every = self.let(
            f"shufflevector {numbers} {first}, {numbers} poison, <{self.lanes} x i32> zeroinitializer"
        )
        lanes = ", ".join(f"i64 {i}" for i in range(self.lanes))
        offsets = self.let(f"mul {numbers} {every}, <{lanes}>")
        places = self.let(f"getelementptr float, ptr {address}, {numbers} {offsets}")
        name = f"llvm.masked.gather.v{self.lanes}f32.v{self.lanes}p0"
        self.declarations[name] = f"declare {self.wide} @{name}({pointers}, {bits}, {self.wide})"
        arguments = f"{pointers} align 4 {places}, {bits} {mask}, {self.wide} zeroinitializer"
        return self.let(f"call {self.wide} @{name}({arguments})")

    def mask(self, count: str) -> str:
        """The mask of the first `count` lanes."""
        number = self.let(f"trunc i64 {count} to i32")
        kind = self.vector("i32")
        first = self.let(f"insertelement {kind} poison, i32 {number}, i32 0")
        every = self.let(f"shufflevector {kind} {first}, {kind} poison, <{self.lanes} x i32> zeroinitializer")
        places = ", ".join(f"i32 {i}" for i in range(self.lanes))
        return self.let(f"icmp slt {kind} <{places}>, {every}")

    def fma(self, a: str, b: str, c: str) -> str:
        """a * b + c, rounded once."""
        return self.intrinsic("fma", _VECTOR, a, b, c)

    def plus(self, a: str, b: str) -> str:
        """a + b."""
        return self.binary("fadd", _VECTOR, a, b)

    def minus(self, a: str, b: str) -> str:
        """a - b."""
        return self.binary("fsub", _VECTOR, a, b)

    def times(self, a: str, b: str) -> str:
        """a * b."""
        return self.binary("fmul", _VECTOR, a, b)
