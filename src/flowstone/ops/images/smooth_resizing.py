"""Images resized by areas or cubic curves, and scaled and moved by a kernel of the user's choice.

Each works along the rows, then along the columns: `weighted_sampling` has the sums, this file their weights.
Where a resulting pixel lies in the image is as in `image_resizing`. All results are float32.

==================  ====================================================================================
ResizeArea          the mean of the image over the pixel's own area, parts of pixels counted in part
ResizeBicubic       four pixels by Keys' curve: with a = -0.75, or with `half_pixel_centers` a = -0.5, and
                    then without the pixels beyond the border. The curve is sampled at 1024 points.
ScaleAndTranslate   the pixels within a kernel's radius; `antialias` widens the kernel where images shrink
==================  ====================================================================================

R. Keys, "Cubic convolution interpolation for digital image processing", 1981.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.images.image_resizing import MODES, NUMBERS, checked_size, infer_resized, mode_of
from flowstone.ops.images.weighted_sampling import Array, Taps, reversed_taps, sample, taps_of

_CURVE_POINTS = 1024
_REMEMBERED = 64  # taps of lengths seen lately

# ---- weights


def _scale(length: int, count: int, align: bool) -> np.float32:
    if align and count > 1:
        length, count = length - 1, count - 1
    scale: np.float32 = np.float32(length) / np.float32(count)
    return scale


@functools.lru_cache(_REMEMBERED)
def _area_taps(length: int, count: int, align: bool, half: bool) -> Taps:
    scale = _scale(length, count, align) or np.float32(1)  # corners of one pixel are that pixel
    start = np.arange(count, dtype=np.float32) * scale
    stop = np.arange(1, count + 1, dtype=np.float32) * scale
    first, last = np.floor(start).astype(np.int64), np.ceil(stop).astype(np.int64)
    pixels = first[:, None] + np.arange(int((last - first).max()))[None, :]
    left, right = pixels < start[:, None], pixels + 1 > stop[:, None]
    covered = np.where(left, pixels + 1 - start[:, None], np.where(right, stop[:, None] - pixels, 1))
    covered = np.where(left & right, scale, covered).astype(np.float32) / scale
    used = pixels < last[:, None]
    results = np.broadcast_to(np.arange(count)[:, None], pixels.shape)
    return taps_of(results[used], pixels[used].clip(0, length - 1), covered[used].astype(np.float32), count)


@functools.lru_cache(2)
def _curve(a: float) -> Array:
    """Keys' curve at 0, 1/1024 … 1 and, in the second column, one further."""
    x = np.arange(_CURVE_POINTS + 1, dtype=np.float32) / np.float32(_CURVE_POINTS)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    x = x + 1
    return np.stack([near, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a], 1).astype(np.float32)


@functools.lru_cache(_REMEMBERED)
def _cubic_taps(length: int, count: int, align: bool, half: bool) -> Taps:
    scale = _scale(length, count, align)
    position = np.arange(count, dtype=np.float32)
    position = (position + np.float32(0.5)) * scale - np.float32(0.5) if half else position * scale
    below = np.floor(position)
    offset = np.rint((position - below) * np.float32(_CURVE_POINTS)).astype(np.int64)
    curve = _curve(-0.5 if half else -0.75)
    near, far = curve[offset], curve[_CURVE_POINTS - offset]
    weights = np.stack([near[:, 1], near[:, 0], far[:, 0], far[:, 1]], 1)
    pixels = below.astype(np.int64)[:, None] + np.arange(-1, 3)[None, :]
    bounded = pixels.clip(0, length - 1)
    if half:
        weights = np.where(bounded == pixels, weights, np.float32(0))
        weights = weights / weights.sum(1, keepdims=True)
    return Taps(bounded, weights.astype(np.float32))


_Weights = Callable[[int, int, bool, bool], Taps]

# ---- sizes that are asked for


def _resizing_kernel(taps: _Weights) -> Callable[[Node, Environment], Kernel]:
    def factory(node: Node, env: Environment) -> Kernel:
        align, half = mode_of(node)

        def run(images: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
            rows, columns = checked_size(images, size)
            _, height, width, _ = images.shape
            return sample(images, taps(height, rows, align, half), taps(width, columns, align, half))

        return run

    return factory


area_op = op(
    "ResizeArea",
    "images: T, size: int32 -> resized_images: float",
    f"{NUMBERS} ; align_corners: bool = false",
    host=["size"],
    capturable=False,
)
area_op.infer(infer_resized)
area_op.kernel(CPU, GPU)(_resizing_kernel(_area_taps))
area_op.no_gradient()

cubic_op = op(
    "ResizeBicubic",
    "images: T, size: int32 -> resized_images: float",
    f"{NUMBERS} ; {MODES}",
    host=["size"],
    capturable=False,
)
cubic_op.infer(infer_resized)
cubic_op.kernel(CPU, GPU)(_resizing_kernel(_cubic_taps))

cubic_grad = op(
    "ResizeBicubicGrad",
    "grads: float, original_image: T -> output: T",
    f"T: type in [float, double] ; {MODES}",
    capturable=False,
)
cubic_grad.infer(lambda node: node.dims(1))
cubic_grad.no_gradient()


@cubic_grad.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    align, half = mode_of(node)

    def run(dy: torch.Tensor, images: torch.Tensor) -> torch.Tensor:
        _check_gradient(dy, images)
        spans = zip(images.shape[1:3], dy.shape[1:3])
        taps = [reversed_taps(_cubic_taps(length, count, align, half), length) for length, count in spans]
        return sample(dy, *taps).to(images.dtype)

    return run


def _check_gradient(dy: torch.Tensor, images: torch.Tensor) -> None:
    for what, x in (("input_grad", dy), ("original_image", images)):
        if x.dim() != 4:
            raise invalid(f"{what} must be 4-dimensional: {list(x.shape)}")
        if 0 in x.shape[1:]:
            raise invalid(f"{what} must be of non-zero size: {list(x.shape)}")
    if dy.shape[0] != images.shape[0] or dy.shape[3] != images.shape[3]:
        raise invalid(
            f"images {list(images.shape)} and gradients {list(dy.shape)} must agree in number and channels"
        )


@cubic_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    images = op.inputs[0]
    if images.dtype not in (dtypes.float32, dtypes.float64):
        return None, None
    modes = {key: op.attributes[key] for key in ("align_corners", "half_pixel_centers")}
    return F.ResizeBicubicGrad(dy, images, **modes), None


# ---- any scale, any offset, any of these kernels


def _sinc_window(radius: float) -> Callable[[Array], Array]:
    def weight(x: Array) -> Array:
        return np.asarray(np.where(np.abs(x) > radius, 0, np.sinc(x) * np.sinc(x / radius)))

    return weight


def _cubic(a: tuple[float, ...], b: tuple[float, ...]) -> Callable[[Array], Array]:
    """A curve of one cubic within distance 1 and another within 2."""

    def weight(x: Array) -> Array:
        x = np.abs(x)
        return np.asarray(np.where(x >= 2, 0, np.where(x >= 1, np.polyval(b, x), np.polyval(a, x))))

    return weight


# Radius and weight at a distance.
_KERNELS: dict[str, tuple[float, Callable[[Array], Array]]] = {
    **{f"lanczos{radius}": (float(radius), _sinc_window(radius)) for radius in (1, 3, 5)},
    "gaussian": (1.5, lambda x: np.where(np.abs(x) >= 1.5, 0, np.exp(-2 * x * x))),
    "box": (1.0, lambda x: np.where(np.abs(x) < 0.5, 1, np.where(np.abs(x) == 0.5, 0.5, 0))),
    "triangle": (1.0, lambda x: np.maximum(1 - np.abs(x), 0)),
    "keyscubic": (2.0, _cubic((1.5, -2.5, 0, 1), (-0.5, 2.5, -4, 2))),
    "mitchellcubic": (2.0, _cubic((7 / 6, -2, 0, 8 / 9), (-7 / 18, 2, -10 / 3, 16 / 9))),
}


@functools.lru_cache(_REMEMBERED)
def _kernel_taps(length: int, count: int, scale: float, offset: float, kind: str, antialias: bool) -> Taps:
    radius, weight = _KERNELS[kind]
    weights: Array
    inverse = np.float32(1) / np.float32(scale)
    widened = max(inverse, np.float32(1)) if antialias else np.float32(1)
    centre = (np.arange(count, dtype=np.float32) + np.float32(0.5)) * inverse - inverse * np.float32(offset)
    reach = np.float32(radius) * widened
    first = np.ceil(centre - reach - np.float32(0.5)).clip(0, length - 1).astype(np.int64)
    last = np.floor(centre + reach - np.float32(0.5)).clip(0, length - 1).astype(np.int64)
    inside = (centre >= 0) & (centre <= length)
    pixels = first[:, None] + np.arange(int((last - first).max(initial=0)) + 1)[None, :]
    distance = (pixels + np.float32(0.5) - centre[:, None]) / widened
    used = (pixels <= last[:, None]) & inside[:, None]
    weights = np.where(used, weight(distance.astype(np.float32)), 0).astype(np.float32)
    total = weights.sum(1, keepdims=True)
    used &= np.abs(total) >= 1000 * np.finfo(np.float32).tiny
    weights = weights / np.where(total == 0, 1, total)
    results = np.broadcast_to(np.arange(count)[:, None], pixels.shape)
    return taps_of(results[used], pixels[used], weights[used], count)


_SCALING = "kernel_type: string = 'lanczos3' ; antialias: bool = true"

scale_and_translate_op = op(
    "ScaleAndTranslate",
    "images: T, size: int32, scale: float, translation: float -> resized_images: float",
    f"{NUMBERS} ; {_SCALING}",
    host=["size", "scale", "translation"],
    capturable=False,
)
scale_and_translate_op.infer(infer_resized)
scale_and_translate_grad = op(
    "ScaleAndTranslateGrad",
    "grads: T, original_image: T, scale: float, translation: float -> output: T",
    f"T: type in [float] ; {_SCALING}",
    host=["scale", "translation"],
    capturable=False,
)
scale_and_translate_grad.infer(lambda node: node.dims(1))
scale_and_translate_grad.no_gradient()


def _kernel_of(node: Node) -> tuple[str, bool]:
    kind = node.attributes["kernel_type"]
    if kind not in _KERNELS:
        raise invalid(f"Unrecognized kernel type: {kind}")
    return kind, node.attributes["antialias"]


def _pairs(scale: torch.Tensor, offset: torch.Tensor) -> list[tuple[float, float]]:
    """(scale, offset) of the rows and of the columns."""
    for what, x in (("scale", scale), ("translation", offset)):
        if tuple(x.shape) != (2,):
            raise invalid(f"{what} must have 2 elements: {list(x.shape)}")
    if not bool((scale > 0).all()):
        raise invalid(f"Scale must be greater than zero: {scale.tolist()}")
    if not bool(torch.isfinite(1 / scale).all() and torch.isfinite(scale * offset).all()):
        raise invalid(
            f"Scale, its inverse and translation must be finite: {scale.tolist()}, {offset.tolist()}"
        )
    return list(zip(scale.tolist(), offset.tolist()))


@scale_and_translate_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    kernel = _kernel_of(node)

    def run(images: torch.Tensor, size: torch.Tensor, scale: Any, offset: Any) -> torch.Tensor:
        counts, pairs = checked_size(images, size), _pairs(scale, offset)
        spans = zip(images.shape[1:3], counts, pairs)
        return sample(images, *[_kernel_taps(length, n, *pair, *kernel) for length, n, pair in spans])

    return run


@scale_and_translate_grad.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    kernel = _kernel_of(node)

    def run(dy: torch.Tensor, images: torch.Tensor, scale: Any, offset: Any) -> torch.Tensor:
        if 0 in dy.shape:
            return torch.zeros_like(images)
        _check_gradient(dy, images)
        spans = zip(images.shape[1:3], dy.shape[1:3], _pairs(scale, offset))
        taps = [reversed_taps(_kernel_taps(k, n, *pair, *kernel), k) for k, n, pair in spans]
        return sample(dy, *taps)

    return run


@scale_and_translate_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    images, _, scale, offset = op.inputs
    if images.dtype is not dtypes.float32:
        return None, None, None, None
    kernel = {key: op.attributes[key] for key in ("kernel_type", "antialias")}
    return F.ScaleAndTranslateGrad(dy, images, scale, offset, **kernel), None, None, None
