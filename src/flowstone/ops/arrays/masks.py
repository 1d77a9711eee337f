"""Masks: one-hot rows, elements chosen by a boolean tensor, rows of given lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Shapes, op
from flowstone.framework.machine import machine
from flowstone.framework.machine.machine_code import hot_places
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid, is_text, product, replaced
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.gathering import gather
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import reshape, shape, squeeze

__all__ = ["boolean_mask", "one_hot", "sequence_mask"]

one_hot_op = op(
    "OneHot",
    "indices: TI, depth: int32[?], on_value: T[?], off_value: T[?] -> output: T",
    "axis: int = -1 ; TI: type in [uint8, int8, int32, int64] = int64",
    T=None,
    host=["depth"],
)
one_hot_op.not_differentiable()


@one_hot_op.infer
def _(node: Node) -> Shapes:
    dims, depth, axis = node.dims(0), node.constant(1), node.attributes["axis"]
    if axis < -1:
        raise ValueError("axis must be >= -1")
    if depth is not None and depth.ndim:
        raise ValueError(f"Shape must be rank 0 but is rank {depth.ndim}")
    count = None if depth is None else depth.item()
    if count is not None and count < 0:
        raise ValueError(f"Dimension size, given by scalar input 1, must be non-negative but is {count}")
    if dims is None:
        return None
    if axis > len(dims):
        return None  # the step will say so
    at = len(dims) if axis == -1 else axis
    return (*dims[:at], count, *dims[at:])


@one_hot_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    is_host = env.device.type == "cpu" and not is_text(node, 2)
    compared = _compared(node, is_host)
    picked, depth = _picked(node, compared) if is_host else None, node.constant(1)
    if picked is None or depth is None:
        return compared
    many = machine.current().profile.native_hot // int(depth)
    types = node.dtype(0).torch, node.dtype(2).torch

    def one_hot(indices: Any, depth: Any, on: Any, off: Any) -> Any:
        is_large = indices.numel() >= many
        return (compared if is_large and hot_places(*types) else picked)(indices, depth, on, off)

    return one_hot


def _compared(node: Node, is_host: bool) -> Callable[..., Any]:
    """Every place is compared with its index; of many on a host, machine code fills all and those of the
    indices."""
    axis, text, types = node.attributes["axis"], is_text(node, 2), (node.dtype(0).torch, node.dtype(2).torch)

    def one_hot(indices: Any, depth: Any, on: Any, off: Any) -> Any:
        count = int(depth)
        if count < 0:
            raise invalid(f"depth must be non-negative, got: {count}")
        if axis > indices.ndim:
            raise invalid(f"Expected axis to be -1 or between [0, {indices.ndim + 1}]. But received: {axis}")
        at = indices.ndim if axis == -1 else axis
        if is_host and count * indices.numel() >= _FEW and on.ndim == off.ndim == 0:
            native = hot_places(*types)
            if native is not None:
                return native(indices, count, at, on, off)
        places = torch.arange(count, device=indices.device).reshape([count] + [1] * (indices.ndim - at))
        hot = indices.unsqueeze(at) == places
        return np.where(hot.numpy(), on, off) if text else torch.where(hot, on, off)

    return one_hot


_FEW = 1 << 6  # elements up to which ATen's kernels are as fast
_LARGEST_TABLE = 1 << 16  # elements
_PICKED = frozenset({torch.float32, torch.float64, torch.int32, torch.int64, torch.bool})


def _picked(node: Node, compared: Callable[..., Any]) -> Callable[..., Any] | None:
    """Rows of a table, or numbers put in their places: a tenth of the time of `_compared`, which is right for
    indices outside, too. None where the numbers are not constant or do not lie in rows.
    """
    dims = node.dims(0)
    depth, on, off = (None if x is None else x.item() for x in map(node.constant, (1, 2, 3)))
    if dims is None or node.attributes["axis"] not in (-1, len(dims)) or not depth or depth < 0:
        return None
    dtype = node.dtype(2).torch
    if on is None or off is None or dtype not in _PICKED:
        return None
    table = None
    if depth * depth <= _LARGEST_TABLE:
        table = torch.full((depth, depth), off, dtype=dtype).fill_diagonal_(on)

    def one_hot(indices: Any, *rest: Any) -> Any:
        flat = indices.reshape(-1).long()
        try:
            if table is None:
                rows = torch.full((len(flat), depth), off, dtype=dtype).scatter_(1, flat.unsqueeze(1), on)
            else:
                rows = table.index_select(0, flat)
        except (IndexError, RuntimeError):  # an index outside
            return compared(indices, *rest)
        return rows if indices.ndim == 1 else rows.view(*indices.shape, depth)

    return one_hot


# ---- public functions


@dispatched("one_hot")
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """`on_value` (1) at `indices` along a new dimension `axis` (-1: last) of size `depth`, else `off_value`.

    The type is `dtype`, else that of the values, else float32. TypeError if they disagree.
    """
    with get_default_graph().name_scope(name or "one_hot") as scope:
        wanted = None if dtype is None else dtypes.as_dtype(dtype)
        given = []
        for what, value in (("on_value", on_value), ("off_value", off_value)):
            tensor = None if value is None else convert_to_tensor(value, preferred_dtype=wanted)
            if tensor is not None and wanted is not None and tensor.dtype.base_dtype is not wanted:
                raise TypeError(
                    f"dtype {tensor.dtype.base_dtype!r} of {what} does not match dtype parameter {wanted!r}"
                )
            given.append(tensor)
        on, off = given
        if on is not None and off is not None and on.dtype.base_dtype is not off.dtype.base_dtype:
            raise TypeError(f"dtype {on.dtype!r} of on_value does not match dtype {off.dtype!r} of off_value")
        wanted = wanted or next((t.dtype.base_dtype for t in given if t is not None), dtypes.float32)
        on = constant(1, wanted, name="on_value") if on is None else None
        off = constant(0, wanted, name="off_value") if off is None else None
        indices = convert_to_tensor(indices, name="indices")
        depth = convert_to_tensor(depth, dtypes.int32, "depth")
        on = convert_to_tensor(on_value, wanted, "on_value") if on is None else on
        off = convert_to_tensor(off_value, wanted, "off_value") if off is None else off
        return one_hot_op(indices, depth, on, off, axis=-1 if axis is None else axis, name=scope)


def boolean_mask(tensor: Any, mask: Any, name: str = "boolean_mask", axis: int | None = None) -> Tensor:
    """The elements (slices) of `tensor` where `mask` is true: [K, ...].

    `mask`: bool, of known rank above 0; its shape equals the dimensions of `tensor` from `axis` (0) on.
    Raises ValueError for a scalar mask, a mask of unknown rank, or shapes that do not fit.
    """
    with get_default_graph().name_scope(name or "boolean_mask"):
        tensor = convert_to_tensor(tensor, name="tensor")
        mask = convert_to_tensor(mask, name="mask")
        depth, at = mask.shape.ndims, axis or 0
        if depth == 0:
            raise ValueError("mask cannot be scalar.")
        if depth is None:
            raise ValueError("Number of mask dimensions must be specified, even if some dimensions are None.")
        if at < 0 and tensor.shape.ndims is not None:
            at += tensor.shape.ndims
        tensor.shape[at : at + depth].assert_is_compatible_with(mask.shape)
        count = F.Prod(shape(tensor)[at : at + depth], [0])
        flat = reshape(tensor, concat([shape(tensor)[:at], [count], shape(tensor)[at + depth :]], 0))
        if tensor.shape.ndims is not None and at + depth <= tensor.shape.ndims:
            part = tensor.dims[at : at + depth]
            flat.set_shape(
                replaced(
                    tensor.dims[:at] + (None,) + tensor.dims[at + depth :],
                    at,
                    None if None in part else product(part),
                )
            )
        places = squeeze(F.Where(reshape(mask, [-1])), axis=[1])
        return gather(flat, places, axis=at)


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool, name: str | None = None
) -> Tensor:
    """For each length a row of `maxlen` (None: the largest length) elements, the first `length` true (1).

    Shape lengths.shape + [maxlen]. ValueError if `maxlen` is no scalar.
    """
    with get_default_graph().name_scope(name or "SequenceMask"):
        lengths = convert_to_tensor(lengths)
        kind = lengths.dtype.base_dtype
        if maxlen is None:
            every = (
                constant(np.arange(lengths.shape.ndims or 0, dtype=np.int32))
                if lengths.shape.ndims is not None
                else F.Range(0, F.Rank(lengths), 1)
            )
            longest = F.Max(lengths, every)
            maxlen = F.Maximum(constant(0, kind), longest)
        else:
            maxlen = convert_to_tensor(maxlen)
        if maxlen.shape.ndims not in (None, 0):
            raise ValueError("maxlen must be scalar for sequence_mask")
        row = F.Range(constant(0, maxlen.dtype.base_dtype), maxlen, constant(1, maxlen.dtype.base_dtype))
        matrix = F.Cast(F.ExpandDims(lengths, -1), DstT=maxlen.dtype.base_dtype)
        result = F.Less(row, matrix)
        wanted = dtypes.as_dtype(dtype)
        return result if wanted is dtypes.bool else F.Cast(result, DstT=wanted)
