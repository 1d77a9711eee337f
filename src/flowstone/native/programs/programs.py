"""`Program`: loops, conditionals and computations on small arrays, as a value that is compiled whole.

Values are numbered: the inputs first, then what statements compute. Each has a type and a static shape, and
either memory of its own or that of another value, of which it is a view. A `Statement` computes values, a
`Loop` repeats statements; both may have a guard: they run where it holds. Statements also push to, pop from,
read and write `Container`s, which the program makes and frees. Nothing has an effect outside, so that a
program which finds that it has to fail (a division by zero, an index out of range) can be run again by other
means. Equal programs have equal code. Printed, a line a statement:

    %0 = input float32[]
    %1 = constant 0 : int32[]
    loop %2 = (%1, %5), %3 = (%0, %6)
        %4 = Less(%2, %7) : bool[]
        while %4
        %5 = AddV2(%2, %8) : int32[]
        %6 = AddV2(%3, %3) : float32[]
    return %3
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from flowstone.native.clusters.clusters import Array
from flowstone.native.programs.open_sizes import is_open, names_of

__all__ = ["Builder", "Container", "Guard", "Loop", "Program", "Statement", "Value"]

Guard = tuple[tuple[tuple[int, bool], ...], ...]
"""A disjunction of conjunctions of (predicate, what it must be); empty: always."""


class Value(NamedTuple):
    """A value's type and shape, and whose memory it lies in: its own number, or that of another value."""

    dtype: str
    dims: tuple[int, ...]
    memory: int

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.dims)


class Container(NamedTuple):
    """A stack, an array of a number of elements that is known when it is made, or the rows that are kept for
    a sum of products (`summed_products.py`).

    `dtype` and `size` say what an element is; `clears`: an element of the array can be read once; `adds`: to
    what is there, instead of failing, when it is written again. What nothing was written to can be read, as
    zeros, if the shape of elements is `known`, or the array `learns` it from what is written first. An array
    of gradients is `of` another one, whose elements have its elements' shape. Elements lie `pitch` apart, 0
    being their size: of others' rows, which a part of a loop leaves out.
    """

    kind: str
    dtype: str
    size: int
    clears: bool = False
    adds: bool = False
    known: bool = False
    learns: bool = False
    of: int = -1
    pitch: int = 0


class Statement(NamedTuple):
    """An operation: its name (see `program_code.py`), the values it takes and makes, and its attributes."""

    op: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    attributes: tuple[tuple[str, Any], ...] = ()
    guard: Guard = ()


class Loop(NamedTuple):
    """Repeats `before`, and then `body` as long as the predicate holds. `states`: for each loop variable its
    first value, what it is in an iteration, and what it is in the next one. `parts`: how many rows each part
    has that is done on its own (`row_parts.py`)."""

    states: tuple[tuple[int, int, int], ...]
    before: tuple[Any, ...]
    predicate: int
    body: tuple[Any, ...]
    guard: Guard = ()
    parts: tuple[int, ...] = ()


class Program(NamedTuple):
    """The values, how many of them are inputs, which are constants, and what is computed of them."""

    values: tuple[Value, ...]
    inputs: int
    constants: tuple[tuple[int, tuple[Any, ...]], ...]
    containers: tuple[Container, ...]
    body: tuple[Statement | Loop, ...]
    outputs: tuple[int, ...]

    def array(self, value: int) -> Array:
        """A value's type and shape."""
        return Array(self.values[value].dtype, self.values[value].dims)

    def statements(self, body: Iterable[Statement | Loop] | None = None) -> Iterator[Statement | Loop]:
        """All statements and loops, those inside of loops too."""
        for each in self.body if body is None else body:
            yield each
            if isinstance(each, Loop):
                yield from self.statements(each.before)
                yield from self.statements(each.body)

    @property
    def has_loops(self) -> bool:
        """Whether nobody knows how long it runs."""
        return any(isinstance(each, Loop) for each in self.body)

    @property
    def open_names(self) -> list[int]:
        """The sizes that the inputs' shapes tell, where these are open."""
        dims = [n for value in self.values[: self.inputs] for n in value.dims]
        return names_of([n for n in dims if is_open(n) and n.is_named])

    @property
    def is_open(self) -> bool:
        """Whether only a run knows some sizes."""
        return any([is_open(n) for value in self.values for n in value.dims])

    def reads(self) -> list[int]:
        """How often the memory of each value is read."""
        counts = [0] * len(self.values)
        for each in self.statements():
            for value in _read_by(each):
                counts[self.values[value].memory] += 1
        for value in self.outputs:
            counts[self.values[value].memory] += 1
        return counts

    def __repr__(self) -> str:
        return "+".join(x.op for x in self.statements() if isinstance(x, Statement))

    def __str__(self) -> str:
        lines = [f"%{i} = input {self._type(i)}" for i in range(self.inputs)]
        lines += [f"%{i} = constant {_numbers(numbers)} : {self._type(i)}" for i, numbers in self.constants]
        lines += [f"container {i}: {_container_text(each)}" for i, each in enumerate(self.containers)]
        lines += self._lines(self.body, "")
        return "\n".join([*lines, "return " + ", ".join(f"%{i}" for i in self.outputs)])

    def _type(self, value: int) -> str:
        dtype, dims, memory = self.values[value]
        view = f" of %{memory}" if memory != value else ""
        return f"{dtype}[{','.join(map(str, dims))}]{view}"

    def _lines(self, body: Iterable[Statement | Loop], indent: str) -> list[str]:
        lines = []
        for each in body:
            guard = f" if {_guard_text(each.guard)}" if each.guard else ""
            if isinstance(each, Loop):
                states = ", ".join(f"%{state} = (%{first}, %{after})" for first, state, after in each.states)
                parts = f" in parts of {each.parts}" if each.parts else ""
                lines += [f"{indent}loop {states}{guard}{parts}", *self._lines(each.before, indent + "    ")]
                lines.append(f"{indent}    while %{each.predicate}")
                lines += self._lines(each.body, indent + "    ")
                continue
            results = ", ".join(f"%{i}" for i in each.results)
            words = ", ".join(f"%{i}" for i in each.operands)
            more = "".join(f" {key}={value}" for key, value in each.attributes)
            types = ", ".join(self._type(i) for i in each.results)
            lines.append(f"{indent}{results} = {each.op}({words}){more} : {types}{guard}")
        return lines


def _read_by(each: Statement | Loop) -> Iterator[int]:
    for term in each.guard:
        yield from (predicate for predicate, _ in term)
    if isinstance(each, Statement):
        yield from each.operands
        return
    yield each.predicate
    for first, state, following in each.states:
        yield from (first, state, following)


def _guard_text(guard: Guard) -> str:
    terms = [" and ".join(f"{'' if wanted else 'not '}%{i}" for i, wanted in term) for term in guard]
    return " or ".join(terms)


def _numbers(numbers: Sequence[Any]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else str(list(numbers))


def _container_text(container: Container) -> str:
    return f"{container.kind} of {container.dtype}[{container.size}]"


class Builder:
    """Makes a program a statement at a time. Blocks are nested: `begin_loop` … `begin_body` … `end_loop`.

    `add(..., at=value)` puts a statement where that value was made: outside of the loops that it is made
    outside of.
    """

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.constants: list[tuple[int, tuple[Any, ...]]] = []
        self.containers: list[Container] = []
        self.statements = 0  # how many were added
        self._blocks: list[list[Any]] = [[]]
        self._loops: list[list[Any]] = []  # what is done before the predicate
        self._depths: dict[int, int] = {}  # of the block that a value's memory is written in
        self._guards: dict[int, Guard] = {}

    def value(self, dtype: str, dims: tuple[int, ...], memory: int | None = None) -> int:
        """A new value, in memory of its own unless it is a view."""
        number = len(self.values)
        if memory is not None:
            memory = self.values[memory].memory
        self.values.append(Value(dtype, dims, number if memory is None else memory))
        if memory is None:
            self._depths[number] = len(self._blocks)
            self._guards[number] = ()
        return number

    def constant(self, dtype: str, dims: tuple[int, ...], numbers: Sequence[Any]) -> int:
        """A value that is known."""
        number = self.value(dtype, dims)
        self._depths[number] = 1
        self.constants.append((number, tuple(numbers)))
        return number

    def view(self, value: int, dims: tuple[int, ...]) -> int:
        """The same elements in another shape."""
        if self.values[value].dims == dims:
            return value
        return self.value(self.values[value].dtype, dims, value)

    def place(self, value: int) -> tuple[int, int]:
        """What tells apart the memory of values, and where it is written."""
        memory = self.values[value].memory
        return memory, self._depths[memory]

    def leave(self, state: int) -> None:
        """The state of a loop that ended is a value of the block around it."""
        self._depths[state] = len(self._blocks)

    def add(
        self,
        op: str,
        operands: Sequence[int],
        result: tuple[str, tuple[int, ...]] | None,
        guard: Guard = (),
        at: int | None = None,
        into: int | None = None,
        **attributes: Any,
    ) -> int:
        """A statement and its result, or -1; `into`: the value that it is, if it is there already."""
        depth = len(self._blocks)
        if at is not None:
            memory = self.values[at].memory
            depth, guard = self._depths[memory], self._guards[memory]
        number = -1 if result is None and into is None else into
        if number is None:
            number = self.value(*result)  # type: ignore[misc]
        if number >= 0 and into is None:
            self._depths[number], self._guards[number] = depth, guard
        results = () if number < 0 else (number,)
        words = tuple(sorted(attributes.items()))
        self.statements += 1
        self._blocks[depth - 1].append(Statement(op, tuple(operands), results, words, guard))
        return number

    def begin_loop(self) -> None:
        """What follows is done in each iteration, before the predicate is asked."""
        self._blocks.append([])
        self._loops.append([])

    def begin_body(self) -> None:
        """What follows is done where the predicate holds."""
        self._loops[-1] = self._blocks[-1]
        self._blocks[-1] = []

    def end_loop(self, states: Sequence[tuple[int, int, int]], predicate: int, guard: Guard) -> None:
        """The loop is complete."""
        body, before = self._blocks.pop(), self._loops.pop()
        self._blocks[-1].append(Loop(tuple(states), tuple(before), predicate, tuple(body), guard))

    def program(self, inputs: int, outputs: Sequence[int]) -> Program:
        """All that was added."""
        constants, containers = tuple(self.constants), tuple(self.containers)
        return Program(
            tuple(self.values), inputs, constants, containers, tuple(self._blocks[0]), tuple(outputs)
        )
