"""Convolutions of images that are first padded by their mirror image, and before that resized, in one op.

Images are [batch, height, width, channels], filters [height, width, in, out]; paddings are those of
MirrorPad.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, cast

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks import tiny_images
from flowstone.ops.networks.convolution_arrangement import arrange
from flowstone.ops.networks.convolution_geometry import Geometry
from flowstone.ops.networks.windows import SAME, VALID, pad_spatial, require_rank

_ATTRIBUTES = (
    "mode: string in ['REFLECT', 'SYMMETRIC'] ; strides: list(int) ; padding: string in ['SAME', 'VALID']"
)
_FLOATS = dtypes.FLOATS_WITH_BFLOAT16

pad_conv_op = op(
    "FusedPadConv2D",
    "input: T, paddings: int32, filter: T -> output: T",
    _ATTRIBUTES,
    T=_FLOATS,
    host=("paddings",),
    cost=work.convolution(work.first_output, work.input_at(2)),
)
resize_pad_conv_op = op(
    "FusedResizeAndPadConv2D",
    "input: T, size: int32, paddings: int32, filter: T -> output: T",
    "resize_align_corners: bool = false ; " + _ATTRIBUTES,
    T=_FLOATS,
    host=("size", "paddings"),
    cost=work.convolution(work.first_output, work.input_at(3)),
)


def _infer(node: Node) -> Shapes:
    resizes = node.declaration is resize_pad_conv_op
    image = require_rank(node.dims(0), 4)
    if resizes:
        size = node.constant_dims(1)
        if size is not None and len(size) != 2:
            raise ValueError(f"Dimension 0 in both shapes must be equal, but are {len(size)} and 2")
        image = (image[0], *(size or (None, None)), image[3])
    paddings, kernel = node.dims(1 + resizes), require_rank(node.dims(2 + resizes), 4)
    if paddings is not None and (
        len(paddings) != 2 or paddings[0] not in (4, None) or paddings[1] not in (2, None)
    ):
        raise ValueError(f"Paddings must be a matrix [4, 2], not {list(paddings)}")
    known = node.constant(1 + resizes)
    if known is None:
        image = (None,) * 4
    else:
        if (known < 0).any():
            raise ValueError(f"Paddings must be non-negative: {known.tolist()}")
        image = tuple([None if n is None else n + int(pair.sum()) for n, pair in zip(image, known)])
    if None not in (image[3], kernel[2]) and image[3] != kernel[2]:
        raise ValueError(f"Dimensions must be equal, but are {image[3]} and {kernel[2]}")
    strides, rule = node.attributes["strides"], SAME if node.attributes["padding"] == "SAME" else VALID
    counts = [rule.count(image[1 + i], kernel[i], strides[1 + i], 1, i) for i in (0, 1)]
    return (image[0], *counts, kernel[3])


def _kernel(node: Node, env: Environment) -> Kernel:
    skip = int(node.attributes["mode"] == "REFLECT")
    convolve = _convolution(node, env)
    if node.declaration is pad_conv_op:
        return lambda x, paddings, kernel: convolve(_mirrored(x, paddings, skip), kernel)
    align = node.attributes["resize_align_corners"]
    return lambda x, size, paddings, kernel: convolve(
        _mirrored(resized_bilinear(x, size, align), paddings, skip), kernel
    )


class _Plain(NamedTuple):
    """The attributes of a plain convolution."""

    attributes: dict[str, Any]


def _convolution(node: Node, env: Environment) -> Any:
    strides = tuple(node.attributes["strides"])
    if len(strides) != 4 or strides[0] != 1 or strides[3] != 1:
        raise invalid(
            "Current implementation does not yet support strides in the batch and depth dimensions."
        )
    rule = SAME if node.attributes["padding"] == "SAME" else VALID
    plain = {"data_format": "NHWC", "dilations": [1] * 4, **node.attributes}
    geometry = Geometry(cast(Node, _Plain(plain)))

    @functools.lru_cache(maxsize=8)
    def of_tiny_images(images: tuple[int, ...], kernel: tuple[int, ...]) -> Any:
        seen = arrange(geometry, images, kernel, False)
        is_tiny = seen is not None and tiny_images.suits(seen, env, node.dtype(0))
        return tiny_images.forward(seen, of_others) if seen is not None and is_tiny else of_others

    def run(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
        if kernel.dim() != 4 or kernel.shape[2] != x.shape[3]:
            raise invalid(f"input and filter must have the same depth: {x.shape[3]} vs {list(kernel.shape)}")
        return of_tiny_images(tuple(x.shape), tuple(kernel.shape))(x, kernel)  # type: ignore[no-any-return]

    def of_others(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
        counts, before, after = rule.solve(x.shape[1:3], kernel.shape[:2], strides[1:3], (1, 1))
        if 0 in counts or not x.numel():
            return x.new_zeros(x.shape[0], *counts, kernel.shape[3])
        y = x.permute(0, 3, 1, 2)
        if before != after:
            y, before = pad_spatial(y, before, after), (0, 0)
        return torch.conv2d(y, kernel.permute(3, 2, 0, 1), None, strides[1:3], before).permute(0, 2, 3, 1)

    return run


def _mirrored(x: torch.Tensor, paddings: torch.Tensor, skip: int) -> torch.Tensor:
    """Images padded by themselves; with `skip` 1 without the outermost pixels."""
    if x.dim() != 4:
        raise invalid(f"input must be 4-dimensional: {list(x.shape)}")
    if list(paddings.shape) != [4, 2]:
        raise invalid(f"paddings must be a matrix with 2 columns and 4 rows: {list(paddings.shape)}")
    pairs = paddings.tolist()
    if any(pairs[0]) or any(pairs[3]):
        raise invalid(f"paddings must be 0 of batch and channels: {pairs}")
    for axis in (1, 2):
        (before, after), n = pairs[axis], x.shape[axis]
        if min(before, after) < 0:
            raise invalid(f"paddings must be non-negative: {before} {after}")
        if max(before, after) > n - skip:
            rule = "less than" if skip else "no greater than"
            raise invalid(f"paddings must be {rule} the dimension size: {before}, {after}, {n}")
        places = torch.arange(-before, n + after, device=x.device)
        places = torch.where(places < 0, -places - 1 + skip, places)
        places = torch.where(places >= n, 2 * n - 1 - skip - places, places)
        x = x.index_select(axis, places)
    return x


def resized_bilinear(x: torch.Tensor, size: torch.Tensor, align: bool, half: bool = False) -> torch.Tensor:
    """Float images resized between their pixels: by the corners, the pixels' middles, or the first pixel."""
    if x.dim() != 4 or list(size.shape) != [2]:
        raise invalid(f"input must be 4-dimensional and size have 2 elements: {list(x.shape)}")
    rows, columns = size.tolist()
    if min(rows, columns) <= 0:
        raise invalid("output dimensions must be positive")
    if 0 in x.shape[1:]:
        raise invalid("input image must be of non-zero size")
    planes = x.permute(0, 3, 1, 2)
    if align or half:
        return torch.nn.functional.interpolate(
            planes, (rows, columns), mode="bilinear", align_corners=align
        ).permute(0, 2, 3, 1)
    # A pixel more at each end makes the distances of corners those of all pixels.
    planes = torch.nn.functional.pad(planes, [0, 1, 0, 1], "replicate")
    larger = torch.nn.functional.interpolate(
        planes, (rows + 1, columns + 1), mode="bilinear", align_corners=True
    )
    return larger[:, :, :-1, :-1].permute(0, 2, 3, 1)


for _fused in (pad_conv_op, resize_pad_conv_op):
    _fused.infer(_infer)
    _fused.kernel(CPU, GPU)(_kernel)
    _fused.no_gradient()
