"""Quotients and remainders, element by element.

`div` of integers is Python 2's floor; the op Div truncates, as C does. Dividing an integer by zero is an
InvalidArgumentError; on a GPU, where a check would wait for the device, the result is undefined.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.building import graph_of
from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call, Environment, Kernel
from flowstone.framework.declarations.operation import Equal, F, Gradients, OpDeclaration, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.ops.numbers.arithmetic import by_code, is_constant, same_as
from flowstone.ops.numbers.broadcast_gradients import shape_sums
from flowstone.ops.numbers.elementwise import (
    ARITHMETIC,
    FLOATS,
    FLOATS_AND_COMPLEX,
    REAL,
    binary,
    binary_call,
    broadcast_shape,
    complex_call,
    conjugate,
    zero_where_zero,
)
from flowstone.ops.numbers.unsigned_integers import divided, needs_help

__all__ = [
    "div",
    "div_no_nan",
    "divide",
    "floor_div",
    "floordiv",
    "floormod",
    "mod",
    "realdiv",
    "truediv",
    "truncatediv",
    "truncatemod",
]


def _truncated_quotient(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    # the least number divided by -1 overflows, which stops the process: negate instead
    if x.dtype is torch.uint8:
        return torch.div(x, y, rounding_mode="trunc")
    return torch.where(y == -1, -x, torch.div(x, torch.where(y == -1, 1, y), rounding_mode="trunc"))


def _truncated_remainder(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.fmod(x, y)


def _floored_quotient(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.floor_divide(x, y)


def _floored_remainder(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.remainder(x, y)


def _quotient(
    name: str,
    types: tuple[DType, ...],
    for_integers: Callable[..., Any],
    for_floats: Callable[..., Any],
    **traits: Any,
) -> OpDeclaration:
    """Declares a quotient or remainder whose integers and floats take different ways."""
    declaration = op(name, "x: T, y: T -> z: T", T=types, **traits)
    declaration.infer(broadcast_shape)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        dtype = node.dtype(0)
        if not dtype.is_integer:
            call = None if isinstance(for_floats, Call) else complex_call(node, env, for_floats, "Div")
            if call is not None:
                return call
            in_place = torch.Tensor.div_ if for_floats is torch.div else None
            return for_floats if isinstance(for_floats, Call) else binary_call(node, for_floats, in_place)
        function = _truncated(for_integers) if dtype.is_unsigned else for_integers
        if needs_help(dtype):
            return divided(dtype, function)
        return by_code(function.__name__.lstrip("_"), function)

    return declaration


def _truncated(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The function that rounds towards zero, where that is also the floor."""
    return {_floored_quotient: _truncated_quotient, _floored_remainder: _truncated_remainder}.get(
        function, function
    )


_FLOORED = Call(torch.floor, Call(torch.div, X0, X1))
div_op = _quotient("Div", ARITHMETIC, _truncated_quotient, torch.div)
real_div_op = _quotient("RealDiv", ARITHMETIC, _truncated_quotient, torch.div, elementwise=True)
truncate_div_op = _quotient(
    "TruncateDiv", ARITHMETIC, _truncated_quotient, Call(torch.trunc, Call(torch.div, X0, X1))
)
floor_div_op = _quotient("FloorDiv", ARITHMETIC, _floored_quotient, _FLOORED)
floor_div_op.number("{0} // {1}", overflows=True, integers_only=True)
floor_div_op.sizes(np.floor_divide)
truncate_mod_op = _quotient(
    "TruncateMod", (*FLOATS, dtypes.int32, dtypes.int64), _truncated_remainder, torch.fmod
)
mod_op = _quotient("Mod", (*FLOATS, dtypes.int32, dtypes.int64), _truncated_remainder, torch.fmod)
floor_mod_op = _quotient("FloorMod", REAL, _floored_remainder, torch.remainder)
floor_mod_op.number("{0} % {1}", integers_only=True)
mod_op.no_gradient()
truncate_mod_op.no_gradient()
truncate_div_op.gradient(lambda op, dz: (None, None))
floor_div_op.gradient(lambda op, dz: (None, None))


@real_div_op.fold
@div_op.fold
def _(node: Node) -> Equal:
    return same_as(node, 0) if is_constant(node.constant(1), 1) else None


@floor_div_op.fold
@truncate_div_op.fold
def _(node: Node) -> Equal:
    return same_as(node, 0) if node.dtype(0).is_integer and is_constant(node.constant(1), 1) else None


@div_op.gradient
@real_div_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    x, y = op.inputs
    back = shape_sums(x, y)
    x, y = conjugate(x), conjugate(y)
    divide_by: Callable[..., Tensor] = F.RealDiv
    if op.type == "Div":
        divide_by = functools.partial(F.Div, name="div")
    dx = back(divide_by(dz, y), 0)
    return dx, back(F.Mul(dz, divide_by(divide_by(F.Neg(x), y), y), name="mul"), 1)


@floor_mod_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    x, y = op.inputs
    back = shape_sums(x, y)
    floors = F.FloorDiv(x, y)
    return back(dz, 0), back(F.Mul(dz, F.Neg(floors), name="mul"), 1)


def _div_no_nan(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return zero_where_zero(torch.div(x, y), y)


div_no_nan_op = binary("DivNoNan", _div_no_nan, types=FLOATS_AND_COMPLEX)


@div_no_nan_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    x, y = op.inputs
    back = shape_sums(x, y)
    x, y = conjugate(x), conjugate(y)
    divide_by = functools.partial(F.DivNoNan, name="div_no_nan")
    dx = back(divide_by(dz, y), 0)
    return dx, back(F.Mul(dz, divide_by(divide_by(F.Neg(x), y), y), name="mul"), 1)


# ---- public functions


@dispatched("binary")
def realdiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y of real or complex numbers, element-wise with broadcasting."""
    return real_div_op(x, y, name=name)


_FLOAT_FOR = {dtypes.int8: dtypes.float32, dtypes.uint8: dtypes.float32, dtypes.int16: dtypes.float32,
              dtypes.uint16: dtypes.float32, dtypes.int32: dtypes.float64, dtypes.uint32: dtypes.float64,
              dtypes.int64: dtypes.float64, dtypes.uint64: dtypes.float64}  # fmt: skip


def _pair(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    x = convert_to_tensor(x, name="x")
    y = convert_to_tensor(y, None if isinstance(y, Tensor) else x.dtype.base_dtype, name="y")
    if x.dtype.base_dtype is not y.dtype.base_dtype:
        raise TypeError(f"x and y must have the same dtype, got {x.dtype!r} != {y.dtype!r}")
    return x, y


def _as_floats(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Integers of up to 16 bits as float32, wider ones as float64; others as they are."""
    wanted = _FLOAT_FOR.get(x.dtype.base_dtype)
    return (x, y) if wanted is None else (F.Cast(x, DstT=wanted), F.Cast(y, DstT=wanted))


@dispatched("binary")
def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as Python 3 divides: integers of up to 16 bits become float32, wider ones float64.

    TypeError if the dtypes differ.
    """
    if type(x) is Tensor and type(y) is Tensor and x.dtype is y.dtype and not x.dtype.is_integer:
        return real_div_op(x, y, name=name or "truediv")
    graph = graph_of([x, y])
    with graph.as_default(), graph.name_scope(name or "truediv") as scope:
        return real_div_op(*_as_floats(*_pair(x, y)), name=scope)


@dispatched("binary")
def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as Python 3 divides, see `truediv`."""
    return truediv(x, y, name)


@dispatched("binary")
def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as Python 2 divides: integers give the floor. TypeError if the dtypes differ."""
    graph = graph_of([x, y])
    with graph.as_default(), graph.name_scope(name or "div") as scope:
        x, y = _pair(x, y)
        return (floor_div_op if x.dtype.is_integer else real_div_op)(x, y, name=scope)


@dispatched("binary")
def floordiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The floor of x / y, element-wise with broadcasting."""
    graph = graph_of([x, y])
    with graph.as_default(), graph.name_scope(name or "floordiv") as scope:
        return floor_div_op(x, y, name=scope)


def floor_div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The floor of x / y, element-wise with broadcasting."""
    return floor_div_op(x, y, name=name)


@dispatched("binary")
def floormod(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x - floor(x / y) y: the remainder with the sign of y."""
    return floor_mod_op(x, y, name=name)


mod = floormod


@dispatched("binary")
def truncatediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y rounded towards zero, of integers."""
    return truncate_div_op(x, y, name=name)


@dispatched("binary")
def truncatemod(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The remainder with the sign of x."""
    return truncate_mod_op(x, y, name=name)


@dispatched("binary")
def div_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, and 0 where y is 0; of integers as `truediv` divides them. TypeError if the dtypes differ."""
    graph = graph_of([x, y])
    with graph.as_default(), graph.name_scope(name or "div_no_nan") as scope:
        return div_no_nan_op(*_as_floats(*_pair(x, y)), name=scope)
