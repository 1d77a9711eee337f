"""`Cluster`: steps on arrays of one shape, and on its rows, as a value: what the native tier compiles.

Arrays are numbered: the inputs first, then what each step computes. Inputs may be broadcast to the shape.
A step is element-wise (`elements.py`) or a reduction (`reductions.py`) ``over`` the columns of each row
("row"), the rows of each column ("columns") or everything ("all"). What is reduced over a row may be used by
further steps, for all elements of that row; the two others end in a result. ``Const`` is a number,
``ColumnIndex`` the place in the row. Equal clusters have equal code. Printed, a line a step:

    float32[20,200]
    %0 = input float32[20,200]
    %1 = input float32[200]
    %2 = AddV2(%0, %1) : float32
    %3 = Max(%2) over=row : float32
    %4 = Sub(%2, %3) : float32
    return %4
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from flowstone.native.numerics.elements import ELEMENTS
from flowstone.native.numerics.reductions import REDUCTIONS

__all__ = ["OPEN", "Array", "Cluster", "Level", "Loops", "Result", "Step"]

OPEN = -1
"""The size of a first dimension that only the step knows; it is the same wherever it stands. It may be the
product of several dimensions, which a cluster's `lead` lists."""


class Array(NamedTuple):
    """An input: its type and shape. `pitched`: its rows, of the last dimension, may lie apart in memory, all
    by the same distance; its shape is then the cluster's. `strides`: how many elements lie between neighbours
    along each dimension, of an input of another layout; empty for others."""

    dtype: str
    dims: tuple[int, ...]
    pitched: bool = False
    strides: tuple[int, ...] = ()


class Result(NamedTuple):
    """An output: its type and shape. `transposed`: the shape is [columns, rows], memory [rows, columns]."""

    dtype: str
    dims: tuple[int, ...]
    transposed: bool = False


class Step(NamedTuple):
    """An operation on earlier arrays: its name in graphs, which arrays, its result's type, its attributes."""

    op: str
    operands: tuple[int, ...]
    dtype: str
    attributes: tuple[tuple[str, Any], ...] = ()

    @property
    def over(self) -> str:
        """What a reduction goes over; empty for other steps."""
        return str(dict(self.attributes).get("over", "")) if self.attributes else ""

    @property
    def cost(self) -> int:
        """What it costs in additions, for an element."""
        if self.op in ELEMENTS:
            return ELEMENTS[self.op].cost
        return REDUCTIONS[self.op].cost if self.op in REDUCTIONS else 0


class Level(enum.IntEnum):
    """How often an array has a new number: once a run, a row, an element."""

    EVERYWHERE, ROW, ELEMENT = range(3)


class Loops(NamedTuple):
    """The shape as loops: the sizes of the dimensions that are left when neighbours are merged, and for each
    input how many elements lie between two places along each: 0 where it is broadcast."""

    sizes: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    @property
    def rows(self) -> int:
        """The product of all sizes but the last; where the first is open, of those between."""
        return abs(math.prod(self.sizes[:-1]))

    @property
    def columns(self) -> int:
        """The last size."""
        return self.sizes[-1]


class Cluster(NamedTuple):
    """Steps on arrays of the shape `dims`; `outputs`: which arrays are its results.

    `split`: how many leading dimensions are rows, where some step is a reduction over a row or over columns;
    the others then merge into one. `results`: the outputs' types and shapes, if some are not `dims`.
    `bounds`: inputs of indices, with the number that all must be below, and at least 0. The first dimension
    may be `OPEN`, of the cluster and of inputs and results; there are others then. `lead`: the dimensions of
    tensors that an open one stands for, each `OPEN` or a number.
    """

    dims: tuple[int, ...]
    inputs: tuple[Array, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    split: int | None = None
    results: tuple[Result, ...] = ()
    bounds: tuple[tuple[int, int], ...] = ()
    lead: tuple[int, ...] = (OPEN,)

    def dtype(self, array: int) -> str:
        """The type of an array."""
        count = len(self.inputs)
        return self.inputs[array].dtype if array < count else self.steps[array - count].dtype

    def step(self, array: int) -> Step | None:
        """What computes an array; None for an input."""
        count = len(self.inputs)
        return None if array < count else self.steps[array - count]

    def given(self) -> tuple[Result, ...]:
        """The types and shapes of the outputs."""
        return self.results or tuple([Result(self.dtype(i), self.dims) for i in self.outputs])

    @property
    def pitched(self) -> list[int]:
        """The inputs whose rows may lie apart."""
        return [i for i, array in enumerate(self.inputs) if array.pitched]

    @property
    def is_open(self) -> bool:
        """Whether the first dimension's size is only known in the step."""
        return self.dims[:1] == (OPEN,)

    @property
    def size_place(self) -> int:
        """Where that size is, after the addresses and pitches."""
        return len(self.inputs) + len(self.outputs) + len(self.pitched)

    @property
    def work(self) -> int:
        """About how many additions it takes as long as, memory aside; of an open cluster, of one of the first
        dimension. Steps on numbers of 64 bits count twice."""
        return abs(math.prod(self.dims)) * sum(max(1, step.cost) * self._words(step) for step in self.steps)

    def _words(self, step: Step) -> int:
        return 2 if any(self.dtype(i).endswith("64") for i in step.operands) else 1

    def levels(self) -> list[Level]:
        """The level of each array."""
        contiguous = self._replace(inputs=tuple([array._replace(strides=()) for array in self.inputs]))
        result = []
        for line in contiguous.loops().strides:  # of an expanded input all elements are read as of others
            last = Level.ELEMENT if line[-1] else Level.ROW
            result.append(last if any(line) else Level.EVERYWHERE)
        for step in self.steps:
            if step.over:
                result.append(Level.ROW if step.over == "row" else Level.EVERYWHERE)
            elif step.op == "ColumnIndex":
                result.append(Level.ELEMENT)
            else:
                result.append(max([result[i] for i in step.operands], default=Level.EVERYWHERE))
        return result

    def loops(self) -> Loops:
        """The loops over its elements; the columns are one of them."""
        strides = [_strides(array, self.dims) for array in self.inputs]
        kept = [i for i, size in enumerate(self.dims) if size != 1]
        merged: list[int] = []
        lines: list[list[int]] = [[] for _ in strides]
        before = None
        parts = [] if self.split is None else [self.split]
        parts += [len(self.dims) - 1] if self.pitched else []
        parts += [1] if self.is_open else []
        for i in kept:
            size = self.dims[i]
            parted = before is not None and any(before < place <= i for place in parts)
            if (
                merged
                and not parted
                and all(line[-1] == size * each[i] for line, each in zip(lines, strides))
            ):
                merged[-1] *= size
                for line, each in zip(lines, strides):
                    line[-1] = each[i]
            else:
                merged.append(size)
                for line, each in zip(lines, strides):
                    line.append(each[i])
            before = i
        if not merged:
            return Loops((1,), tuple((0,) for _ in strides))
        return Loops(tuple(merged), tuple(tuple(line) for line in lines))

    def __repr__(self) -> str:
        return "+".join(step.op for step in self.steps if step.op not in ("Const", "ColumnIndex"))

    def __str__(self) -> str:
        first = self.given()[0]
        lines = [_text(first.dtype, self.dims)]
        for i, array in enumerate(self.inputs):
            layout = " pitched" * array.pitched + f" strides={list(array.strides)}" * bool(array.strides)
            lines.append(f"%{i} = input {_text(array.dtype, array.dims)}{layout}")
        for i, step in enumerate(self.steps, len(self.inputs)):
            words = ", ".join(f"%{j}" for j in step.operands)
            more = "".join(f" {key}={value}" for key, value in step.attributes)
            lines.append(f"%{i} = {step.op}({words}){more} : {step.dtype}")
        return "\n".join([*lines, "return " + ", ".join(f"%{i}" for i in self.outputs)])


def _text(dtype: str, dims: Sequence[int]) -> str:
    return f"{dtype}[{','.join(map(str, dims))}]"


def _strides(array: Array, shape: Sequence[int]) -> list[int]:
    """How an array is walked along `shape`, to which it is broadcast."""
    dims, result, step = array.dims, [0] * len(shape), 1
    for i in range(1, len(dims) + 1):
        if dims[-i] != 1:
            result[-i] = array.strides[-i] if array.strides else step
            step *= dims[-i]
    return result
