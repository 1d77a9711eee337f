"""LLVM's text of computations on vectors: one `Emitter` for one stretch of straight-line code.

Values are names such as ``%v7``, or constants, of the types of `KINDS` by their names in NumPy: vectors of
`lanes` elements, or scalars where `lanes` is 1. Floating-point operations are each rounded, as ATen's are:
nothing is contracted and nothing reordered. Operations on float16 (`HALF`) are the processor's own, or each
is done in float32 and rounded, which gives the same. Functions that the text calls are noted in
`declarations`, which emitters of one module share.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from flowstone.native.codegen import host

__all__ = [
    "FLOATING",
    "FLOATS",
    "HALF",
    "INTEGERS",
    "KINDS",
    "SIZES",
    "Attributes",
    "Emit",
    "Emitter",
    "kind_of",
]

KINDS = {
    "float32": "float", "float64": "double", "int8": "i8", "uint8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "bool": "i1",
}  # fmt: skip
HALF = "float16"
"""A type that most element-wise code reads and writes, and computes in float32."""
SIZES = {
    "float32": 4, "float64": 8, "int8": 1, "uint8": 1, "int16": 2, "int32": 4, "int64": 8, "bool": 1, HALF: 2,
}  # fmt: skip
FLOATS = frozenset({"float32", "float64"})
FLOATING = FLOATS | {HALF}
INTEGERS = frozenset({"int8", "uint8", "int16", "int32", "int64"})
_SUFFIXES = {"half": "f16", "float": "f32", "double": "f64"}


def kind_of(dtype: str) -> str:
    """LLVM's type of an element."""
    return "half" if dtype == HALF else KINDS[dtype]


class Emitter:
    """The lines so far, of vectors of `lanes` elements. `prefix` begins the names of values."""

    def __init__(self, lanes: int, declarations: dict[str, str], prefix: str = "v") -> None:
        self.lanes, self.declarations, self.lines = lanes, declarations, list[str]()
        self._prefix, self._count = prefix, 0

    def let(self, text: str) -> str:
        """A new value: what the instruction `text` gives."""
        self._count += 1
        name = f"%{self._prefix}{self._count}"
        self.lines.append(f" {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f" {text}")

    def vector(self, kind: str) -> str:
        """The type of a value whose elements are of LLVM's type `kind`."""
        return kind if self.lanes == 1 else f"<{self.lanes} x {kind}>"

    def type(self, dtype: str) -> str:
        """The type of a value whose elements are of this type of NumPy's."""
        return self.vector(kind_of(dtype))

    def constant(self, dtype: str, value: Any) -> str:
        """The value with this number everywhere."""
        kind = kind_of(dtype)
        if dtype == "float32":
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        if dtype == HALF:
            text = f"0xH{int(np.float16(value).view(np.uint16)):04X}"
        elif dtype in FLOATS:
            text = f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
        else:
            text = ("true" if value else "false") if dtype == "bool" else str(int(value))
        return text if self.lanes == 1 else f"splat ({kind} {text})"

    # ---- instructions

    def binary(self, name: str, dtype: str, a: str, b: str) -> str:
        """``name a, b``, such as fadd."""
        return self.let(f"{name} {self.type(dtype)} {a}, {b}")

    def compare(self, predicate: str, dtype: str, a: str, b: str) -> str:
        """A comparison, such as ``fcmp olt``."""
        return self.let(f"{predicate} {self.type(dtype)} {a}, {b}")

    def select(self, condition: str, dtype: str, a: str, b: str) -> str:
        """`a` where the condition holds, else `b`."""
        kind = self.type(dtype)
        return self.let(f"select {self.vector('i1')} {condition}, {kind} {a}, {kind} {b}")

    def negate(self, dtype: str, x: str) -> str:
        """-x."""
        if dtype in FLOATING:
            return self.let(f"fneg {self.type(dtype)} {x}")
        return self.binary("sub", dtype, self.constant(dtype, 0), x)

    def intrinsic(self, name: str, dtype: str, *arguments: str) -> str:
        """A call of LLVM's own function ``llvm.name`` of values of one type."""
        kind = kind_of(dtype)
        suffix = _SUFFIXES.get(kind, kind)
        suffix = suffix if self.lanes == 1 else f"v{self.lanes}{suffix}"
        return self.call(
            f"llvm.{name}.{suffix}", self.type(dtype), [(self.type(dtype), x) for x in arguments]
        )

    def call(self, name: str, result: str, arguments: list[tuple[str, str]]) -> str:
        """A call of a function by its name; `arguments`: their types and values."""
        kinds = ", ".join(kind for kind, _ in arguments)
        self.declarations[name] = f"declare {result} @{name}({kinds})"
        return self.let(f"call {result} @{name}({', '.join(f'{kind} {x}' for kind, x in arguments)})")

    def sleef(self, name: str, dtype: str, *arguments: str, accuracy: str = "u10") -> str:
        """A call of a function of SLEEF, which torch brings; see `has_sleef`."""
        width = host.lanes() if dtype == "float32" else host.lanes() // 2
        full = sleef_name(name, dtype, accuracy)
        kind = KINDS[dtype]
        vector = f"<{width} x {kind}>"
        if self.lanes == 1:
            wide = [self.let(f"insertelement {vector} zeroinitializer, {kind} {x}, i32 0") for x in arguments]
            return self.let(
                f"extractelement {vector} {self.call(full, vector, [(vector, x) for x in wide])}, i32 0"
            )
        parts = []
        for i in range(self.lanes // width):
            chosen = [self._part(kind, x, i, width) for x in arguments]
            parts.append(self.call(full, vector, [(vector, x) for x in chosen]))
        return parts[0] if len(parts) == 1 else self._joined(kind, parts, width)

    def _part(self, kind: str, x: str, i: int, width: int) -> str:
        if width == self.lanes:
            return x
        places = ", ".join(f"i32 {i * width + j}" for j in range(width))
        whole = self.vector(kind)
        return self.let(f"shufflevector {whole} {x}, {whole} {x}, <{width} x i32> <{places}>")

    def _joined(self, kind: str, parts: list[str], width: int) -> str:
        places = ", ".join(f"i32 {j}" for j in range(2 * width))
        a, b = parts  # float64 in vectors of twice the width
        vector = f"<{width} x {kind}>"
        return self.let(f"shufflevector {vector} {a}, {vector} {b}, <{2 * width} x i32> <{places}>")

    def convert(self, x: str, source: str, target: str) -> str:
        """The elements in another type, as ATen converts them."""
        if source == target:
            return x
        if HALF in (source, target):  # by float32, as ATen's
            x = self._half(x, "fpext", HALF, "float32") if source == HALF else x
            x = self.convert(
                x, "float32" if source == HALF else source, "float32" if target == HALF else target
            )
            return self._half(x, "fptrunc", "float32", HALF) if target == HALF else x
        if target == "bool":
            predicate = "fcmp une" if source in FLOATS else "icmp ne"
            return self.compare(predicate, source, x, self.constant(source, 0))
        return self.let(
            f"{_conversion(source, target)} {self.type(source)} {x} to {self.type(target)}"
            if SIZES[source] != SIZES[target] or source in FLOATS or target in FLOATS or source == "bool"
            else f"bitcast {self.type(source)} {x} to {self.type(target)}"
        )

    def _half(self, x: str, instruction: str, source: str, target: str) -> str:
        return self.let(f"{instruction} {self.type(source)} {x} to {self.type(target)}")

    def bits(self, x: str, source: str, target: str) -> str:
        """The same bits as another type of the same size, by LLVM's names of the elements."""
        return self.let(f"bitcast {self.vector(source)} {x} to {self.vector(target)}")


def sleef_name(name: str, dtype: str, accuracy: str = "u10") -> str:
    """What SLEEF calls a function for a full vector of this processor."""
    width = host.lanes() if dtype == "float32" else host.lanes() // 2
    return f"Sleef_{name}{'f' if dtype == 'float32' else 'd'}{width}_{accuracy}"


def _conversion(source: str, target: str) -> str:
    unsigned = source in ("uint8", "bool")
    if source in FLOATS:
        if target in FLOATS:
            return "fpext" if SIZES[target] > SIZES[source] else "fptrunc"
        return "fptoui" if target == "uint8" else "fptosi"
    if target in FLOATS:
        return "uitofp" if unsigned else "sitofp"
    if source != "bool" and SIZES[target] < SIZES[source]:
        return "trunc"
    return "zext" if unsigned else "sext"


Attributes = Mapping[str, Any]
Emit = Callable[[Emitter, str, Sequence[str], Attributes], str]
"""What writes an operation's instructions, and returns its result: of operands of a type, with attributes."""
