"""Running sums and products along an axis: inclusive or exclusive, from either end."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.dtypes import DType
from flowstone.ops.numbers.elementwise import ALL_NUMBERS, FLOATS, constant_like, same_shape
from flowstone.ops.numbers.unsigned_integers import SIGNED, modular

__all__ = ["cumprod", "cumsum"]

_ATTRIBUTES = "exclusive: bool = false ; reverse: bool = false ; Tidx: type in [int32, int64] = int32"


def _accumulation(
    name: str, function: Callable[..., torch.Tensor], neutral: float, types: tuple[DType, ...] = ALL_NUMBERS
) -> OpDeclaration:
    declaration = op(name, "x: T, axis: Tidx -> out: T", _ATTRIBUTES, T=types, host=["axis"])
    declaration.infer(same_shape)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        dtype, axis, dims = node.dtype(0), node.constant(1), node.dims(0)
        exclusive, reverse = node.attributes["exclusive"], node.attributes["reverse"]
        kind = SIGNED.get(dtype) or dtype.torch
        if (
            axis is not None
            and axis.shape == ()
            and dims
            and dtype not in SIGNED
            and not exclusive
            and not reverse
        ):
            if -len(dims) <= axis < len(dims):
                return Call(function, X0, int(axis), dtype=kind)

        def accumulate(x: torch.Tensor, axis: torch.Tensor) -> torch.Tensor:
            at = _checked_axis(axis, x.ndim)
            x = x.flip(at) if reverse else x
            total = function(_shifted(x, at, neutral) if exclusive else x, at, dtype=kind)
            return total.flip(at) if reverse else total

        if dtype not in SIGNED:
            return accumulate
        return lambda x, axis: modular(dtype, lambda signed: accumulate(signed, axis))(x)

    return declaration


def _checked_axis(axis: torch.Tensor, rank: int) -> int:
    if axis.ndim:
        message = f"ScanOp: axis must be a scalar, not {list(axis.shape)}"
        raise errors.InvalidArgumentError(None, None, message)
    at = int(axis)
    if not -rank <= at < rank:
        message = f"ScanOp: Expected scan axis in the range [{-rank}, {rank}), but got {at}"
        raise errors.InvalidArgumentError(None, None, message)
    return at % rank


def _shifted(x: torch.Tensor, axis: int, neutral: float) -> torch.Tensor:
    """`x` moved on by one along the axis, with the neutral element in front."""
    size = x.shape[axis]
    if not size:
        return x
    first = torch.full_like(x.narrow(axis, 0, 1), neutral)
    return torch.cat([first, x.narrow(axis, 0, size - 1)], axis)


def _log_sums(x: torch.Tensor, axis: int, dtype: Any) -> torch.Tensor:
    return torch.logcumsumexp(x, axis)


cumsum_op = _accumulation("Cumsum", torch.cumsum, 0)
cumprod_op = _accumulation("Cumprod", torch.cumprod, 1)
cumulative_logsumexp_op = _accumulation("CumulativeLogsumexp", _log_sums, -math.inf, FLOATS)


@cumsum_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    exclusive, reverse = op.attributes["exclusive"], op.attributes["reverse"]
    return F.Cumsum(dy, op.inputs[1], exclusive=exclusive, reverse=not reverse), None


@cumprod_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x, axis = op.inputs
    exclusive, reverse = op.attributes["exclusive"], op.attributes["reverse"]
    product = F.Cumprod(x, axis, exclusive=exclusive, reverse=reverse)
    flow = F.Cumsum(F.Mul(product, dy), axis, exclusive=exclusive, reverse=not reverse)
    return F.DivNoNan(flow, x), None


@cumulative_logsumexp_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    """Positive and negative gradients apart, by their logarithms."""
    x, axis = op.inputs
    y, least = op.outputs[0], constant_like(x.dtype.base_dtype.min, x)  # infinity has no second gradient
    exclusive, reverse = op.attributes["exclusive"], op.attributes["reverse"]

    def flow(sign: Any) -> Tensor:
        logarithm = F.SelectV2(F.Greater(sign, constant_like(0, sign)), F.Log(sign), least)
        term = F.Sub(logarithm, y)
        total = F.CumulativeLogsumexp(term, axis, exclusive=exclusive, reverse=not reverse)
        return F.Exp(F.AddV2(total, x))

    return F.Sub(flow(dy), flow(F.Neg(dy))), None


def cumsum(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """The sums of each element and those before it along `axis`.

    `exclusive` leaves the element itself out, `reverse` sums from the end. InvalidArgumentError at run time
    for an axis that does not exist.
    """
    return cumsum_op(x, axis, exclusive=exclusive, reverse=reverse, name=name)


def cumprod(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """The products of each element and those before it along `axis`; arguments as for `cumsum`."""
    return cumprod_op(x, axis, exclusive=exclusive, reverse=reverse, name=name)


def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """The logarithms of the sums of exponentials of each element and those before it along `axis`; arguments
    as for `cumsum`."""
    return cumulative_logsumexp_op(x, axis, exclusive=exclusive, reverse=reverse, name=name)
