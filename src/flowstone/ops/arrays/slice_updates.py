"""`TensorStridedSliceUpdate`: a copy of a tensor, in which a strided slice holds other values."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import format_dims
from flowstone.ops.arrays.arrays import invalid, whole_copy
from flowstone.ops.arrays.slice_geometry import Masks, dense_entries, forward
from flowstone.ops.arrays.slicing import masks_of
from flowstone.ops.numbers.elementwise import sum_to

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")

slice_update_op = op(
    "TensorStridedSliceUpdate",
    "input: T, begin: Index, end: Index, strides: Index, value: T -> output: T",
    f"Index: type in [int32, int64] ; {' ; '.join(f'{name}: int = 0' for name in _MASKS)}",
    T=None,
    host=["begin", "end", "strides"],
    by_element=True,
)
slice_update_op.infer(lambda node: node.dims(0))


@slice_update_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    masks, place = masks_of(node), _placed if node.dtype(0).torch is not None else _placed_texts

    def update(x: Any, begin: Any, end: Any, strides: Any, value: Any) -> Any:
        entries = _checked_entries(x.shape, begin.tolist(), end.tolist(), strides.tolist(), masks)
        try:
            return place(x, entries, value)
        except (RuntimeError, ValueError):
            shapes = f"{format_dims(tuple(value.shape))} to a slice of {format_dims(tuple(x.shape))}"
            raise invalid(f"Cannot broadcast input shape {shapes}") from None

    return update


def _checked_entries(sizes: Any, begin: Any, end: Any, strides: Any, masks: Masks) -> list[Any]:
    """The slice's entry for each dimension. InvalidArgumentError for a bad slice or an index outside."""
    try:
        entries = dense_entries(len(sizes), begin, end, strides, masks)
    except ValueError as error:
        raise invalid(str(error)) from None
    for axis, entry in enumerate([entry for entry in entries if entry is not None]):
        if type(entry) is int and not -sizes[axis] <= entry < sizes[axis]:
            raise invalid(f"slice index {entry} of dimension {axis} out of bounds.")
    return entries


def _placed(x: torch.Tensor, entries: list[Any], value: torch.Tensor) -> torch.Tensor:
    whole = whole_copy(x)
    index, flips = forward(tuple(x.shape), entries)
    part = whole[index]
    value = value.expand(part.shape)
    part.copy_(torch.flip(value, flips) if flips else value)
    return whole


def _placed_texts(x: Any, entries: list[Any], value: Any) -> Any:
    whole = x.copy()
    index = (*entries, ...)
    part = whole[index]
    part[...] = np.broadcast_to(value, part.shape)
    return whole


@slice_update_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    _, begin, end, strides, value = op.inputs
    masks = {name: op.attributes[name] for name in _MASKS}
    dx = F.TensorStridedSliceUpdate(dy, begin, end, strides, F.ZerosLike(value), **masks)
    part = F.StridedSlice(dy, begin, end, strides, **masks)
    return dx, None, None, None, sum_to(part, value, part)
