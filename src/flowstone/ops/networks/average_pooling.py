"""Average pooling of images and volumes, and its gradient:

padding counts neither in the sum nor in the number.

Windows and layouts are those of `pooling`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.images import Images
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.networks.pooling import LAYOUT, LAYOUT_3D, PADDINGS, WINDOW, WINDOW_3D, shared_attributes
from flowstone.ops.networks.pooling_windows import (
    Window,
    attribute_window,
    infer_pooled,
    pooled_by_code,
    pooling_kernel,
    spatial_lengths,
)
from flowstone.ops.networks.windows import crop_spatial, pad_spatial, require_rank

FLOATS = (*dtypes.FLOATS, dtypes.bfloat16)
_NARROW = frozenset({dtypes.float16, dtypes.bfloat16})
_AVERAGE = {2: torch._C._nn.avg_pool2d, 3: torch._C._nn.avg_pool3d}
_AVERAGE_BACKWARD = {
    2: torch.ops.aten.avg_pool2d_backward.default,
    3: torch.ops.aten.avg_pool3d_backward.default,
}


def _counts_of_inside(
    window: Window,
    lengths: tuple[int, ...],
    counts: tuple[int, ...],
    before: tuple[int, ...],
    like: torch.Tensor,
) -> torch.Tensor:
    """How many elements of each window are not padding: [1, 1, counts...]."""
    result = torch.ones((), dtype=like.dtype, device=like.device)
    for axis, length in enumerate(lengths):
        starts = torch.arange(counts[axis], device=like.device) * window.strides[axis] - before[axis]
        inside = (starts + window.sizes[axis]).clamp(max=length) - starts.clamp(min=0)
        result = result.unsqueeze(-1) * inside.to(like.dtype)
    return result


def _average_kernel(window: Window, node: Node) -> Callable[..., Any]:
    pool, sizes, strides = _AVERAGE[window.n], window.sizes, window.strides
    first, restored, arrange = window.first, window.restored, window.arrange
    widens = node.dtype(0) in _NARROW

    def run(x: torch.Tensor) -> torch.Tensor:
        found = pooled_by_code(window, "mean", x)
        if found is not None:
            return found
        y = first(x)
        lengths = y.shape[2:]
        counts, padding, ceil, explicit = arrange(lengths)
        if 0 in counts or 0 in y.shape:
            return restored(y.new_empty((*y.shape[:2], *counts)))
        if widens:
            y = y.float()
        if explicit is None:
            y = pool(y, sizes, strides, padding, ceil, False)
        else:
            before, after = explicit
            inside = _counts_of_inside(window, lengths, counts, before, y)
            y = pool(pad_spatial(y, before, after), sizes, strides, padding, False, True, 1) / inside
        return restored(y.to(x.dtype) if widens else y)

    return run


def _average_grad(window: Window, shape: tuple[int, ...], dy: torch.Tensor) -> torch.Tensor:
    """dx of this shape (in the node's layout) from dy."""
    if 0 in shape or not dy.numel():
        return dy.new_zeros(shape)
    backward, sizes, strides = _AVERAGE_BACKWARD[window.n], list(window.sizes), list(window.strides)
    if _is_side_by_side(window, shape, dy):
        return _repeated(window, shape, dy)
    given, dtype, dy = dy.shape, dy.dtype, window.first(dy)
    if dtype in (torch.float16, torch.bfloat16):
        dy = dy.float()
    lengths = spatial_lengths(window, shape)
    counts, padding, ceil, explicit = window.arrange(lengths)
    x = window.first(dy.new_empty(shape))
    if dy.shape[:2] != x.shape[:2]:
        raise invalid(f"A gradient of shape {list(given)} is of no images of shape {list(shape)}")
    if explicit is None:
        dx = backward(dy, x, sizes, strides, list(padding), ceil, False, None)
    else:
        before, after = explicit
        dy = dy / _counts_of_inside(window, lengths, counts, before, dy)
        padded = x.new_empty((*x.shape[:2], *[b + n + a for b, n, a in zip(before, lengths, after)]))
        dx = backward(dy, padded, sizes, strides, list(padding), False, True, 1)
        dx = crop_spatial(dx, before, lengths)
    return window.restored(dx.to(dtype))


_PIECE = 1 << 20  # bytes of the result that are computed at once: they stay in caches


def _is_side_by_side(window: Window, shape: tuple[int, ...], dy: torch.Tensor) -> bool:
    """Whether each element belongs to one window, to whose elements what it gives may be copied."""
    if not window.last or window.sizes != window.strides or not dy.is_cpu:
        return False
    if dy.dtype not in (torch.float32, torch.float64) or dy.dim() != len(shape):
        return False
    exact = [count * size for count, size in zip(dy.shape[1:-1], window.sizes)]
    return shape == (dy.shape[0], *exact, dy.shape[-1])


def _repeated(window: Window, shape: tuple[int, ...], dy: torch.Tensor) -> torch.Tensor:
    """Each element of dy over the size of a window, at all its places, some images at once: the last axis
    is repeated in rows, which the others repeat."""
    *outer, width, channels = dy.shape[1:]
    *sizes, last = window.sizes
    result = dy.new_empty(shape)
    row = width * last * channels
    apart = [n for pair in zip(outer, sizes) for n in pair]  # the places of a window behind its own axis
    once = [n for count in outer for n in (count, 1)]
    images = max(1, _PIECE // max(1, result[0].nbytes))
    area = math.prod(window.sizes)
    for into, part in zip(result.split(images), dy.split(images)):
        shares = part.div(area).reshape(-1, channels)
        rows = torch.cat([shares] * last, 1)
        into.view(-1, *apart, row).copy_(rows.view(-1, *once, row))
    return result


def _average_family(
    name: str, argument: str, rank: int, window: str, layout: str
) -> tuple[OpDeclaration, OpDeclaration]:
    forward = op(
        name, f"{argument}: T -> output: T", window + PADDINGS + layout,
        T=FLOATS, images=Images(), cost=work.pooling, starts_team=True,
    )  # fmt: skip
    grad = op(
        name + "Grad", "orig_input_shape: int32, grad: T -> output: T", window + PADDINGS + layout,
        T=FLOATS, host=["orig_input_shape"], images=Images((1,), shape=0), cost=4,
        starts_team=True,
    )  # fmt: skip
    forward.infer(infer_pooled(attribute_window, rank))
    forward.kernel(CPU, GPU)(pooling_kernel(attribute_window, _average_kernel))
    grad.infer(lambda node: require_rank(node.constant_dims(0), rank))

    @grad.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        found = attribute_window(node)
        constant = node.constant(0)
        if constant is not None:
            fixed = tuple(constant.tolist())
            return lambda shape, dy: _average_grad(found, fixed, dy)
        return lambda shape, dy: _average_grad(found, tuple(shape.tolist()), dy)

    @forward.gradient
    def _(op: Operation, dy: Tensor) -> Gradients:
        return (grad(shape_of(op.inputs[0]), dy, **shared_attributes(op)),)

    @grad.gradient
    def _(op: Operation, ddx: Tensor) -> Gradients:
        return F.StopGradient(op.inputs[0]), forward(ddx, **shared_attributes(op))

    return forward, grad


avg_pool_op, avg_pool_grad = _average_family("AvgPool", "value", 4, WINDOW, LAYOUT)
avg_pool3d_op, avg_pool3d_grad = _average_family("AvgPool3D", "input", 5, WINDOW_3D, LAYOUT_3D)
