"""Colours: RGB as hue, saturation and value and back, and images with other contrast, hue or saturation.

Channels are the last dimension. Hue, saturation and value are in [0, 1] for RGB of that range: the value is
the greatest channel, the saturation the share of the value that is not grey, the hue the place on the circle
that red (0), green (1/3) and blue (2/3) divide.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine.image_code import ColourChange, colour_change
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import invalid

_FLOATS = "T: type in [half, bfloat16, float, double] = float"


def _native(name: str, node: Node, env: Environment) -> ColourChange | None:
    """One pass of machine code, on a host."""
    return colour_change(name, node.dtype(0).torch) if env.device.type == "cpu" else None


_Planes = tuple[torch.Tensor, ...]  # one channel each
_PART = 2**16  # pixels that are computed at once: their planes stay in caches


def _converted(images: torch.Tensor, convert: Callable[[_Planes], _Planes]) -> torch.Tensor:
    """New images whose channels are a function of these images' channels, element by element."""
    exact = torch.float64 if images.dtype is torch.float64 else torch.float32
    result = torch.empty_like(images, memory_format=torch.contiguous_format)
    size = _PART if images.device.type == "cpu" else max(images.numel(), 1)
    for out, part in zip(result.view(-1, 3).split(size), images.reshape(-1, 3).split(size)):
        planes = convert(tuple(part[:, i].to(exact).contiguous() for i in range(3)))
        for channel, plane in enumerate(planes):
            out[:, channel] = plane
    return result


def _span(planes: _Planes) -> tuple[torch.Tensor, torch.Tensor]:
    """The greatest and the least channel."""
    r, g, b = planes
    return torch.maximum(r, g).maximum(b), torch.minimum(r, g).minimum(b)


def _hue(planes: _Planes, greatest: torch.Tensor, spread: torch.Tensor) -> torch.Tensor:
    """The hue in sixths of the circle, [0, 6)."""
    r, g, b = planes
    if spread.device.type == "cpu" and math.isfinite(spread.sum().item()):
        return _finite_hue(planes, greatest, spread)
    hue = torch.where(
        r == greatest,
        (g - b) / spread,
        torch.where(g == greatest, (b - r) / spread + 2, (r - g) / spread + 4),
    )
    hue = torch.where(spread > 0, hue, torch.zeros_like(hue))
    return torch.where(hue < 0, hue + 6, hue)


def _finite_hue(planes: _Planes, greatest: torch.Tensor, spread: torch.Tensor) -> torch.Tensor:
    """The same with conditions as the numbers 0 and 1, which are exact and do not branch."""
    r, g, b = planes
    is_r = torch.eq(r, greatest, out=torch.empty_like(r))
    not_r = 1 - is_r
    is_g = torch.eq(g, greatest, out=torch.empty_like(g)).mul_(not_r)
    is_b = not_r.sub_(is_g)
    hue = (g - b).mul_(is_r).addcmul_(b - r, is_g).addcmul_(r - g, is_b)
    hue.div_(torch.eq(spread, 0, out=torch.empty_like(spread)).add_(spread))
    hue.add_(is_g, alpha=2).add_(is_b, alpha=4)
    return hue.add_(torch.lt(hue, 0, out=is_r), alpha=6)


def _to_hsv(planes: _Planes) -> _Planes:
    greatest, least = _span(planes)
    spread = greatest - least
    is_lit = torch.gt(greatest, 0, out=torch.empty_like(greatest))
    if greatest.device.type == "cpu" and math.isfinite(spread.sum().item()) and bool(is_lit.all()):
        saturation = spread / greatest
    else:
        saturation = torch.where(greatest > 0, spread / greatest, torch.zeros_like(spread))
    return _hue(planes, greatest, spread).div_(6), saturation, greatest


def _pure(hue: torch.Tensor) -> _Planes:
    """The share of each channel in the pure colour of a hue in sixths."""
    red = (hue - 3).abs_().sub_(1).clamp_(0, 1)
    green, blue = ((hue - place).abs_().neg_().add_(2).clamp_(0, 1) for place in (2, 4))
    return red, green, blue


def _to_rgb(planes: _Planes) -> _Planes:
    hue, saturation, value = planes
    grey = 1 - saturation
    return tuple(share.mul_(saturation).add_(grey).mul_(value) for share in _pure(hue * 6))


def _infer_colours(node: Node) -> Dims:
    dims = node.dims(0)
    if dims is None:
        return None
    if not dims:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if dims[-1] not in (None, 3):
        raise ValueError(f"Dimension must be 3 but is {dims[-1]}")
    return (*dims[:-1], 3)


def _conversion(node: Node, env: Environment) -> Kernel:
    name, convert = ("to_hsv", _to_hsv) if node.type == "RGBToHSV" else ("to_rgb", _to_rgb)
    native = _native(name, node, env)
    dims = node.dims(0)
    if dims and dims[-1] == 3:
        return Call(_converted, X0, convert) if native is None else Call(native, X0)

    def run(images: torch.Tensor) -> torch.Tensor:
        if images.dim() == 0:
            raise invalid("input must be at least 1D: []")
        if images.shape[-1] != 3:
            message = f"input must have 3 channels but input only has {images.shape[-1]} channels."
            raise errors.FailedPreconditionError(None, None, message)
        return _converted(images, convert) if native is None else native(images)

    return run


rgb_to_hsv_op = op("RGBToHSV", "images: T -> output: T", _FLOATS, cost=20)
rgb_to_hsv_op.infer(_infer_colours)
rgb_to_hsv_op.kernel(CPU, GPU)(_conversion)
hsv_to_rgb_op = op("HSVToRGB", "images: T -> output: T", _FLOATS, cost=10)
hsv_to_rgb_op.infer(_infer_colours)
hsv_to_rgb_op.kernel(CPU, GPU)(_conversion)
hsv_to_rgb_op.not_differentiable()


@rgb_to_hsv_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    """Of equal channels the first counts as the greatest and the last as the least.

    No hue or saturation changes at a value of zero or below, and no saturation with a least channel of that
    kind.
    """
    x, dtype = op.inputs[0], op.inputs[0].dtype
    r, g, b = F.Unpack(x, num=3, axis=-1)
    flow_hue, flow_saturation, flow_value = F.Unpack(dy, num=3, axis=-1)

    def as_number(condition: Tensor) -> Tensor:
        return F.Cast(condition, DstT=dtype)

    is_r = as_number(F.LogicalAnd(F.GreaterEqual(r, g), F.GreaterEqual(r, b)))
    is_g = (1 - is_r) * as_number(F.GreaterEqual(g, b))
    is_b = 1 - is_r - is_g
    low_b = as_number(F.LogicalAnd(F.LessEqual(b, r), F.LessEqual(b, g)))
    low_g = (1 - low_b) * as_number(F.LessEqual(g, r))
    low_r = 1 - low_b - low_g
    greatest, least = F.Maximum(F.Maximum(r, g), b), F.Minimum(F.Minimum(r, g), b)
    lit = as_number(F.Greater(greatest, F.ZerosLike(greatest)))
    spread = greatest - least
    turn = F.DivNoNan(lit * flow_hue, 6 * spread)
    difference = is_r * (g - b) + is_g * (b - r) + is_b * (r - g)
    narrowing = F.DivNoNan(turn * difference, spread)
    up = flow_value - narrowing + F.DivNoNan(lit * flow_saturation * least, greatest * greatest)
    is_coloured = as_number(F.Greater(least, F.ZerosLike(least)))
    down = narrowing - F.DivNoNan(is_coloured * flow_saturation, greatest)
    channels = [
        turn * (is_b - is_g) + is_r * up + low_r * down,
        turn * (is_r - is_b) + is_g * up + low_g * down,
        turn * (is_g - is_r) + is_b * up + low_b * down,
    ]
    return (F.Pack(channels, axis=-1),)


# ---- adjustments


def _infer_adjusted(node: Node) -> Dims:
    if node.type.startswith("AdjustContrast"):
        for i in range(1, len(node.inputs)):
            if given := node.dims(i):
                raise ValueError(f"Shape must be rank 0 but is rank {len(given)}")
    dims = node.dims(0)
    if dims is not None and len(dims) < 3:
        raise ValueError(f"Shape must be at least rank 3 but is rank {len(dims)}")
    return dims


def _check_images(images: torch.Tensor, factor: torch.Tensor, what: str, channels: int = 0) -> None:
    if images.dim() < 3:
        raise invalid(f"input must be at least 3-D, got shape {list(images.shape)}")
    if factor.dim():
        raise invalid(f"{what} must be scalar: {list(factor.shape)}")
    if channels and images.shape[-1] != channels:
        raise invalid(f"input must have {channels} channels but instead has {images.shape[-1]} channels.")


adjust_contrast_v2_op = op(
    "AdjustContrastv2",
    "images: T, contrast_factor: float -> output: T",
    "T: type in [half, float] = float",
    cost=4,
)
adjust_contrast_v2_op.infer(_infer_adjusted)
adjust_contrast_v2_op.no_gradient()


def _contrasted(images: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    mean = images.mean((-3, -2), keepdim=True)
    if images.device.type == "cpu" and math.isfinite(mean.sum().item()):
        return torch.lerp(mean, images, factor)
    return (images - mean).mul_(factor).add_(mean)


@adjust_contrast_v2_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def run(images: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        _check_images(images, factor, "contrast_factor")
        return _contrasted(images.float(), factor).to(images.dtype)

    return run


adjust_contrast_op = op(
    "AdjustContrast",
    "images: T, contrast_factor: float, min_value: float, max_value: float -> output: float",
    "T: type in [uint8, int8, int16, int32, int64, float, double]",
    cost=5,
    deprecated=(2, "AdjustContrastv2"),
)
adjust_contrast_op.infer(_infer_adjusted)
adjust_contrast_op.no_gradient()


@adjust_contrast_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def run(
        images: torch.Tensor, factor: torch.Tensor, low: torch.Tensor, high: torch.Tensor
    ) -> torch.Tensor:
        _check_images(images, factor, "contrast_factor")
        for what, bound in (("min_value", low), ("max_value", high)):
            if bound.dim():
                raise invalid(f"{what} must be scalar: {list(bound.shape)}")
        return torch.minimum(torch.maximum(_contrasted(images.float(), factor), low), high)

    return run


adjust_hue_op = op(
    "AdjustHue", "images: T, delta: float -> output: T", "T: type in [half, float] = float", cost=20
)
adjust_hue_op.infer(_infer_adjusted)
adjust_hue_op.no_gradient()


def _turned(planes: _Planes, delta: torch.Tensor) -> _Planes:
    greatest, least = _span(planes)
    spread = greatest - least
    hue = torch.remainder(_hue(planes, greatest, spread) + 6 * delta, 6)
    return tuple(share.mul_(spread).add_(least) for share in _pure(hue))


@adjust_hue_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    native = _native("turned", node, env)

    def run(images: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
        _check_images(images, delta, "delta", 3)
        if native is not None and abs(delta.item()) <= 1:
            return native(images, (6 * delta).item())
        return _converted(images, lambda planes: _turned(planes, delta))

    return run


adjust_saturation_op = op(
    "AdjustSaturation", "images: T, scale: float -> output: T", "T: type in [half, float] = float", cost=20
)
adjust_saturation_op.infer(_infer_adjusted)
adjust_saturation_op.no_gradient()


@adjust_saturation_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    native = _native("coloured", node, env)

    def run(images: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        _check_images(images, scale, "scale", 3)
        if native is not None:
            return native(images, scale.item())
        return _converted(images, lambda planes: _coloured(planes, scale))

    return run


def _coloured(planes: _Planes, scale: torch.Tensor) -> _Planes:
    hue, saturation, value = _to_hsv(planes)
    return _to_rgb((hue, saturation.mul_(scale).clamp_(0, 1), value))
