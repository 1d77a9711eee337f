"""Images resized: to the nearest pixel, or linearly between pixels in both directions; and the gradients.

Where a resulting pixel lies in the image, along each dimension, is (position `i` of `count`, of `length`):

==================  ==================================  =========================================
`align_corners`     i * (length - 1) / (count - 1)      the corners' centres stay where they are
`half_pixel_…`      (i + 0.5) * length / count - 0.5    pixels are squares
neither             i * length / count                  TensorFlow 1's way
==================  ==================================  =========================================

ATen knows the first two. The third is `weighted_sampling`'s; its gradient is that of the first, of an image
that repeats its last row and column, without the last row and column of the result. The public names belong
to ``tf.image``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine import machine
from flowstone.framework.machine.image_code import resampler
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims
from flowstone.ops.images.weighted_sampling import Taps, reversed_taps, sample
from flowstone.ops.networks.windows import channels_first, channels_last, require_rank

__all__ = ["resize_bilinear", "resize_nearest_neighbor"]

MODES = "align_corners: bool = false ; half_pixel_centers: bool = false"
NUMBERS = "T: type in [int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16]"
_TO_FIRST, _TO_LAST = channels_first(4), channels_last(4)
_Kernel: TypeAlias = "Callable[..., torch.Tensor]"
_nearest: _Kernel = torch.ops.aten.upsample_nearest2d.default
_nearest_backward: _Kernel = torch.ops.aten.upsample_nearest2d_backward.default
_bilinear: _Kernel = torch.ops.aten.upsample_bilinear2d.default
_bilinear_backward: _Kernel = torch.ops.aten.upsample_bilinear2d_backward.default


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def infer_resized(node: Node) -> Dims:
    """The dims of images (input 0) of a size that is input 1."""
    batch, _, _, channels = require_rank(node.dims(0), 4)
    size = node.constant_dims(1)
    if size is not None and len(size) != 2:
        raise ValueError(f"Dimension 0 in both shapes must be equal, but are {len(size)} and 2")
    return (batch, *(size or (None, None)), channels)


def mode_of(node: Node) -> tuple[bool, bool]:
    """Whether corners are aligned, and whether pixels are squares; InvalidArgumentError for both."""
    align, half = node.attributes["align_corners"], node.attributes.get("half_pixel_centers", False)
    if align and half:
        raise _invalid("If half_pixel_centers is True, align_corners must be False.")
    return align, half


def checked_size(x: torch.Tensor, size: torch.Tensor) -> list[int]:
    """The size that is asked for, of an image that can be resized."""
    if x.dim() != 4:
        raise _invalid(f"input must be 4-dimensional {list(x.shape)}")
    if size.dim() != 1 or size.numel() != 2:
        raise _invalid(f"shape_t must be 1-dimensional with 2 elements: {list(size.shape)}")
    rows, columns = size.tolist()
    if rows <= 0 or columns <= 0:
        raise _invalid("output dimensions must be positive")
    if 0 in x.shape[1:]:
        raise _invalid("input image must be of non-zero size")
    return [rows, columns]


# ---- the nearest pixel

nearest_op = op(
    "ResizeNearestNeighbor",
    "images: T, size: int32 -> resized_images: T",
    f"{NUMBERS} ; {MODES}",
    host=["size"],
)
nearest_grad = op(
    "ResizeNearestNeighborGrad",
    "grads: T, size: int32 -> output: T",
    f"T: type in [uint8, int8, int32, half, float, double, bfloat16] ; {MODES}",
    host=["size"],
)
nearest_op.infer(infer_resized)
nearest_grad.infer(infer_resized)
nearest_grad.no_gradient()


def _places(length: int, count: int, align: bool, half: bool, device: torch.device) -> torch.Tensor:
    """Which of `length` pixels each of `count` is."""
    scale = (length - 1) / (count - 1) if align and count > 1 else length / count
    places = torch.arange(count, dtype=torch.float32, device=device)
    places = (places + 0.5 if half else places).mul_(scale)
    places = torch.floor(places + 0.5) if align else torch.floor(places)
    return places.long().clamp_(0, length - 1)


def _is_atens(dtype: DType, align: bool, half: bool) -> bool:
    return not align and not half and dtype in (dtypes.float32, dtypes.float64)


@nearest_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    align, half = mode_of(node)
    direct = _is_atens(node.dtype(0), align, half)

    def run(x: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
        counts = checked_size(x, size)
        if direct:
            return _nearest(x.permute(_TO_FIRST), counts).permute(_TO_LAST)
        for axis, count in ((2, counts[1]), (1, counts[0])):
            x = x.index_select(axis, _places(x.shape[axis], count, align, half, x.device))
        return x

    return run


@nearest_grad.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    align, half = mode_of(node)
    direct = _is_atens(node.dtype(0), align, half)

    def run(dy: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
        lengths = checked_size(dy, size)
        if direct:
            shape = [dy.shape[0], dy.shape[3], *lengths]
            return _nearest_backward(dy.permute(_TO_FIRST), dy.shape[1:3], shape).permute(_TO_LAST)
        for axis, length in ((1, lengths[0]), (2, lengths[1])):
            places = _places(length, dy.shape[axis], align, half, dy.device)
            shape = [*dy.shape[:axis], length, *dy.shape[axis + 1 :]]
            dy = dy.new_zeros(shape).index_add_(axis, places, dy)
        return dy

    return run


def _modes_of(op: Operation) -> dict[str, Any]:
    return {key: op.attributes[key] for key in ("align_corners", "half_pixel_centers")}


@nearest_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x = op.inputs[0]
    dims = (None,) * 4 if x.dims is None else x.dims
    lengths = F.Shape(x)[1:3] if None in dims[1:3] else list(dims[1:3])
    return F.ResizeNearestNeighborGrad(dy, lengths, **_modes_of(op)), None


# ---- between pixels

bilinear_op = op(
    "ResizeBilinear",
    "images: T, size: int32 -> resized_images: float",
    f"{NUMBERS} ; {MODES}",
    host=["size"],
    capturable=False,
)
bilinear_grad = op(
    "ResizeBilinearGrad",
    "grads: float, original_image: T -> output: T",
    f"T: type in [float, half, double, bfloat16] ; {MODES}",
)
bilinear_op.infer(infer_resized)
bilinear_grad.infer(lambda node: node.dims(1))
bilinear_grad.not_differentiable()


@lru_cache(64)
def _linear_taps(length: int, count: int) -> Taps:
    """TensorFlow 1's way: of each of `count` places, the pixels on both sides."""
    place = np.arange(count, dtype=np.float32) * (np.float32(length) / np.float32(count))
    below = place.astype(np.int64)
    share = place - below.astype(np.float32)
    return Taps(np.stack([below, np.minimum(below + 1, length - 1)], 1), np.stack([1 - share, share], 1))


@bilinear_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    align, half = mode_of(node)

    def run(x: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
        rows, columns = checked_size(x, size)
        if align or half:
            return _bilinear(x.float().permute(_TO_FIRST), [rows, columns], align).permute(_TO_LAST)
        by_aten = x.shape[3] >= machine.current().profile.resized_channels and resampler() is None
        if by_aten and x.device.type == "cpu" and x.numel():
            return _with_a_border(x.float(), rows, columns)
        return sample(x, _linear_taps(x.shape[1], rows), _linear_taps(x.shape[2], columns))

    return run


def _with_a_border(x: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """TensorFlow 1's way by corners that fit: of images whose last row and column are there twice, one more
    row and column are made, and left out."""
    batch, height, width, channels = x.shape
    wide = x.new_empty(batch, height + 1, width + 1, channels)
    wide[:, :height, :width] = x
    wide[:, height, :width] = x[:, -1]
    wide[:, :, width] = wide[:, :, width - 1]
    found = _bilinear(wide.permute(_TO_FIRST), [rows + 1, columns + 1], True).permute(_TO_LAST)
    return found[:, :rows, :columns].contiguous()


@bilinear_grad.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    align, half = mode_of(node)

    def run(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        if dy.dim() != 4 or x.dim() != 4:
            raise _invalid(f"input_grad and original_image must be 4-dimensional {list(dy.shape)}")
        batch, height, width, channels = x.shape
        counts = list(dy.shape[1:3])
        has_code = dy.device.type == "cpu" and resampler() is not None
        if has_code and not align and not half and dy.numel() and x.numel():
            if (dy.shape[0], dy.shape[3]) == (batch, channels):
                spans = (height, counts[0]), (width, counts[1])
                taps = [reversed_taps(_linear_taps(length, count), length) for length, count in spans]
                return sample(dy, *taps).to(x.dtype)
        dy = dy.permute(_TO_FIRST)
        if align or half:
            dx = _bilinear_backward(dy, counts, [batch, channels, height, width], align)
            return dx.to(x.dtype).permute(_TO_LAST)
        dy = torch.constant_pad_nd(dy, [0, 1, 0, 1])
        shape = [batch, channels, height + 1, width + 1]
        dx = _bilinear_backward(dy, [n + 1 for n in counts], shape, True).permute(_TO_LAST)
        dx[:, -2] += dx[:, -1]
        dx[:, :, -2] += dx[:, :, -1]
        return dx[:, :-1, :-1].to(x.dtype).contiguous()

    return run


@bilinear_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x = op.inputs[0]
    if not x.dtype.is_floating:
        return None, None
    return F.ResizeBilinearGrad(dy, x, **_modes_of(op)), None


# ---- public functions


def resize_nearest_neighbor(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Images [batch, height, width, channels] of any real type as [batch, *size, channels]:

    each pixel is that of the image which lies nearest. `size`: two int32. InvalidArgumentError if it is not
    positive, or if both ways of aligning are asked for.
    """
    return nearest_op(
        images, size, align_corners=align_corners, half_pixel_centers=half_pixel_centers, name=name
    )


def resize_bilinear(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Images [batch, height, width, channels] of any real type as float32 [batch, *size, channels]:

    each pixel is interpolated between four. `size` and errors as for `resize_nearest_neighbor`.
    """
    return bilinear_op(
        images, size, align_corners=align_corners, half_pixel_centers=half_pixel_centers, name=name
    )
