"""The positions of the greatest and smallest elements along an axis, the first of several.

A NaN is never one, as in TensorFlow; where all are NaN the position is 0. ATen takes NaN for the extreme, so
its kernels see an infinity instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel
from flowstone.framework.declarations.operation import OpDeclaration, Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.ops.numbers.elementwise import QUANTIZED, REAL
from flowstone.ops.numbers.unsigned_integers import SIGNED

__all__ = ["arg_max", "arg_min", "argmax", "argmin"]

_ARG_ATTRIBUTES = {
    "ArgMax": "Tidx: type in [int16, int32, int64] = int32 ; "
    "output_type: type in [int16, uint16, int32, int64] = int64",
    "ArgMin": "Tidx: type in [int32, int64] = int32 ; output_type: type in [int32, int64] = int64",
}

# ATen finds extremes along with their positions many times as fast as positions alone, unless they are few or
# the axis is the last and long: [10, 2000] along the first axis 14 µs instead of 217, [2000, 10] along the
# last 13 instead of 32, [128, 10] 3.0 instead of 2.3. Both give the first of equal ones.
_WITH_EXTREME: dict[Callable[..., torch.Tensor], Any] = {torch.argmax: torch.max, torch.argmin: torch.min}


def _with_infinity(function: Callable[..., torch.Tensor], x: torch.Tensor, axis: int) -> torch.Tensor:
    worst = -math.inf if function is torch.argmax else math.inf
    return function(x.nan_to_num(worst, math.inf, -math.inf), axis)


def _with_extreme(function: Callable[..., torch.Tensor], x: torch.Tensor, axis: int) -> torch.Tensor:
    """The positions, found along with the extremes: those show whether there is a NaN."""
    extremes: torch.Tensor
    positions: torch.Tensor
    extremes, positions = _WITH_EXTREME[function](x, axis)
    if x.is_floating_point() and extremes.isnan().any():
        return _with_infinity(function, x, axis)
    return positions


def _argument_of_extreme(name: str, function: Callable[..., torch.Tensor]) -> OpDeclaration:
    declaration = op(
        name, "input: T, dimension: Tidx[] -> output: output_type", _ARG_ATTRIBUTES[name],
        T=(*REAL, *QUANTIZED, dtypes.bool), host=["dimension"], reduces=True,
    )  # fmt: skip

    @declaration.infer
    def _(node: Node) -> Shapes:
        dims, axis = node.dims(0), node.constant(1)
        if dims is None:
            return None
        if len(dims) <= 1:
            return ()
        if axis is None:
            return (None,) * (len(dims) - 1)
        if not -len(dims) <= axis < len(dims):
            raise ValueError(f"Dimension ({int(axis)}) must be in the range [{-len(dims)}, {len(dims)})")
        at = int(axis) % len(dims)
        return dims[:at] + dims[at + 1 :]

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        dtype, axis, result = node.dtype(0), node.constant(1), node.attributes["output_type"].torch
        dims = node.static_shape(0)
        if axis is not None and dims and dims[int(axis)] and dtype not in SIGNED and not dtype.is_bool:
            call = Call(function, X0, int(axis))
            if env.device.type == "cpu" and env.machine.repays(math.prod(dims), 0.5):
                call = Call(_with_extreme, function, X0, int(axis))
            elif dtype.is_floating:
                call = Call(_with_infinity, function, X0, int(axis))
            return call if result is torch.int64 else Call(torch.Tensor.to, call, result)
        return _argument_kernel(name, dtype, function, result)

    declaration.gradient(lambda op, dy: (None, None))
    return declaration


def _argument_kernel(
    name: str, dtype: DType, function: Callable[..., torch.Tensor], result: str
) -> Callable[..., torch.Tensor]:
    def find(x: torch.Tensor, dimension: int) -> torch.Tensor:
        axis = int(dimension)
        if not -x.ndim <= axis < x.ndim:
            message = f"Dimension must be in [{-x.ndim}, {x.ndim}), but got {axis}"
            raise errors.InvalidArgumentError(None, None, message)
        if x.shape[axis] == 0:
            message = f"Reduction axis {axis} is empty in shape {list(x.shape)}"
            raise errors.InvalidArgumentError(None, None, message)
        if dtype.is_bool:
            x = x.to(torch.uint8)
        elif dtype in SIGNED:
            x = x.to(torch.int64) if dtype is not dtypes.uint64 else x.view(torch.int64) ^ -(2**63)
        if dtype.is_floating:
            return _with_infinity(function, x, axis).to(result)
        return function(x, axis).to(result)

    return find


arg_max_op = _argument_of_extreme("ArgMax", torch.argmax)
arg_min_op = _argument_of_extreme("ArgMin", torch.argmin)


# ---- public functions


def _position(
    declaration: OpDeclaration,
    input: Any,
    axis: Any,
    name: str | None,
    dimension: Any,
    output_type: Any,
) -> Tensor:
    if dimension is not None:
        if axis is not None:
            raise ValueError("Cannot specify both 'axis' and 'dimension'")
        axis = dimension
    return declaration(
        input, 0 if axis is None else axis, output_type=dtypes.as_dtype(output_type), name=name
    )


def argmax(
    input: Any,
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: Any = dtypes.int64,
) -> Tensor:
    """The position of the greatest element (the first of several) along `axis` (default 0), as
    `output_type`.
    """
    return _position(arg_max_op, input, axis, name, dimension, output_type)


def argmin(
    input: Any,
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: Any = dtypes.int64,
) -> Tensor:
    """The position of the smallest element (the first of several) along `axis` (default 0), as
    `output_type`.
    """
    return _position(arg_min_op, input, axis, name, dimension, output_type)


def arg_max(input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """The older form of `argmax`."""
    return _position(arg_max_op, input, dimension, name, None, output_type)


def arg_min(input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """The older form of `argmin`."""
    return _position(arg_min_op, input, dimension, name, None, output_type)
