"""Functions of two numbers: the next number; products, quotients and logarithms with 0 where one is 0."""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.numbers.elementwise import (
    FLOATS_AND_COMPLEX,
    binary,
    broadcast_shape,
    constant_like,
    sum_to,
    zero_where_zero,
)
from flowstone.ops.numbers.special_functions import xdivy_op, xlogy_op

__all__ = ["multiply_no_nan", "nextafter", "reciprocal_no_nan", "xdivy", "xlog1py", "xlogy"]

next_after_op = op(
    "NextAfter", "x1: T, x2: T -> output: T", "T: type in [double, float] = float", broadcasts=True
)
next_after_op.infer(broadcast_shape)
next_after_op.kernel(CPU, GPU)(lambda node, env: Call(torch.nextafter, X0, X1))


@next_after_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    x1, x2 = op.inputs
    return sum_to(dz, x1, x2), sum_to(F.ZerosLike(dz), x2, x1)


def _zero_where_second_is(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return zero_where_zero(x * y, y)


def _x_log1p_y(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return zero_where_zero(torch.mul(x, torch.log1p(y)), x)


mul_no_nan_op = binary("MulNoNan", _zero_where_second_is, types=FLOATS_AND_COMPLEX)
xlog1py_op = binary("Xlog1py", _x_log1p_y, types=FLOATS_AND_COMPLEX)


@mul_no_nan_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    x, y = op.inputs
    return sum_to(F.MulNoNan(dz, y), x, y), sum_to(F.MulNoNan(x, dz), y, x)


@xlog1py_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    x, y = op.inputs
    is_not_zero = F.Cast(F.NotEqual(x, constant_like(0, x)), DstT=x.dtype.base_dtype)
    slope_of_x = F.Xlog1py(is_not_zero, y)
    slope_of_y = F.Xdivy(x, F.AddV2(y, constant_like(1, y)))
    return sum_to(F.Mul(dz, slope_of_x), x, y), sum_to(F.Mul(dz, slope_of_y), y, x)


def nextafter(x1: Any, x2: Any, name: str | None = None) -> Tensor:
    """The floating-point number after `x1` in the direction of `x2`, element-wise with broadcasting."""
    return next_after_op(x1, x2, name=name)


def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x y, and zero where y is zero, even if x is infinite or NaN; element-wise with broadcasting."""
    return mul_no_nan_op(x, y, name=name)


def xlog1py(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x log(1 + y), and zero where x is zero; element-wise with broadcasting."""
    return xlog1py_op(x, y, name=name)


def xdivy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, element-wise with broadcasting, and 0 where x is 0, whatever y is; floats and complex."""
    return xdivy_op(x, y, name=name)


def xlogy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x log(y), element-wise with broadcasting, and 0 where x is 0, whatever y is; floats and complex."""
    return xlogy_op(x, y, name=name or "xlogy")


def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """1 / x, element-wise, and 0 where x is 0; floats and complex. TypeError for other types."""
    with get_default_graph().name_scope(name or "reciprocal_no_nan") as scope:
        x = convert_to_tensor(x, name="x")
        return F.DivNoNan(x.dtype.as_numpy_dtype(1), x, name=scope)
