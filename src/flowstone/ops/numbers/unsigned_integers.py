"""Kernels for uint16, uint32 and uint64, on which ATen hardly computes.

Two ways round, both with TensorFlow's wrap-around:

- `modular(dtype, function)`: sums, products and bit operations give the same bits for signed and unsigned
  numbers, so the function runs on the same bits read as signed integers;
- `ordered(dtype, function)`: comparisons, extremes and divisions run on a wider signed type; uint64, which
  has none, is shifted by 2**63 into the order of int64 (not for divisions, see `divide_uint64`).

Each returns `function` itself for any other type, so a factory may wrap blindly.

>>> x = torch.tensor([65535], dtype=torch.uint16)
>>> modular(dtypes.uint16, torch.add)(x, x)
tensor([65534], dtype=torch.uint16)
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType

SIGNED = {dtypes.uint16: torch.int16, dtypes.uint32: torch.int32, dtypes.uint64: torch.int64}
_LOWEST = -(2**63)

_Function = Callable[..., torch.Tensor]


def needs_help(dtype: DType) -> bool:
    """Whether ATen lacks arithmetic for `dtype`."""
    return dtype in SIGNED


def modular(dtype: DType, function: _Function) -> _Function:
    """`function` on tensors of `dtype`, where signed and unsigned results have the same bits."""
    signed, unsigned = SIGNED.get(dtype), dtype.torch
    if signed is None or unsigned is None:
        return function

    def compute(*values: torch.Tensor) -> torch.Tensor:
        return function(*[value.view(signed) for value in values]).view(unsigned)

    return compute


def ordered(dtype: DType, function: _Function) -> _Function:
    """`function`, which asks for the order of its arguments, on tensors of `dtype`.

    A result of the wide type is one of the values and becomes `dtype` again; results of other types stay.
    """
    if dtype not in SIGNED:
        return function
    unsigned = dtype.torch
    widen, narrow = (_shift, _unshift) if dtype is dtypes.uint64 else (_to_int64, _converter(unsigned))

    def compute(*values: torch.Tensor) -> torch.Tensor:
        result = function(*[widen(value) for value in values])
        return narrow(result) if result.dtype is torch.int64 else result

    return compute


def divided(dtype: DType, function: _Function) -> _Function:
    """`function(x, y)`, a quotient or remainder rounded towards zero, on tensors of `dtype`."""
    if dtype not in SIGNED:
        return function
    if dtype is dtypes.uint64:
        part = 1 if function(torch.tensor(7), torch.tensor(4)).item() == 3 else 0
        return lambda x, y: divide_uint64(x, y)[part]
    unsigned = dtype.torch
    return lambda x, y: function(x.to(torch.int64), y.to(torch.int64)).to(unsigned)


def divide_uint64(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Quotient and remainder of uint64 tensors that broadcast.

    With x halved both fit into int64; the doubled quotient is then at most one too small. A divisor of
    2**63 or more goes into x once or not at all.
    """
    x, y = torch.broadcast_tensors(x.view(torch.int64), y.view(torch.int64))
    by_zero = y.device.type == "cpu" and bool((y == 0).any())  # elsewhere asking would wait for the device
    small = y if by_zero else torch.where(y > 0, y, torch.ones_like(y))
    half = (x >> 1) & ~_LOWEST
    quotient = torch.div(half, small, rounding_mode="trunc") * 2
    quotient = quotient + _at_least(x - quotient * small, small)
    quotient = torch.where(y < 0, _at_least(x, y).to(torch.int64), quotient)
    return quotient.view(torch.uint64), (x - quotient * y).view(torch.uint64)


def _at_least(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x ^ _LOWEST) >= (y ^ _LOWEST)


def _shift(x: torch.Tensor) -> torch.Tensor:
    return x.view(torch.int64) ^ _LOWEST


def _unshift(x: torch.Tensor) -> torch.Tensor:
    return (x ^ _LOWEST).view(torch.uint64)


def _to_int64(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.int64)


def _converter(dtype: torch.dtype | None) -> _Function:
    return lambda x: x.to(dtype)
