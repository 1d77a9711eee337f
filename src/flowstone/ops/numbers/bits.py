"""Bits: how many are set in each number, and comparisons packed into bytes."""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import format_dims
from flowstone.ops.numbers.elementwise import by_pieces, same_shape

__all__: list[str] = []

_SIGNED = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)
_UNSIGNED = (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)
_SIGNED_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes
_HIGHEST_FIRST = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], dtype=torch.uint8)

population_count_op = op("PopulationCount", "x: T -> y: uint8", T=(*_SIGNED, *_UNSIGNED), by_element=True)
population_count_op.infer(same_shape)
population_count_op.not_differentiable()


def _set_bits(x: torch.Tensor) -> torch.Tensor:
    """Sums of neighbouring bits in place, then of pairs, of fours and of bytes."""
    size = x.dtype.itemsize
    bytes_of_ones = int.from_bytes(b"\1" * size, "little")

    def counted(word: torch.Tensor) -> torch.Tensor:
        word = word - (word >> 1).bitwise_and_(0x55 * bytes_of_ones)
        pairs = (word >> 2).bitwise_and_(0x33 * bytes_of_ones)
        word = word.bitwise_and_(0x33 * bytes_of_ones).add_(pairs)
        word = (word >> 4).add_(word).bitwise_and_(0x0F * bytes_of_ones)
        if size > 1:
            word = word.mul_(bytes_of_ones).bitwise_right_shift_(8 * size - 8)
        return word.to(torch.uint8)

    return by_pieces(counted, torch.uint8, x.view(_SIGNED_WORDS[size]))


population_count_op.kernel(CPU, GPU)(lambda node, env: Call(_set_bits, X0))

compare_and_bitpack_op = op(
    "CompareAndBitpack",
    "input: T, threshold: T -> output: uint8",
    T=(dtypes.bool, *dtypes.FLOATS, *_SIGNED),
    by_element=True,
)
compare_and_bitpack_op.no_gradient()


@compare_and_bitpack_op.infer
def _(node: Node) -> Shapes:
    dims = node.dims(0)
    if dims is None:
        return None
    if not dims:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if dims[-1] is None:
        return (*dims[:-1], None)
    if dims[-1] % 8:
        raise ValueError(f"Dimension size must be evenly divisible by 8 but is {dims[-1]}")
    return (*dims[:-1], dims[-1] // 8)


def _packed(x: torch.Tensor, threshold: Any, places: torch.Tensor) -> torch.Tensor:
    if threshold.ndim:
        raise errors.InvalidArgumentError(
            None, None, f"threshold must be a scalar, but saw shape: {format_dims(tuple(threshold.shape))}"
        )
    if not x.ndim:
        raise errors.InvalidArgumentError(None, None, "input should be at least a vector, but saw a scalar.")
    if x.shape[-1] % 8:
        raise errors.InvalidArgumentError(
            None,
            None,
            "Inner dimension of input should be divisible by 8, but saw shape: "
            f"{format_dims(tuple(x.shape))}",
        )
    above = (x > threshold).to(torch.uint8).reshape(*x.shape[:-1], x.shape[-1] // 8, 8)
    packed: torch.Tensor = (above * places).sum(-1, dtype=torch.uint8)
    return packed


compare_and_bitpack_op.kernel(CPU, GPU)(
    lambda node, env: Call(_packed, X0, X1, _HIGHEST_FIRST.to(env.device))
)
