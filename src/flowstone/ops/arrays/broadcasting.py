"""Broadcasting: tensors repeated along dimensions of size 1, and the arithmetic of shapes behind it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel
from flowstone.framework.declarations.operation import Equal, F, Gradients, Known, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import TensorShape, as_shape, broadcast, format_dims
from flowstone.ops.arrays.arrays import as_known, elements, invalid, is_text, sizes_of
from flowstone.ops.arrays.shapes import shape

__all__ = ["broadcast_dynamic_shape", "broadcast_static_shape", "broadcast_to"]

_INDEX = "[int32, int64]"

broadcast_to_op = op(
    "BroadcastTo",
    "input: T, shape: Tidx -> output: T",
    f"Tidx: type in {_INDEX} = int32",
    T=None,
    aliases=[0],
    snapshot=True,
    overlapping=True,
    host=["shape"],
    by_element=True,
)


@broadcast_to_op.infer
def _(node: Node) -> Shapes:
    dims, wanted = node.dims(0), sizes_of(node, 1)
    if wanted is None or dims is None:
        return wanted
    if len(dims) > len(wanted):
        raise ValueError(f"Shape must be at least rank {len(dims)} but is rank {len(wanted)}")
    result = list(wanted)
    for i, n in enumerate(dims, len(wanted) - len(dims)):
        if result[i] is None:
            result[i] = n if n is not None and n > 1 else None
        elif n not in (None, 1, result[i]):
            raise ValueError(
                f"Dimensions must be equal, but are {n} and {result[i]}: shapes {format_dims(dims)} "
                f"and {format_dims(wanted)}"
            )
    return tuple(result)


@broadcast_to_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    if is_text(node):
        return lambda x, shape: np.broadcast_to(x, _wanted(shape))
    wanted = node.constant(1)
    if wanted is not None and (wanted >= 0).all():
        return Call(torch.broadcast_to, X0, tuple(wanted.tolist()))
    return lambda x, shape: torch.broadcast_to(x, _wanted(shape))


def _wanted(shape: torch.Tensor) -> list[int]:
    sizes: list[int] = shape.tolist()
    if sizes and min(sizes) < 0:  # ATen's -1 keeps a size
        raise invalid(f"Dimension {min(sizes)} must be >= 0")
    return sizes


@broadcast_to_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    sizes = shape(op.inputs[0], out_type=op.dtype(1))
    _, axes = F.BroadcastGradientArgs(op.inputs[1], sizes)
    return F.Reshape(F.Sum(dy, axes, keep_dims=True), sizes), None


@broadcast_to_op.fold
def _(node: Node) -> Equal:
    dims, wanted = node.static_shape(0), node.constant(1)
    return (
        node.inputs[0] if dims is not None and wanted is not None and dims == tuple(wanted.tolist()) else None
    )


broadcast_args_op = op(
    "BroadcastArgs", "s0: T, s1: T -> r0: T", f"T: type in {_INDEX} = int32", host=["s0", "s1", "r0"]
)
broadcast_args_op.no_gradient()


@broadcast_args_op.infer
def _(node: Node) -> Shapes:
    x, y = node.static_shape(0), node.static_shape(1)
    return (None,) if x is None or y is None else (max(x[0], y[0]),)


@broadcast_args_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.dtype(0).torch
    return lambda x, y: torch.tensor(_broadcast(x, y), dtype=dtype)


def _broadcast(x: Any, y: Any) -> Any:
    try:
        return broadcast(tuple(x.tolist()), tuple(y.tolist()))
    except ValueError:
        raise invalid(f"Incompatible shapes: {x.tolist()} vs. {y.tolist()}") from None


@broadcast_args_op.value(0, 1)
def _(node: Node) -> Known | list[Known]:
    x, y = (elements(x._static_value) for x in node.inputs)
    if x is None or y is None:
        return None
    try:
        return as_known(broadcast(x, y) or (), node.dtype(0).as_numpy_dtype)
    except ValueError:
        return None


broadcast_gradient_args_op = op(
    "BroadcastGradientArgs",
    "s0: T, s1: T -> r0: T, r1: T",
    f"T: type in {_INDEX} = int32",
    host=["s0", "s1", "r0", "r1"],
)
broadcast_gradient_args_op.infer(lambda node: [(None,), (None,)])
broadcast_gradient_args_op.not_differentiable()


@broadcast_gradient_args_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.dtype(0).torch

    def axes(x: Any, y: Any) -> Any:
        sizes, others = x.tolist(), y.tolist()
        if sizes == others:
            return [torch.empty(0, dtype=dtype), torch.empty(0, dtype=dtype)]
        return [torch.tensor(found, dtype=dtype) for found in _reduced(sizes, others, _broadcast(x, y))]

    return axes


@broadcast_gradient_args_op.value(0, 1)
def _(node: Node) -> Known | list[Known]:
    x, y = (elements(x._static_value) for x in node.inputs)
    if x is None or y is None or None in x or None in y:
        return [None, None]
    try:
        found = _reduced(x, y, broadcast(x, y))
    except ValueError:
        return [None, None]
    return [np.array(axes, node.dtype(0).as_numpy_dtype) for axes in found]


def _reduced(x: Any, y: Any, whole: Any) -> list[list[int]]:
    """For both shapes: the axes of the result over which a gradient is summed."""
    rank = len(whole)
    if list(x) == list(y):
        return [[], []]
    padded = [[1] * (rank - len(sizes)) + list(sizes) for sizes in (x, y)]
    return [[axis for axis in range(rank) if sizes[axis] == 1] for sizes in padded]


# ---- public functions


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """`input` repeated along dimensions of size 1, and new ones in front, to `shape`."""
    return broadcast_to_op(input, shape, name=name)


def broadcast_static_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """The TensorShape that tensors of two static shapes broadcast to. ValueError if they do not."""
    try:
        return TensorShape.from_dims(broadcast(as_shape(shape_x).dims_tuple, as_shape(shape_y).dims_tuple))
    except ValueError:
        raise ValueError(
            "Incompatible shapes for broadcasting. Two shapes are compatible if for each dimension "
            "pair they are "
            f"either equal or one of them is 1. Received: {shape_x} and {shape_y}."
        ) from None


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape (an integer vector) that tensors of two shapes, given as vectors, broadcast to."""
    return broadcast_args_op(shape_x, shape_y)
