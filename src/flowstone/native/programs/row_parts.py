"""Loops whose rows do not depend on each other, in parts: threads do some rows each, of all iterations.

The states of a recurrence over a batch are rows, and what an iteration does to a row takes nothing of the
others. Then a loop may be done by parts of the rows, one after the other or at once, and threads meet at its
end alone. Products go by blocks of `BLOCK_ROWS` rows, and so do parts: every row has the same sums, and so
the same bits, as in the loop as a whole.

    program = in_parts(program, 2, 2_000_000)    # loops of so much work: Loop.parts = (16, 16)
    part = part_of(program, loop, 16)            # what one part is, as a program of its own

A value with as many rows as the states is taken to be by rows; every statement is then looked at. Stacks, and
sums over iterations, stay whole; so do loops that nobody knows the longest duration of, since only the
caller's thread can ask whether a loop must end (`interruptions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from flowstone.native.numerics.elements import ELEMENTS
from flowstone.native.programs.open_sizes import typical
from flowstone.native.programs.product_statements import BLOCK_ROWS
from flowstone.native.programs.programs import Loop, Program, Statement, Value

__all__ = ["Part", "in_parts", "largest_product", "part_of", "products"]

_FEWEST_ROWS = 8  # of a part: what is the same for all rows is read once a part
_ELEMENT = 16  # multiplications of a product that an operation on an element takes as long as
_MOST_WORK = 1 << 35  # multiplications of a loop, about a second
_Labels = tuple[bool, ...]


class Part(NamedTuple):
    """Some rows of a loop as a program. Its inputs and outputs are values of the whole program, by rows or
    not, and its containers are those of the whole program with these numbers."""

    program: Program
    inputs: tuple[tuple[int, bool], ...]
    outputs: tuple[tuple[int, bool], ...]
    containers: tuple[int, ...]


class _Entangled(Exception):
    """Rows depend on each other, or a statement is not known to keep them apart."""


def in_parts(program: Program, threads: int, least: int) -> Program:
    """The program with its loops of at least so much work in as many parts as there are threads, or fewer."""
    if threads < 2 or not program.has_loops or program.is_open:
        return program
    body = [
        _divided(program, each, threads, least) if isinstance(each, Loop) else each for each in program.body
    ]
    return program._replace(body=tuple(body))


def products(program: Program, loop: Loop) -> list[Any]:
    """The multiplications of each product in a loop."""
    sizes = [dict(each.attributes) for each in _statements(program, loop) if each.op == "MatMul"]
    return [x["m"] * x["k"] * x["n"] for x in sizes]


def largest_product(program: Program, loop: Loop) -> int:
    """The multiplications of the largest product that one thread does."""
    return max([typical(n) for n in products(program, loop)], default=0) // max(1, len(loop.parts))


def _divided(program: Program, loop: Loop, threads: int, least: int) -> Loop:
    if loop.guard or not least <= _work(program, loop) <= _MOST_WORK:
        return loop
    for rows in sorted({program.values[state].dims[:1] for _, state, _ in loop.states}, reverse=True):
        parts = _parts(rows[0], threads) if rows else ()
        if len(parts) > 1:
            divided = loop._replace(parts=parts)
            try:
                for each in {*parts}:
                    part_of(program, divided, each)
            except _Entangled:
                continue
            return divided
    return loop


def _parts(rows: int, threads: int) -> tuple[int, ...]:
    """The rows of each part."""
    count = min(threads, rows // _FEWEST_ROWS)
    if count < 2:
        return ()
    each = -(-rows // (count * BLOCK_ROWS)) * BLOCK_ROWS
    whole, rest = divmod(rows, each)
    return (each,) * whole + (rest,) * (rest > 0)


def _work(program: Program, loop: Loop) -> int:
    """Multiplications of all iterations; 0 if it is not known how many there are at most."""
    work = 0
    for each in _statements(program, loop):
        size = dict(each.attributes)
        elements = max([program.values[x].size for x in each.results], default=0)
        work += size["m"] * size["k"] * size["n"] if each.op == "MatMul" else elements * _ELEMENT
    return work * _most_iterations(program, loop)


def _statements(program: Program, loop: Loop) -> Iterator[Statement]:
    yield from (x for x in program.statements((loop,)) if isinstance(x, Statement))


def _most_iterations(program: Program, loop: Loop) -> int:
    """How often the loop runs at most, by a state that counts up to a constant; 0: nobody knows."""
    known = {value: numbers[0] for value, numbers in program.constants if len(numbers) == 1}
    states = {state: (first, following) for first, state, following in loop.states}
    made = {x: each for each in _statements(program, loop) for x in each.results}
    waiting, found = [loop.predicate], list[int]()
    while waiting:
        each = made.get(waiting.pop())
        if each is None:
            continue
        if each.op == "LogicalAnd":
            waiting += each.operands
        elif each.op == "Less" and each.operands[0] in states and each.operands[1] in known:
            first, following = states[each.operands[0]]
            step = made.get(following)
            if step is None or step.op not in ("Add", "AddV2") or each.operands[0] not in step.operands:
                continue
            (by,) = [x for x in step.operands if x != each.operands[0]] or [-1]
            if known.get(by, 0) >= 1 and first in known and not step.guard:
                found.append(int(known[each.operands[1]] - known[first]))
    return max(0, min(found, default=0))


# ---- a part


def part_of(program: Program, loop: Loop, rows: int) -> Part:
    """So many rows of a loop that is in parts."""
    return _Maker(program, loop, rows).part()


class _Maker:
    """Writes the loop with other numbers and fewer rows."""

    def __init__(self, program: Program, loop: Loop, rows: int) -> None:
        self.program, self.loop, self.rows, self.whole = program, loop, rows, sum(loop.parts)
        self.values: list[Value] = []
        self.inputs: dict[tuple[int, bool], int] = {}
        self.containers: dict[int, tuple[int, bool]] = {}  # its number here, and whether it is by rows
        self._numbers: dict[int, int] = {}  # of what the loop makes, and of constants
        self._constants = dict(program.constants)

    def part(self) -> Part:
        loop, program = self.loop, self.program
        body = [*loop.before, *loop.body]
        if not all(isinstance(each, Statement) for each in body):
            raise _Entangled
        inside = {program.values[x].memory for each in body for x in each.results}
        inside |= {state for _, state, _ in loop.states}
        labels = {id(each): self._labels(each, inside) for each in body}
        for first, state, following in loop.states:
            if len({self.by_rows(x) for x in (first, state, following)}) > 1:
                raise _Entangled
        asked = {x for each in loop.before for x in each.operands}  # constants that decide how often it runs
        for each in body:
            for x, label in zip(each.operands, labels[id(each)]):
                self._take(x, label, inside, asked)
            for p in (p for term in each.guard for p, _ in term):
                self._take(p, False, inside, asked)
        for first, _, following in loop.states:
            self._take(first, self.by_rows(first), inside, {first})
            self._take(following, self.by_rows(following), inside, asked)
        inputs = len(self.values)
        constants = [(x, self._constants[x]) for x in self._constants if x in self._numbers]
        for x, _ in constants:
            self._numbers[x] = self._new(program.values[x].dtype, program.values[x].dims)
        for x in (*[state for _, state, _ in loop.states], *[x for each in body for x in each.results]):
            self._own(x)
        for each in body:
            for x in each.operands:
                if program.values[x].memory in inside:
                    self._own(x)
        before, after = (
            tuple([self._statement(each, labels[id(each)]) for each in some])
            for some in (loop.before, loop.body)
        )
        states = tuple([
            (self._number(first, self.by_rows(first)), self._own(state),
             self._number(following, self.by_rows(following)))
            for first, state, following in loop.states
        ])  # fmt: skip
        own = Loop(states, before, self._number(loop.predicate, False), after)
        kept = [self._container(i, is_by_rows) for i, (_, is_by_rows) in self.containers.items()]
        part = Program(
            tuple(self.values), inputs, tuple([(self._numbers[x], n) for x, n in constants]), tuple(kept),
            (own,), tuple([self._own(state) for _, state, _ in loop.states]),
        )  # fmt: skip
        outputs = tuple([(state, self.by_rows(state)) for _, state, _ in loop.states])
        return Part(part, tuple(self.inputs), outputs, tuple(self.containers))

    # ---- values

    def by_rows(self, value: int) -> bool:
        """Whether it has the rows that are divided."""
        return self.program.values[value].dims[:1] == (self.whole,)

    def width(self, value: int) -> int:
        """The elements of a row."""
        return self.program.values[value].size // self.whole

    def _new(self, dtype: str, dims: tuple[int, ...], memory: int = -1) -> int:
        self.values.append(Value(dtype, dims, len(self.values) if memory < 0 else memory))
        return len(self.values) - 1

    def _dims(self, value: int, is_by_rows: bool) -> tuple[int, ...]:
        dims = self.program.values[value].dims
        return (self.rows, *dims[1:]) if is_by_rows else dims

    def _take(self, value: int, is_by_rows: bool, inside: set[int], asked: set[int]) -> None:
        """Notes a value that the loop takes, if it does not make it."""
        if self.program.values[value].memory in inside:
            return
        if value in self._constants and value not in asked and not is_by_rows:
            self._numbers.setdefault(value, -1)
        elif (value, is_by_rows) not in self.inputs and self._numbers.get(value) is None:
            dtype = self.program.values[value].dtype
            self.inputs[value, is_by_rows] = self._new(dtype, self._dims(value, is_by_rows))

    def _own(self, value: int) -> int:
        """The number of a value that the loop makes."""
        if value not in self._numbers:
            dtype, _, memory = self.program.values[value]
            if self.by_rows(value) != self.by_rows(memory):
                raise _Entangled
            owner = -1 if memory == value else self._own(memory)
            self._numbers[value] = self._new(dtype, self._dims(value, self.by_rows(value)), owner)
        return self._numbers[value]

    def _number(self, value: int, is_by_rows: bool) -> int:
        found = self.inputs.get((value, is_by_rows))
        return self._numbers[value] if found is None else found

    def _container(self, i: int, is_by_rows: bool) -> Any:
        container = self.program.containers[i]
        if not is_by_rows:
            return container
        size = container.size // self.whole * self.rows
        return container._replace(size=size, pitch=container.size)

    # ---- statements

    def _labels(self, each: Statement, inside: set[int]) -> _Labels:
        """Which operands are taken by rows."""
        if each.op in ELEMENTS:
            found = self.elements(each)
        else:
            rule = _RULES.get(each.op)
            if rule is None:
                raise _Entangled
            found = rule(self, each)
        for x, label in zip(each.operands, found):
            is_ours = self.program.values[x].memory in inside
            if label != self.by_rows(x) and (label or is_ours):
                raise _Entangled
        if any(self.program.values[p].size != 1 for term in each.guard for p, _ in term):
            raise _Entangled
        return found

    def elements(self, each: Statement) -> _Labels:
        """Of what is done to each element: operands of the result's size, or numbers."""
        (result,) = each.results
        is_by_rows, size = self.by_rows(result), self.program.values[result].size
        found = tuple([is_by_rows and self.program.values[x].size == size for x in each.operands])
        for x in each.operands:
            if self.program.values[x].size not in (1, size) or (not is_by_rows and self.by_rows(x)):
                raise _Entangled
        return found

    def _statement(self, each: Statement, labels: _Labels) -> Statement:
        attributes = dict(each.attributes)
        is_by_rows = any(labels) or any(map(self.by_rows, each.results))
        if is_by_rows:
            for name in _COUNTS.get(each.op, ()):
                attributes[name] = attributes[name] // self.whole * self.rows
            if each.op == "Copy":
                first, *others = attributes["sizes"]
                attributes["sizes"] = (first // self.whole * self.rows, *others)
        if "container" in attributes:
            attributes["container"] = self.containers[attributes["container"]][0]
        operands = tuple([self._number(x, label) for x, label in zip(each.operands, labels)])
        guard = tuple(
            [tuple([(self._number(p, False), wanted) for p, wanted in term]) for term in each.guard]
        )
        words = tuple(sorted(attributes.items()))
        return Statement(each.op, operands, tuple([self._own(x) for x in each.results]), words, guard)


_COUNTS = {"MatMul": ("m",), "Reduce": ("outer",), "ArgMax": ("outer",), "ArgMin": ("outer",)}
"""The attributes that are numbers of rows."""


def _copy(maker: _Maker, each: Statement) -> _Labels:
    """Rows to the same rows, or what is the same for all rows to each."""
    size, (x, *index), (result,) = dict(each.attributes), each.operands, each.results
    if not maker.by_rows(result):
        return (False,) * len(each.operands)
    if index or size["sizes"][0] % maker.whole or min(*size["from_strides"], *size["to_strides"]) < 0:
        raise _Entangled
    lines = size["sizes"][0] // maker.whole  # of the first dimension in a row

    def stays(first: int, strides: Sequence[int], width: int) -> bool:
        last = first + strides[0] * (lines - 1)
        last += sum((n - 1) * stride for n, stride in zip(size["sizes"][1:], strides[1:]))
        return bool(strides[0] * lines == width and last < width)

    if not stays(size["to_place"], size["to_strides"], maker.width(result)):
        raise _Entangled
    if maker.by_rows(x) and stays(size["from_place"], size["from_strides"], maker.width(x)):
        return (True,)
    if size["from_strides"][0]:
        raise _Entangled
    return (False,)


def _product(maker: _Maker, each: Statement) -> _Labels:
    size, (result,) = dict(each.attributes), each.results
    if not maker.by_rows(result):
        return (False, False)
    if size["m"] != maker.whole or "a" in size.get("turns", ""):
        raise _Entangled
    return (True, False)


def _reduction(maker: _Maker, each: Statement) -> _Labels:
    if not maker.by_rows(each.results[0]):
        return (False,)
    if dict(each.attributes)["outer"] % maker.whole:
        raise _Entangled
    return (True,)


def _element(maker: _Maker, each: Statement) -> _Labels:
    """What an array's element is read to, or written from."""
    value = (*each.results, *each.operands)[-1] if each.op == "WriteArray" else each.results[0]
    i = dict(each.attributes)["container"]
    label = maker.by_rows(value)
    _, known = maker.containers.setdefault(i, (len(maker.containers), label))
    if known != label or maker.program.containers[i].of >= 0:
        raise _Entangled
    return (False, label) if each.op == "WriteArray" else (False,)


def _same(maker: _Maker, each: Statement) -> _Labels:
    return tuple([maker.by_rows(x) for x in (*each.results, *each.operands)[: len(each.operands)]])


_RULES: dict[str, Callable[[_Maker, Statement], _Labels]] = {
    **{f"Integer{x}": _Maker.elements for x in ("FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod")},
    "ArgMax": _reduction,
    "ArgMin": _reduction,
    "Check": lambda maker, each: (False,),
    "Copy": _copy,
    "Fill": lambda maker, each: (False,),
    "MatMul": _product,
    "ReadArray": _element,
    "Reduce": _reduction,
    "Set": _same,
    "WriteArray": _element,
}
"""How statements keep rows apart: which of their operands are taken by rows."""
