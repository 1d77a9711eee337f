"""Patches of images: the windows that a convolution would see, laid along the channels."""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.arrays.space_moves import times
from flowstone.ops.numbers.elementwise import FLOATS_AND_COMPLEX

__all__ = ["extract_image_patches"]

extract_image_patches_op = op(
    "ExtractImagePatches",
    "images: T -> patches: T",
    "ksizes: list(int) >= 4 ; strides: list(int) >= 4 ; rates: list(int) >= 4 ; padding: string in "
    "['SAME', 'VALID']",
    T=(*FLOATS_AND_COMPLEX, *dtypes.INTEGERS, dtypes.bool),
)


def _windows(n: int, size: int, stride: int, padding: str) -> tuple[int, int, int]:
    """(windows, padding before, padding after) of a dimension."""
    if padding == "VALID":
        return max(0, -(-(n - size + 1) // stride)), 0, 0
    count = -(-n // stride)
    missing = max(0, (count - 1) * stride + size - n)
    return count, missing // 2, missing - missing // 2


def _window_sizes(node: Node) -> list[int]:
    return [(k - 1) * r + 1 for k, r in zip(node.attributes["ksizes"][1:3], node.attributes["rates"][1:3])]


@extract_image_patches_op.infer
def _(node: Node) -> Shapes:
    dims, a = node.dims(0), node.attributes
    if dims is not None and len(dims) != 4:
        raise ValueError(f"Shape must be rank 4 but is rank {len(dims)}")
    n, h, w, c = (None,) * 4 if dims is None else dims
    spans = zip((h, w), _window_sizes(node), a["strides"][1:3])
    counts = [None if m is None else _windows(m, size, stride, a["padding"])[0] for m, size, stride in spans]
    return (n, *counts, times(c, a["ksizes"][1] * a["ksizes"][2]))


@extract_image_patches_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    strides, rates, padding = (
        node.attributes["strides"][1:3],
        node.attributes["rates"][1:3],
        node.attributes["padding"],
    )
    sizes = _window_sizes(node)

    def extract(x: Any) -> Any:
        if x.dim() != 4:
            raise invalid(f"input must be 4-dimensional, got {list(x.shape)}")
        (rows, top, bottom), (columns, left, right) = [
            _windows(n, size, stride, padding) for n, size, stride in zip(x.shape[1:3], sizes, strides)
        ]
        for n, size, stride in zip(x.shape[1:3], sizes, strides):
            if padding == "VALID" and n - size + stride < 0:
                raise invalid(f"Computed output size would be negative: image size {n}, patch size {size}")
        depth = x.shape[3] * node.attributes["ksizes"][1] * node.attributes["ksizes"][2]
        if not rows * columns * depth * x.shape[0]:
            return x.new_empty((x.shape[0], rows, columns, depth))
        x = torch.constant_pad_nd(x, [0, 0, left, right, top, bottom])
        cut = x.unfold(1, sizes[0], strides[0]).unfold(2, sizes[1], strides[1])[..., :: rates[0], :: rates[1]]
        return cut[:, :rows, :columns].permute(0, 1, 2, 4, 5, 3).reshape(x.shape[0], rows, columns, -1)

    return extract


@extract_image_patches_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    """Sums by place: patches of an image of place numbers (0 in the padding) say whence each element came."""
    sizes = shape(op.inputs[0])
    n, h, w, c = (sizes[i] for i in range(4))
    places = F.Mul(h, w)
    numbers = F.Reshape(F.Range(1, F.AddV2(places, 1), 1), F.Pack([1, h, w, 1]))
    attributes = {key: op.attributes[key] for key in ("ksizes", "strides", "rates", "padding")}
    index = F.Reshape(F.ExtractImagePatches(numbers, **attributes), [-1])
    columns = F.Transpose(F.Reshape(dy, F.Pack([n, F.Size(index), c])), [1, 0, 2])
    summed = F.UnsortedSegmentSum(columns, index, F.AddV2(places, 1))
    whole = F.Transpose(F.Slice(summed, [1, 0, 0], [-1, -1, -1]), [1, 0, 2])
    return (F.Reshape(whole, sizes),)


def extract_image_patches(
    images: Any,
    ksizes: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: str | None = None,
    name: str | None = None,
    sizes: Any = None,
) -> Tensor:
    """The patches of `images` [n, h, w, c] as [n, rows, columns, kh·kw·c]; `sizes` is `ksizes`.

    `ksizes`, `strides`, `rates`: [1, height, width, 1]; `padding`: SAME or VALID.
    """
    return extract_image_patches_op(
        images,
        ksizes=ksizes if sizes is None else sizes,
        strides=strides,
        rates=rates,
        padding=padding,
        name=name,
    )
