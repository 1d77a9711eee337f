"""Operations on the bits of integers for one vector: ``BITS[name]`` has the instructions, of the operands and
their type, how many operands there are, and the result's type (None: the operands').

A shift by at least the width of the type is one by the width less 1, and one by less than 0 is none.
"""

from __future__ import annotations

from collections.abc import Callable

from flowstone.native.codegen.emitter import SIZES, Emitter

__all__ = ["BITS"]


def _binary(name: str) -> Callable[..., str]:
    return lambda e, dtype, x, y: e.binary(name, dtype, x, y)


def _inverted(e: Emitter, dtype: str, x: str) -> str:
    return e.binary("xor", dtype, x, e.constant(dtype, -1))


def _within_width(e: Emitter, dtype: str, y: str) -> str:
    """The bits that a number is shifted by."""
    most = e.constant(dtype, 8 * SIZES[dtype] - 1)
    if dtype == "uint8":
        return e.intrinsic("umin", dtype, y, most)
    return e.intrinsic("smin", dtype, e.intrinsic("smax", dtype, y, e.constant(dtype, 0)), most)


def _left(e: Emitter, dtype: str, x: str, y: str) -> str:
    return e.binary("shl", dtype, x, _within_width(e, dtype, y))


def _right(e: Emitter, dtype: str, x: str, y: str) -> str:
    return e.binary("lshr" if dtype == "uint8" else "ashr", dtype, x, _within_width(e, dtype, y))


def _set_bits(e: Emitter, dtype: str, x: str) -> str:
    count = e.intrinsic("ctpop", dtype, x)
    return e.convert(count, dtype, "uint8")


BITS: dict[str, tuple[Callable[..., str], int, str | None]] = {
    "BitwiseAnd": (_binary("and"), 2, None),
    "BitwiseOr": (_binary("or"), 2, None),
    "BitwiseXor": (_binary("xor"), 2, None),
    "Invert": (_inverted, 1, None),
    "LeftShift": (_left, 2, None),
    "RightShift": (_right, 2, None),
    "PopulationCount": (_set_bits, 1, "uint8"),
}
