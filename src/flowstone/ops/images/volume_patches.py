"""Patches of volumes: the windows that a convolution in three dimensions would see, along the channels."""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.arrays.space_moves import times
from flowstone.ops.networks.windows import padding_of, require_rank

extract_volume_patches_op = op(
    "ExtractVolumePatches",
    "input: T -> patches: T",
    "ksizes: list(int) >= 5 ; strides: list(int) >= 5 ; padding: string in ['SAME', 'VALID']",
    T=(*dtypes.FLOATS_WITH_BFLOAT16, *dtypes.INTEGERS),
)


@extract_volume_patches_op.infer
def _(node: Node) -> Shapes:
    a = node.attributes
    batch, *lengths, c = require_rank(node.dims(0), 5)
    for what in ("ksizes", "strides"):
        if len(a[what]) != 5:
            raise ValueError(f"ExtractVolumePatches requires the {what} attribute to contain 5 values")
    padding = padding_of(a, 3)
    spans = zip(lengths, a["ksizes"][1:4], a["strides"][1:4])
    counts = [None if n is None else padding.along(n, size, stride, 1)[0] for n, size, stride in spans]
    return (batch, *counts, times(c, a["ksizes"][1] * a["ksizes"][2] * a["ksizes"][3]))


@extract_volume_patches_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    sizes, strides = node.attributes["ksizes"][1:4], node.attributes["strides"][1:4]
    padding = padding_of(node.attributes, 3)

    def extract(x: torch.Tensor) -> torch.Tensor:
        counts, before, after = padding.solve(x.shape[1:4], sizes, strides, (1, 1, 1))
        depth = x.shape[4] * sizes[0] * sizes[1] * sizes[2]
        shape = [x.shape[0], *counts, depth]
        if 0 in shape:
            return x.new_empty(shape)
        amounts = [part for pair in zip(reversed(before), reversed(after)) for part in pair]
        x = torch.constant_pad_nd(x, [0, 0, *amounts])
        for axis, (size, stride, count) in enumerate(zip(sizes, strides, counts), 1):
            x = x.unfold(axis, size, stride).narrow(axis, 0, count)
        return x.permute(0, 1, 2, 3, 5, 6, 7, 4).reshape(shape)

    return extract


@extract_volume_patches_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    """Sums by place: patches of a volume of place numbers (0 in the padding) say whence each element came."""
    sizes = shape(op.inputs[0])
    n, d, h, w, c = (sizes[i] for i in range(5))
    places = F.Mul(F.Mul(d, h), w)
    numbers = F.Reshape(F.Range(1, F.AddV2(places, 1), 1), F.Pack([1, d, h, w, 1]))
    attributes = {key: op.attributes[key] for key in ("ksizes", "strides", "padding")}
    index = F.Reshape(F.ExtractVolumePatches(numbers, **attributes), [-1])
    columns = F.Transpose(F.Reshape(dy, F.Pack([n, F.Size(index), c])), [1, 0, 2])
    summed = F.UnsortedSegmentSum(columns, index, F.AddV2(places, 1))
    whole = F.Transpose(F.Slice(summed, [1, 0, 0], [-1, -1, -1]), [1, 0, 2])
    return (F.Reshape(whole, sizes),)


def extract_volume_patches(
    input: Any, ksizes: Any, strides: Any, padding: Any, name: str | None = None
) -> Tensor:
    """The patches of volumes [n, d, h, w, c] of any real type as [n, planes, rows, columns, kd·kh·kw·c].

    `ksizes`, `strides`: [1, depth, height, width, 1]; `padding`: SAME or VALID.
    """
    return extract_volume_patches_op(input, ksizes=ksizes, strides=strides, padding=padding, name=name)
