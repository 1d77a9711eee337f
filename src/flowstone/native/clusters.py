"""`Cluster`: element-wise steps on arrays of one shape, as a value: what the native tier compiles.

Arrays are numbered: the inputs first, then what each step computes. Inputs may be broadcast to the shape.
Equal clusters have equal code. Printed, a line a step:

    float32[20,200]
    %0 = input float32[20,200]
    %1 = input float32[200]
    %2 = AddV2(%0, %1) : float32
    %3 = Tanh(%2) : float32
    return %3
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from flowstone.native.elements import ELEMENTS

__all__ = ["Array", "Cluster", "Loops", "Step"]


class Array(NamedTuple):
    """An input: its type and shape."""

    dtype: str
    dims: tuple[int, ...]


class Step(NamedTuple):
    """An operation on earlier arrays: its name in graphs, which arrays, its result's type, its attributes."""

    op: str
    operands: tuple[int, ...]
    dtype: str
    attributes: tuple[tuple[str, Any], ...] = ()


class Loops(NamedTuple):
    """The shape as loops: the sizes of the dimensions that are left when neighbours are merged, and for each
    input how many elements lie between two places along each: 0 where it is broadcast."""

    sizes: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    @property
    def rows(self) -> int:
        """The product of all sizes but the last."""
        return math.prod(self.sizes[:-1])

    @property
    def columns(self) -> int:
        """The last size."""
        return self.sizes[-1]


class Cluster(NamedTuple):
    """Steps on arrays of the shape `dims`; `outputs`: which arrays are its results."""

    dims: tuple[int, ...]
    inputs: tuple[Array, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    def dtype(self, array: int) -> str:
        """The type of an array."""
        count = len(self.inputs)
        return self.inputs[array].dtype if array < count else self.steps[array - count].dtype

    @property
    def work(self) -> int:
        """About how many additions it takes as long as, memory aside."""
        return math.prod(self.dims) * sum(max(1, ELEMENTS[step.op].cost) for step in self.steps)

    def loops(self) -> Loops:
        """The loops over its elements."""
        strides = [_strides(array.dims, self.dims) for array in self.inputs]
        kept = [i for i, size in enumerate(self.dims) if size != 1]
        sizes, columns = [self.dims[i] for i in kept], [[each[i] for i in kept] for each in strides]
        merged: list[int] = []
        lines: list[list[int]] = [[] for _ in strides]
        for i, size in enumerate(sizes):
            if merged and all(line[-1] == size * column[i] for line, column in zip(lines, columns)):
                merged[-1] *= size
                for line, column in zip(lines, columns):
                    line[-1] = column[i]
            else:
                merged.append(size)
                for line, column in zip(lines, columns):
                    line.append(column[i])
        if not merged:
            return Loops((1,), tuple((0,) for _ in strides))
        return Loops(tuple(merged), tuple(tuple(line) for line in lines))

    def __repr__(self) -> str:
        return "+".join(step.op for step in self.steps)

    def __str__(self) -> str:
        lines = [_text(self.dtype(self.outputs[0]), self.dims)]
        lines += [f"%{i} = input {_text(*array)}" for i, array in enumerate(self.inputs)]
        for i, step in enumerate(self.steps, len(self.inputs)):
            words = ", ".join(f"%{j}" for j in step.operands)
            more = "".join(f" {key}={value}" for key, value in step.attributes)
            lines.append(f"%{i} = {step.op}({words}){more} : {step.dtype}")
        return "\n".join([*lines, "return " + ", ".join(f"%{i}" for i in self.outputs)])


def _text(dtype: str, dims: Sequence[int]) -> str:
    return f"{dtype}[{','.join(map(str, dims))}]"


def _strides(dims: Sequence[int], shape: Sequence[int]) -> list[int]:
    """How a contiguous array of `dims` is walked along `shape`, to which it is broadcast."""
    result, step = [0] * len(shape), 1
    for i in range(1, len(dims) + 1):
        if dims[-i] != 1:
            result[-i] = step
            step *= dims[-i]
    return result
