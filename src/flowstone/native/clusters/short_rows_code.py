"""LLVM's text of the loops of clusters with short rows: a vector has an element of each of many rows.

``rows`` is as in `loop_code.py`. As many rows as a vector has lanes are read at once, whole vector by whole
vector, and turned by shuffles, so that each column is a vector; what is computed is turned back and written.
So reductions over a row join no lanes: they take one column after the other. All of a block is read before
any of it is written. Of the last rows, those that are there are read and written by masks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from flowstone.native.clusters import accumulators
from flowstone.native.clusters.clusters import Cluster, Level, Loops
from flowstone.native.clusters.loop_code import value_of
from flowstone.native.codegen import host
from flowstone.native.codegen.emitter import Emitter, kind_of
from flowstone.native.codegen.vector_memory import lane_mask, load, memory_kind, read_one, store

__all__ = ["short_rows_code", "suits"]

_MOST_WRITTEN = 96  # columns times steps, which are all written out
_Values = dict[int, str]
_Places = Sequence[tuple[int, int]]  # of elements: which vector, which of its lanes


def suits(cluster: Cluster) -> bool:
    """Whether its rows are short, many, one after the other in memory, and joined by no reduction."""
    loops, lanes = cluster.loops(), host.lanes()
    columns = loops.columns
    reduces = any(step.over == "row" for step in cluster.steps)
    longest = lanes - 1 if reduces else lanes // 4  # whose shuffles cost less than lanes that stay empty
    if not 2 <= columns <= longest or cluster.pitched:
        return False
    if columns * len(cluster.steps) > _MOST_WRITTEN or not (cluster.is_open or loops.rows >= lanes):
        return False
    if any(step.over in ("columns", "all") for step in cluster.steps):
        return False
    known = ((columns, 1), (1, 0), (0, 1), (0, 0))
    return all(_is_by_columns(pair) or pair in known for pair in _pairs(loops))


def _pairs(loops: Loops) -> list[tuple[int, int] | None]:
    """For each input, the elements from row to row and from column to column; see `_strides`."""
    return [_strides(line, loops.sizes) for line in loops.strides]


def _is_by_columns(pair: tuple[int, int] | None) -> bool:
    """Whether the elements of a column are neighbours, and columns lie apart."""
    return pair is not None and pair[0] == 1 and pair[1] > 1


def short_rows_code(cluster: Cluster, declarations: dict[str, str]) -> str:
    """The text of ``rows``."""
    return _Writer(cluster, declarations).rows()


def _strides(line: Sequence[int], sizes: Sequence[int]) -> tuple[int, int] | None:
    """The elements from row to row, if they are always as many, and from column to column."""
    for depth in range(len(sizes) - 2):
        if line[depth] != line[depth + 1] * sizes[depth + 1]:
            return None
    return (line[-2], line[-1]) if len(sizes) > 1 else None


class _Writer:
    def __init__(self, cluster: Cluster, declarations: dict[str, str]) -> None:
        loops = cluster.loops()
        self.cluster, self.declarations, self.levels = cluster, declarations, cluster.levels()
        self.columns, self.lanes, self.count = loops.columns, host.lanes(), len(cluster.inputs)
        self.strides = _pairs(loops)
        self.lines: list[str] = []
        self.fixed: list[_Values] = [{} for _ in range(self.columns)]  # the same in all rows, by column

    def emitter(self, prefix: str) -> Emitter:
        e = Emitter(self.lanes, self.declarations, prefix)
        e.lines = self.lines
        return e

    def rows(self) -> str:
        e = self.emitter("e")
        self.lines += [
            "define internal void @rows(ptr %a, i64 %r0, i64 %r1, i64 %c0, i64 %c1, ptr %slot) {",
            "entry:",
        ]
        for i in range(self.count + len(self.cluster.outputs)):
            self.lines += [f" %q{i} = getelementptr ptr, ptr %a, i64 {i}", f" %p{i} = load ptr, ptr %q{i}"]
        self.read_fixed(e)
        self.lines += [
            f" %last = sub i64 %r1, {self.lanes}",
            " br label %row",
            "row:",
            " %r = phi i64 [%r0, %entry], [%rn, %block]",
            " %fits = icmp sle i64 %r, %last",
            " br i1 %fits, label %block, label %rest",
            "block:",
        ]
        self.block(self.emitter("b"), "")
        self.lines += [
            f" %rn = add i64 %r, {self.lanes}",
            " br label %row",
            "rest:",
            " %left = sub i64 %r1, %r",
            " %some = icmp sgt i64 %left, 0",
            " br i1 %some, label %tail, label %done",
            "tail:",
        ]
        self.block(self.emitter("t"), "%left")
        return "\n".join([*self.lines, " br label %done", "done:", " ret void", "}"])

    def read_fixed(self, e: Emitter) -> None:
        """Reads the inputs that are the same in all rows."""
        for i, strides in enumerate(self.strides):
            if strides is None or strides[0]:
                continue
            kind, step = memory_kind(self.cluster.dtype(i)), strides[1]
            for column in range(self.columns if step else 1):
                address = e.let(f"getelementptr {kind}, ptr %p{i}, i64 {column}")
                self.fixed[column][i] = read_one(e, self.cluster.dtype(i), address)
            for values in self.fixed[1:] if not step else ():
                values[i] = self.fixed[0][i]

    def block(self, e: Emitter, left: str) -> None:
        """A vector's lanes of rows from ``%r`` on, or the `left` ones."""
        values = [dict(each) for each in self.fixed]
        for i, strides in enumerate(self.strides):
            if strides is not None and strides[0]:
                read = self.read_elements if strides[1] else self.read_rows
                read = self.read_columns if _is_by_columns(strides) else read
                for found, value in zip(values, read(e, i, left)):
                    found[i] = value
        for i, step in enumerate(self.cluster.steps, self.count):
            if step.over:
                results = [self.reduced(e, i, values)] * self.columns
            elif step.op == "ColumnIndex":
                results = [e.constant("int32", column) for column in range(self.columns)]
            elif self.levels[i] == Level.ELEMENT:
                results = [value_of(self.cluster, e, i, found) for found in values]
            else:
                results = [value_of(self.cluster, e, i, values[0])] * self.columns
            for found, value in zip(values, results):
                found[i] = value
        for place, (array, given) in enumerate(zip(self.cluster.outputs, self.cluster.given()), self.count):
            if math.prod(given.dims) == math.prod(self.cluster.dims):
                self.store_elements(e, place, array, [found[array] for found in values], left)
            else:
                mask = lane_mask(e, left) if left else ""
                store(e, self.cluster.dtype(array), values[0][array], f"%p{place}", "%r", mask)

    def reduced(self, e: Emitter, step: int, values: Sequence[_Values]) -> str:
        """A reduction over the row."""
        reduction, dtype, attributes = accumulators.reduction_of(self.cluster, step)
        parts = accumulators.start(e, self.cluster, step)
        operand = self.cluster.steps[step - self.count].operands[0]
        for found in values:
            parts = reduction.take(e, dtype, parts, found[operand])
        return reduction.give(e, dtype, parts, attributes)

    # ---- memory

    def read_rows(self, e: Emitter, array: int, left: str) -> list[str]:
        """An input that has an element a row, for each column."""
        mask = lane_mask(e, left) if left else ""
        return [load(e, self.cluster.dtype(array), f"%p{array}", "%r", mask)] * self.columns

    def read_columns(self, e: Emitter, array: int, left: str) -> list[str]:
        """The columns of an input that has them one by one in memory."""
        mask, dtype, apart = lane_mask(e, left) if left else "", self.cluster.dtype(array), self.apart(array)
        starts = [e.let(f"add i64 %r, {column * apart}") for column in range(self.columns)]
        return [load(e, dtype, f"%p{array}", start, mask) for start in starts]

    def apart(self, array: int) -> int:
        """How far apart the elements of a row are."""
        strides = self.strides[array]
        return strides[1] if strides is not None else 0

    def read_elements(self, e: Emitter, array: int, left: str) -> list[str]:
        """The columns of an input."""
        dtype = self.cluster.dtype(array)
        held = "uint8" if dtype == "bool" else dtype
        vectors = [load(e, held, f"%p{array}", *at) for at in self.vectors(e, left)]
        columns = []
        for column in range(self.columns):
            elements = range(column, self.lanes * self.columns, self.columns)
            found = _picked(e, kind_of(held), vectors, [divmod(n, self.lanes) for n in elements])
            truth = dtype == "bool"
            columns.append(e.compare("icmp ne", held, found, e.constant(held, 0)) if truth else found)
        return columns

    def store_elements(self, e: Emitter, place: int, array: int, columns: list[str], left: str) -> None:
        """Writes the columns of an output."""
        dtype = self.cluster.dtype(array)
        held = "uint8" if dtype == "bool" else dtype
        if dtype == "bool":
            columns = [e.convert(each, dtype, held) for each in columns]
        for n, (index, mask) in enumerate(self.vectors(e, left)):
            elements = range(n * self.lanes, (n + 1) * self.lanes)
            places = [(i % self.columns, i // self.columns) for i in elements]
            store(e, held, _picked(e, kind_of(held), columns, places), f"%p{place}", index, mask)

    def vectors(self, e: Emitter, left: str) -> list[tuple[str, str]]:
        """Where the block's vectors begin in an array of elements, and their masks."""
        first = e.let(f"mul i64 %r, {self.columns}")
        end = e.let(f"mul i64 {left}, {self.columns}") if left else ""
        found = []
        for n in range(self.columns):
            mask = lane_mask(e, e.let(f"sub i64 {end}, {n * self.lanes}")) if left else ""
            found.append((e.let(f"add i64 {first}, {n * self.lanes}"), mask))
        return found


def _picked(e: Emitter, kind: str, vectors: Sequence[str], places: _Places) -> str:
    """The vector of these elements of several vectors."""
    vector, lanes = e.vector(kind), len(places)
    used = sorted({which for which, _ in places})
    result, taken = vectors[used[0]], [lane if which == used[0] else -1 for which, lane in places]
    for which in used[1:] or [used[0]]:
        taken = [lanes + lane if each == which else old for old, (each, lane) in zip(taken, places)]
        chosen = ", ".join("i32 poison" if i < 0 else f"i32 {i}" for i in taken)
        result = e.let(
            f"shufflevector {vector} {result}, {vector} {vectors[which]}, <{lanes} x i32> <{chosen}>"
        )
        taken = [i if old >= 0 else -1 for i, old in enumerate(taken)]
    return result
