"""Softmax and its logarithm. Public names here belong to ``tf.nn``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import range as range_of
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import rank as rank_of

__all__ = [
    "log_softmax",
    "softmax",
]

FLOATS = (*dtypes.FLOATS, dtypes.bfloat16)


def _at_least_vector(node: Node) -> Shapes:
    dims = node.dims(0)
    if dims is not None and not dims:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    return dims


_BY_PASSES = 640  # elements from which five passes over them cost less than rows one by one


def _normaliser(
    name: str, output: str, function: Callable[..., Any], by_passes: Callable[..., Any]
) -> OpDeclaration:
    declaration = op(
        name, f"logits: T -> {output}: T", T=FLOATS, by_element=True, row_wise=True, cost=10, starts_team=True
    )
    declaration.infer(_at_least_vector)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        dims = node.static_shape(0)
        if dims and _fill_no_vector(node, env, dims):
            return Call(by_passes, X0)
        if node.dims(0) is not None:
            return Call(function, X0, -1)

        def checked(x: torch.Tensor) -> torch.Tensor:
            if x.dim() == 0:
                raise errors.InvalidArgumentError(None, None, "logits must have >= 1 dimension, got []")
            return function(x, -1)  # type: ignore[no-any-return]

        return checked

    return declaration


def _fill_no_vector(node: Node, env: Environment, dims: tuple[int, ...]) -> bool:
    """Whether rows are so short that ATen computes them number by number, and there are many."""
    if env.device.type != "cpu" or node.dtype(0) is not dtypes.float32:
        return False
    return 0 < dims[-1] <= env.machine.profile.softmax_columns and math.prod(dims) >= _BY_PASSES


def _softmax_by_passes(x: torch.Tensor) -> torch.Tensor:
    powers = torch.sub(x, torch.amax(x, -1, True)).exp_()
    return powers.div_(torch.sum(powers, -1, True))


def _log_softmax_by_passes(x: torch.Tensor) -> torch.Tensor:
    below = torch.sub(x, torch.amax(x, -1, True))
    return below.sub_(torch.exp(below).sum(-1, True).log_())


softmax_op = _normaliser("Softmax", "softmax", torch.softmax, _softmax_by_passes)
log_softmax_op = _normaliser("LogSoftmax", "logsoftmax", torch.log_softmax, _log_softmax_by_passes)


@softmax_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    y = op.outputs[0]
    total = F.Sum(F.Mul(dy, y, name="mul"), -1, keep_dims=True)
    return (F.Mul(F.Sub(dy, total, name="sub"), y, name="mul"),)


@log_softmax_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    softmax = F.Exp(op.outputs[0])
    return (F.Sub(dy, F.Mul(F.Sum(dy, -1, keep_dims=True), softmax, name="mul"), name="sub"),)


# ---- public functions


def _along(function: OpDeclaration, logits: Any, axis: int, name: str | None) -> Tensor:
    """`function` along any axis: the axis is swapped with the last one before and after."""
    logits = convert_to_tensor(logits)
    rank = logits.shape.ndims
    if rank is None and axis != -1:
        raise TypeError(f"logits of unknown rank have no dimension {axis} to be swapped with the last one")
    is_last = axis == -1 or (rank is not None and axis == rank - 1)
    if rank is not None and not is_last and not -rank <= axis < rank:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"`dim` must be in the range [{-rank}, {rank}) where {rank} is the number of dimensions in "
            f"the input. Received: dim={axis}",
        )
    if is_last or not rank:
        return function(logits, name=name)
    place = axis % rank
    rank_of(logits)  # read by nobody, as TensorFlow's
    count = rank_of(logits)
    swapped = function(_with_last(logits, place, count))
    return _with_last(swapped, place, count, name)


def _with_last(x: Tensor, place: int, count: Tensor, name: str | None = None) -> Tensor:
    """`x` with the dimension at this place and the last one in each other's place."""
    last = F.Sub(count, 1)
    before, after = range_of(place), range_of(place + 1, last)
    return F.Transpose(x, concat([before, [last], after, [place]], 0), name=name or "transpose")


def axis_of(axis: int | None, dim: int | None) -> int:
    if dim is not None:
        if axis is not None:
            raise ValueError("Cannot specify both 'axis' and 'dim'.")
        axis = dim
    return -1 if axis is None else axis


def softmax(logits: Any, dim: int | None = None, name: str | None = None, axis: int | None = None) -> Tensor:
    """exp(logits) / sum(exp(logits)) along `dim` (default the last; later called `axis`); floating types.

    Raises InvalidArgumentError for an axis that the logits do not have, TypeError for any but the last one if
    their rank is not known.
    """
    return _along(softmax_op, logits, axis_of(axis, dim), name)


def log_softmax(
    logits: Any, dim: int | None = None, name: str | None = None, axis: int | None = None
) -> Tensor:
    """logits - log(sum(exp(logits))) along `dim` (default the last; `axis` is its later name)."""
    return _along(log_softmax_op, logits, axis_of(axis, dim), name)
