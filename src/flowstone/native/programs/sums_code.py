"""Sums, and what else combines many numbers to one, in the text of a program: accumulators of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.native.codegen.emitter import FLOATS
from flowstone.native.numerics.elements import ELEMENTS
from flowstone.native.programs.writer import Writer

__all__ = ["REDUCTIONS", "Sums", "combined", "neutral"]

REDUCTIONS = {"Sum": "Add", "Mean": "Add", "Prod": "Mul", "Max": "Maximum", "Min": "Minimum",
              "All": "LogicalAnd", "Any": "LogicalOr"}  # fmt: skip
"""The kinds of reductions, with the operation by element that combines two."""
_RANGES = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


def neutral(writer: Writer, kind: str, dtype: str) -> str:
    """What changes nothing, in all lanes."""
    e = writer.vectors
    if kind in ("Max", "Min"):
        if dtype in FLOATS:
            return e.constant(dtype, float("-inf" if kind == "Max" else "inf"))
        top = 1 << _RANGES[dtype]
        return e.constant(dtype, -top if kind == "Max" else top - 1)
    return e.constant(dtype, {"Prod": 1, "All": True, "Any": False}.get(kind, 0))


def combined(e: Any, kind: str, dtype: str, a: str, b: str) -> str:
    """Two numbers, or vectors, as one."""
    return ELEMENTS[REDUCTIONS[kind]].emit(e, dtype, [a, b], {})


class Sums:
    """Accumulators of vectors: memory that LLVM keeps in registers."""

    def __init__(self, writer: Writer, dtype: str, kind: str, keys: Sequence[Any]) -> None:
        self.writer, self.dtype, self.kind = writer, dtype, kind
        self.vector = writer.vectors.type(dtype)
        name = writer.label()
        self.places = {key: f"%sum_{name}_{i}" for i, key in enumerate(keys)}
        nothing = neutral(writer, kind, dtype)
        for place in self.places.values():
            writer.allocate(place, self.vector)
            writer.lines.append(f" store {self.vector} {nothing}, ptr {place}")

    def get(self, key: Any) -> str:
        """What an accumulator holds."""
        return self.writer.vectors.let(f"load {self.vector}, ptr {self.places[key]}")

    def set(self, key: Any, value: str) -> None:
        """Replaces what it holds."""
        self.writer.lines.append(f" store {self.vector} {value}, ptr {self.places[key]}")

    def add(self, key: Any, value: str) -> None:
        """Combines what it holds with a vector."""
        self.set(key, combined(self.writer.vectors, self.kind, self.dtype, self.get(key), value))

    def add_product(self, key: Any, a: str, b: str) -> None:
        """Adds a product, of floating-point numbers in one rounding."""
        e = self.writer.vectors
        if self.dtype in FLOATS:
            self.set(key, e.intrinsic("fma", self.dtype, a, b, self.get(key)))
        else:
            self.add(key, e.binary("mul", self.dtype, a, b))

    def total(self, keys: Sequence[Any]) -> str:
        """What these hold together."""
        values = [self.get(key) for key in keys]
        while len(values) > 1:
            pairs = [values[i : i + 2] for i in range(0, len(values), 2)]
            values = [
                combined(self.writer.vectors, self.kind, self.dtype, *pair) if len(pair) == 2 else pair[0]
                for pair in pairs
            ]
        return values[0]
