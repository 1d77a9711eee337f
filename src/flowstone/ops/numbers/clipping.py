"""Values kept in bounds: each between two limits, or a whole tensor (or list of them) to a greatest norm."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.building import graph_of
from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, X2, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays.constants import ones_like
from flowstone.ops.arrays.packing import stack
from flowstone.ops.arrays.shapes import rank, size
from flowstone.ops.numbers.elementwise import ALL_NUMBERS, constant_like, same_shape, sum_to
from flowstone.ops.numbers.reductions import reduce_sum
from flowstone.ops.numbers.unsigned_integers import ordered

__all__ = ["clip_by_average_norm", "clip_by_global_norm", "clip_by_norm", "clip_by_value", "global_norm"]

clip_by_value_op = op("ClipByValue", "t: T, clip_value_min: T, clip_value_max: T -> output: T", T=ALL_NUMBERS)
clip_by_value_op.infer(same_shape)


def _numbers(low: torch.Tensor, high: torch.Tensor) -> tuple[float, float]:
    """The limits as numbers, as TensorFlow takes them: the lower one goes before a higher one that is less,
    and what is no number does not limit."""
    least, most = low.item(), high.item()
    least = -math.inf if least != least else least
    most = math.inf if most != most else most
    return least, max(least, most)


def _clip_by_numbers(t: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """As numbers, limits stay in registers; ATen broadcasts tensors."""
    return torch.clamp(t, *_numbers(low, high))


def _clip_by_numbers_in_place(t: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    return t.clamp_(*_numbers(low, high))


def _clip(t: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    if max(low.numel(), high.numel()) == 1 or not bool((low <= high).all()):
        if t.is_floating_point():
            low, high = torch.where(low == low, low, -math.inf), torch.where(high == high, high, math.inf)
        high = torch.maximum(low, high)
    return torch.clamp(t, low, high)


@clip_by_value_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    clip = ordered(node.dtype(0), _clip)
    if clip is _clip and env.device.type == "cpu" and node.dims(1) == node.dims(2) == ():
        return Call(_clip_by_numbers, X0, X1, X2).or_in_place(0, _clip_by_numbers_in_place, X0, X1, X2)
    if all(node.dims(i) == () or node.dims(i) == node.static_shape(0) is not None for i in (1, 2)):
        return Call(clip, X0, X1, X2)

    def checked(t: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
        for limit in (low, high):
            if limit.ndim and limit.shape != t.shape:
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    "clip_value_min and clip_value_max must be of the same shape as input, or a scalar. "
                    f"input shape: {list(t.shape)} limit shape: {list(limit.shape)}",
                )
        return clip(t, low, high)

    return checked


@clip_by_value_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    t, low, high = op.inputs
    zero = constant_like(0, dy)
    below, above = F.Less(t, low), F.Greater(t, high)
    dt = F.SelectV2(F.LogicalOr(below, above), zero, dy)
    return dt, sum_to(F.SelectV2(below, dy, zero), low, t), sum_to(F.SelectV2(above, dy, zero), high, t)


def _values(t: Any) -> Any:
    return t.values if isinstance(t, IndexedSlices) else t


def _like(t: Any, values: Tensor) -> Any:
    """`values` as IndexedSlices where `t` is."""
    return IndexedSlices(values, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else values


@dispatched("unary")
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """`t` (tensor or IndexedSlices) with each element between the limits, which broadcast to its shape.

    ValueError if a limit has a shape that would make the result larger.
    """
    graph = graph_of([_values(t), clip_value_min, clip_value_max])
    with graph.as_default(), graph.name_scope(name or "clip_by_value") as scope:
        values = convert_to_tensor(_values(t), name="t")
        below = F.Minimum(values, clip_value_max)
        values.shape.assert_is_compatible_with(below.shape)
        low = clip_value_min
        if not isinstance(low, Tensor):
            low = convert_to_tensor(low, values.dtype.base_dtype, "y")
        clipped = F.Maximum(below, low, name=scope)
        values.shape.assert_is_compatible_with(clipped.shape)
        return _like(t, clipped)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """`t` (tensor or IndexedSlices), scaled down where its Euclidean norm over `axes` (default all) exceeds
    `clip_norm`.
    """
    graph = graph_of([_values(t), clip_norm])
    with graph.as_default(), graph.name_scope(name or "clip_by_norm") as scope:
        values = convert_to_tensor(_values(t), name="t")
        squares = reduce_sum(F.Mul(values, values, name="mul"), axes, True)
        positive = F.Greater(squares, squares.dtype.as_numpy_dtype(0))
        # the square root has no finite gradient at 0
        safe = F.Select(positive, squares, ones_like(squares))
        norm = F.Select(positive, F.Sqrt(safe), squares)
        scaled = values * clip_norm
        values.shape.assert_is_compatible_with(scaled.shape)
        clipped = scaled / F.Maximum(norm, clip_norm)
        return _like(t, F.Identity(clipped, name=scope))


def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Tensor:
    """`t`, scaled down where its Euclidean norm over its number of elements exceeds `clip_norm`."""
    graph = graph_of([t, clip_norm])
    with graph.as_default(), graph.name_scope(name or "clip_by_average_norm") as scope:
        t = convert_to_tensor(t, name="t")
        kind = t.dtype.base_dtype
        count = F.Cast(size(t), DstT=kind)
        squares = t * t
        every = F.Range(np.int32(0), rank(t), np.int32(1), name="range")
        inverse = F.Rsqrt(F.Sum(squares, every))
        scaled = t * clip_norm
        clipped = scaled * F.Minimum(inverse * count, constant_like(1, t) / clip_norm)
        return F.Identity(clipped, name=scope)


def _check_list(t_list: Any) -> list[Any]:
    if not isinstance(t_list, Iterable) or isinstance(t_list, (str, Tensor)):
        raise TypeError("`t_list` should be a sequence of tensors")
    return list(t_list)


def global_norm(t_list: Any, name: str | None = None) -> Tensor:
    """The Euclidean norm of all elements of the tensors together; None entries count nothing.

    TypeError unless `t_list` is a sequence.
    """
    t_list = [t for t in _check_list(t_list) if t is not None]
    graph = graph_of([_values(t) for t in t_list])
    with graph.as_default(), graph.name_scope(name or "global_norm"):
        halves = [F.L2Loss(convert_to_tensor(_values(t), name="t")) for t in t_list]
        total = reduce_sum(stack(halves))
        return F.Sqrt(F.Mul(total, constant_like(2, total), name="mul"), name="global_norm")


def clip_by_global_norm(
    t_list: Any, clip_norm: Any, use_norm: Tensor | None = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """All tensors of a list (IndexedSlices, None entries) scaled down together where their `global_norm`
    exceeds `clip_norm`; returns the list and the norm (`use_norm` if given).

    Where the norm is infinite or NaN, all elements become NaN. TypeError unless `t_list` is a sequence.
    """
    t_list = _check_list(t_list)
    norm = global_norm(t_list, name) if use_norm is None else use_norm
    graph = graph_of([_values(t) for t in t_list if t is not None])
    with graph.as_default(), graph.name_scope(name or "clip_by_global_norm") as scope:
        factor = clip_norm * F.Minimum(1.0 / norm, constant_like(1, norm) / clip_norm)
        scale = F.Select(F.IsFinite(norm), factor, constant_like(np.nan, norm), name="Select")
        return [
            None if t is None else _clip_one(t, scale, f"{scope}_{i}") for i, t in enumerate(t_list)
        ], norm


def _clip_one(t: Any, scale: Tensor, name: str) -> Any:
    values = convert_to_tensor(_values(t), name="t")
    if values.dtype.base_dtype is not scale.dtype.base_dtype:
        scale = F.Cast(scale, DstT=values.dtype.base_dtype)
    scaled = F.Mul(values, scale, name="mul")
    return _like(t, F.Identity(scaled, name=name))
