"""Where the values of a program lie: those that are not alive at the same time share memory.

    places, size = arranged(program, {0})   # {number of a memory: its first byte}, bytes in all

A memory is alive from the first access to the last one, in the order of the statements. If these lie in a
loop that is inside of the one that has all of them, the whole of that loop counts, and so it does where a
memory is read before anything is written to it, as from iteration to iteration. Neighbouring operations by
element count as one statement, since they are one loop over vectors. Values of few vectors are left out, and
those that only such a loop reads: registers hold them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from flowstone.native.codegen import host
from flowstone.native.codegen.emitter import SIZES
from flowstone.native.numerics.elements import ELEMENTS
from flowstone.native.programs.open_sizes import is_at_most, is_open
from flowstone.native.programs.programs import Loop, Program, Statement

__all__ = [
    "FEW_VECTORS",
    "arranged",
    "given_directly",
    "group_of_elements",
    "needs_padding",
    "open_places",
    "own_bytes",
    "padded",
]

FEW_VECTORS = 4  # of a value that is written out instead of a loop over its elements
_ALIGNMENT = 64
_Path = tuple[tuple[int, int], ...]  # the loops around, from the outermost, by their first and last positions


class _Access(NamedTuple):
    memory: int
    position: int
    writes: bool
    path: _Path


def padded(size: int) -> int:
    """The elements of an array's memory: whole vectors, and one more for reads beyond a row's end."""
    return -(-size // host.lanes()) * host.lanes() + host.lanes()


def needs_padding(program: Program) -> set[int]:
    """The inputs of which whole vectors are read beyond their end, unless they are copied."""
    lanes, found = host.lanes(), set()
    for each in program.statements():
        if not isinstance(each, Statement):
            for first, _, _ in each.states:
                found.add(program.values[first].memory)
            continue
        attributes = dict(each.attributes)
        row = attributes.get("inner" if each.op == "Reduce" else "n", 1)
        for x in each.operands:
            if "b" in attributes.get("turns", ""):
                continue  # it is read to its end
            value = program.values[x]
            if is_open(value.size) or (value.size > 1 and (value.size % lanes or (row != 1 and row % lanes))):
                found.add(value.memory)
    return {i for i in found if i < program.inputs and program.values[i].size != 1}


def own_bytes(program: Program) -> int:
    """The bytes of all values, each in memory of its own."""
    own = [x for i, x in enumerate(program.values) if x.memory == i and i >= program.inputs]
    return sum(x.size * SIZES[x.dtype] for x in own if not is_open(x.size))


def open_places(program: Program, copied: set[int]) -> tuple[dict[int, int], list[Any]]:
    """Which place each memory of an open size has, and how many bytes the places take. Those of one size
    share a place if they are not alive at the same time."""
    lives = {x: life for x, life in _lives(program, copied).items() if is_open(program.values[x].size)}
    places: dict[int, int] = {}
    ends: dict[Any, list[tuple[int, int]]] = {}  # by size: a place, and until when it is taken
    sizes: list[Any] = []
    for memory, (begin, end) in sorted(lives.items(), key=lambda item: item[1]):
        value = program.values[memory]
        size = -(-padded(value.size) * SIZES[value.dtype] // _ALIGNMENT) * _ALIGNMENT
        same = ends.setdefault(size, [])
        free = next((i for i, (_, last) in enumerate(same) if last < begin), None)
        if free is None:
            same.append((len(sizes), end))
            places[memory] = len(sizes)
            sizes.append(size)
        else:
            places[memory] = same[free][0]
            same[free] = places[memory], end
    return places, sizes


def group_of_elements(program: Program, body: Sequence[Statement | Loop], start: int) -> list[Statement]:
    """The statements from here on that are one loop over the elements."""
    group: list[Statement] = []
    size = 0
    for each in body[start:]:
        if not isinstance(each, Statement) or each.op not in ELEMENTS or each.guard != body[start].guard:
            break
        own = program.values[each.results[0]].size
        if group and (own != size or is_at_most(size, FEW_VECTORS * host.lanes())):
            break
        size = own
        group.append(each)
    return group


def given_directly(program: Program) -> dict[int, int]:
    """The values that lie in an output's memory, and in which: sums of products that nothing else reads,
    which alone are written without a vector beyond their end."""
    sums = {x for each in program.statements() if isinstance(each, Statement) and each.op == "BeginSum"
            for x in each.results}  # fmt: skip
    reads = program.reads()
    return {x: i for i, x in enumerate(program.outputs) if x in sums and reads[x] == 1}


def arranged(program: Program, copied: set[int]) -> tuple[dict[int, int], int]:
    """The first byte of each memory that is not of few vectors, and how many bytes there are; of the inputs,
    of those that are `copied`, and without those that lie in outputs.
    """
    given = given_directly(program)
    lives = _lives(program, copied)
    lives = {x: y for x, y in lives.items() if x not in given and not is_open(program.values[x].size)}
    places: dict[int, int] = {}
    taken: list[tuple[int, int, int]] = []  # first byte, end, last position
    total = 0
    for memory, (begin, end) in sorted(lives.items(), key=lambda item: item[1]):
        value = program.values[memory]
        size = padded(value.size) * SIZES[value.dtype]
        taken = [each for each in taken if each[2] >= begin]
        place = 0
        for first, behind, _ in sorted(taken):
            if place + size <= first:
                break
            place = max(place, -(-behind // _ALIGNMENT) * _ALIGNMENT)
        taken.append((place, place + size, end))
        places[memory], total = place, max(total, place + size)
    return places, total


def _lives(program: Program, copied: set[int]) -> dict[int, tuple[int, int]]:
    """From which position to which each memory is alive."""
    accesses: dict[int, list[_Access]] = {}
    for each in _Positions(program).accesses:
        accesses.setdefault(each.memory, []).append(each)
    return {
        memory: _life(own)
        for memory, own in accesses.items()
        if not is_at_most(program.values[memory].size, FEW_VECTORS * host.lanes())
        and (memory >= program.inputs or memory in copied)
    }


def _life(accesses: Sequence[_Access]) -> tuple[int, int]:
    common = accesses[0].path
    for each in accesses:
        shared = 0
        while shared < min(len(common), len(each.path)) and common[shared] == each.path[shared]:
            shared += 1
        common = common[:shared]
    first = min(accesses, key=lambda each: (each.position, each.writes))
    if not first.writes:  # it is handed on by iterations
        common = ()
    spans = [
        each.path[len(common)] if len(each.path) > len(common) else (each.position, each.position)
        for each in accesses
    ]
    return min(begin for begin, _ in spans), max(end for _, end in spans)


class _Positions:
    """What each statement, or group of them, reads and writes, numbered in their order."""

    def __init__(self, program: Program) -> None:
        self.program, self.accesses = program, list[_Access]()
        self._reads = program.reads()
        self._last = 0
        for memory in (*range(program.inputs), *(value for value, _ in program.constants)):
            self._note(memory, True, ())
        self._last = 1
        self._block(program.body, ())
        self._last += 1
        for value in program.outputs:
            self._note(value, False, ())

    def _note(self, value: int, writes: bool, path: _Path) -> None:
        self.accesses.append(_Access(self.program.values[value].memory, self._last, writes, path))

    def _block(self, body: Sequence[Statement | Loop], path: _Path) -> None:
        i = 0
        while i < len(body):
            each = body[i]
            self._last += 1
            self._guards(each, path)
            if isinstance(each, Loop):
                self._loop(each, path)
                i += 1
                continue
            group = group_of_elements(self.program, body, i) or [each]
            self._group(group, path)
            i += len(group)

    def _group(self, group: Sequence[Statement], path: _Path) -> None:
        inside = [self.program.values[value].memory for one in group for value in one.operands]
        own = {self.program.values[value].memory for one in group for value in one.results}
        kept = {memory for memory in own if inside.count(memory) == self._reads[memory]}
        for one in group:
            for values, writes in ((one.operands, False), (one.results, True)):
                for value in values:
                    if self.program.values[value].memory not in kept:
                        self._note(value, writes, path)

    def _guards(self, each: Statement | Loop, path: _Path) -> None:
        for value, _ in (pair for term in each.guard for pair in term):
            self._note(value, False, path)

    def _loop(self, loop: Loop, path: _Path) -> None:
        for first, state, _ in loop.states:
            self._note(first, False, path)
            self._note(state, True, path)
        self._last += 1
        inside = (*path, (self._last, self._last + _positions(self.program, loop)))
        self._block(loop.before, inside)
        self._last += 1
        self._note(loop.predicate, False, inside)
        self._block(loop.body, inside)
        self._last += 1
        for _, state, following in loop.states:
            self._note(following, False, inside)
            self._note(state, True, inside)
        self._last = inside[-1][1]


def _positions(program: Program, loop: Loop) -> int:
    """At least as many as the loop's parts take."""
    inner: Iterator[Statement | Loop] = program.statements((*loop.before, *loop.body))
    return 4 + sum(4 if isinstance(each, Loop) else 1 for each in inner)
