"""Operations on the bits of integers, element by element with broadcasting. Public names here belong to
``tf.bitwise``.

A shift by at least the width of the type is one by the width less 1; right shifts keep the sign of signed
integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.ops.numbers.elementwise import binary, broadcast_shape, unary, undone
from flowstone.ops.numbers.unsigned_integers import modular

__all__ = ["bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"]

_INTEGERS = dtypes.INTEGERS

bitwise_and_op = binary(
    "BitwiseAnd", torch.bitwise_and, types=_INTEGERS, commutative=True
).not_differentiable()
bitwise_or_op = binary("BitwiseOr", torch.bitwise_or, types=_INTEGERS, commutative=True).not_differentiable()
bitwise_xor_op = binary(
    "BitwiseXor", torch.bitwise_xor, types=_INTEGERS, commutative=True
).not_differentiable()
invert_op = unary("Invert", torch.bitwise_not, _INTEGERS, adapter=modular).not_differentiable()
invert_op.fold(undone)


def _shift(name: str, make: Callable[[DType], Callable[..., torch.Tensor]]) -> OpDeclaration:
    declaration = op(name, "x: T, y: T -> z: T", T=_INTEGERS)
    declaration.infer(broadcast_shape)
    declaration.kernel(CPU, GPU)(lambda node, env: Call(make(node.dtype(0)), X0, X1))
    return declaration.not_differentiable()


def _by(shift: Callable[..., torch.Tensor], x: torch.Tensor, y: torch.Tensor, most: int) -> torch.Tensor:
    """The shift by amounts that are made fit, in their memory if the result is as large."""
    amounts = y.clamp(0, most)
    return shift(x, amounts, out=amounts) if x.shape == y.shape else shift(x, amounts)


def _left(dtype: DType) -> Callable[..., torch.Tensor]:
    most = dtype.size * 8 - 1
    if not dtype.is_unsigned or dtype is dtypes.uint8:
        return lambda x, y: _by(torch.bitwise_left_shift, x, y, most)
    # An unsigned amount that looks negative is above all amounts.
    return modular(dtype, lambda x, y: torch.bitwise_left_shift(x, _amounts(y, most)))


def _amounts(y: torch.Tensor, most: int) -> torch.Tensor:
    return torch.where((y < 0) | (y > most), most, y)


def _right(dtype: DType) -> Callable[..., torch.Tensor]:
    most = dtype.size * 8 - 1
    if not dtype.is_unsigned or dtype is dtypes.uint8:
        return lambda x, y: _by(torch.bitwise_right_shift, x, y, most)
    if dtype is dtypes.uint64:
        return _right_uint64
    return lambda x, y: (x.to(torch.int64) >> y.to(torch.int64).clamp(0, most)).to(dtype.torch)


def _right_uint64(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x, y = x.view(torch.int64), _amounts(y.view(torch.int64), 63)
    kept = torch.where(
        y == 0, -1, (1 << (64 - y.clamp(min=1))) - 1
    )  # the bits that do not come from the sign
    return ((x >> y) & kept).view(torch.uint64)


left_shift_op = _shift("LeftShift", _left)
right_shift_op = _shift("RightShift", _right)


@dispatched("binary")
def bitwise_and(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits that are set in both, of integers of one type."""
    return bitwise_and_op(x, y, name=name)


@dispatched("binary")
def bitwise_or(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits that are set in either, of integers of one type."""
    return bitwise_or_op(x, y, name=name)


@dispatched("binary")
def bitwise_xor(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits that differ, of integers of one type."""
    return bitwise_xor_op(x, y, name=name)


@dispatched("unary")
def invert(x: Any, name: str | None = None) -> Tensor:
    """Every bit flipped, of integers."""
    return invert_op(x, name=name)


@dispatched("binary")
def left_shift(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x shifted left by y bits, of integers of one type."""
    return left_shift_op(x, y, name=name)


@dispatched("binary")
def right_shift(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x shifted right by y bits, of integers of one type; a negative number stays negative."""
    return right_shift_op(x, y, name=name)
