"""Quantised images [batch, height, width, channels] normalised and resized.

What is computed with fractions is computed in floats and rounded to the nearest integers of the result's
range.
"""

from __future__ import annotations

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.padded_convolutions import resized_bilinear
from flowstone.ops.networks.windows import require_rank
from flowstone.ops.quantization.ranges import (
    Levels,
    require_scalars,
    scalar,
    scalars,
    to_floats,
    to_integers,
)

# ---- normalisation of each image and channel

instance_norm_op = op(
    "QuantizedInstanceNorm",
    "x: T, x_min: float, x_max: float -> y: T, y_min: float, y_max: float",
    "output_range_given: bool = false ; given_y_min: float = 0 ; given_y_max: float = 0 ; "
    "variance_epsilon: float = 1e-05 ; min_separation: float = 0.001",
    T=dtypes.QUANTIZED,
    host=("x_min", "x_max", "y_min", "y_max"),
    capturable=False,
    cost=8.0,
)


@instance_norm_op.infer
def _(node: Node) -> Shapes:
    require_scalars(node, 1, 2)
    return [require_rank(node.dims(0), 4), (), ()]


@instance_norm_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    attributes = node.attributes
    epsilon, separation = attributes["variance_epsilon"], attributes["min_separation"]
    given = (
        (attributes["given_y_min"], attributes["given_y_max"]) if attributes["output_range_given"] else None
    )
    if given is not None and given[0] >= given[1]:
        raise invalid(f"given_y_min must be less than given_y_max : {given[0]} >= {given[1]}")

    def run(x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> list[torch.Tensor]:
        levels = Levels(node.dtype(0), scalar(low, "x_min"), scalar(high, "x_max"))
        if levels.low >= levels.high:
            raise invalid(f"input_min must be less than input_max : {levels.low} >= {levels.high}")
        if x.dim() != 4:
            raise invalid(f"input must be 4-dimensional: {list(x.shape)}")
        numbers = to_floats(x, levels)
        variance, mean = torch.var_mean(numbers, (1, 2), correction=0, keepdim=True)
        y = (numbers - mean) * torch.rsqrt(variance + epsilon)
        least, largest = given or (y.aminmax() if y.numel() else (0.0, 0.0))
        least, largest = float(least), float(largest)
        if given is None:
            largest = max(largest, least + separation)
        return [to_integers(y, Levels(node.dtype(0), least, largest)), *scalars(least, largest)]

    return run


instance_norm_op.no_gradient()


# ---- normalisation by given moments

_MOMENTS = ("m", "v", "beta", "gamma")
batch_norm_op = op(
    "QuantizedBatchNormWithGlobalNormalization",
    "t: Tinput, t_min: float, t_max: float, "
    + ", ".join(f"{name}: Tinput, {name}_min: float, {name}_max: float" for name in _MOMENTS)
    + " -> result: out_type, result_min: float, result_max: float",
    "out_type: type in [qint8, quint8, qint16, quint16, qint32] ; variance_epsilon: float ; "
    "scale_after_normalization: bool",
    Tinput=dtypes.QUANTIZED,
    host=(*[f"{name}_{end}" for name in ("t", *_MOMENTS, "result") for end in ("min", "max")],),
    cost=12.0,
)
_RESULT = 2.0**20  # the range of the result is that on both sides of zero


@batch_norm_op.infer
def _(node: Node) -> Shapes:
    require_scalars(node, *[i for i in range(15) if i % 3])
    image = require_rank(node.dims(0), 4)
    channels = image[3]
    for i in (3, 6, 9, 12):
        size = require_rank(node.dims(i), 1)[0]
        if None not in (size, channels) and size != channels:
            raise ValueError(f"Dimensions must be equal, but are {channels} and {size}")
        channels = size if channels is None else channels
    return [(*image[:3], channels), (), ()]


@batch_norm_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    epsilon, scales = node.attributes["variance_epsilon"], node.attributes["scale_after_normalization"]

    def run(*inputs: torch.Tensor) -> list[torch.Tensor]:
        numbers = []
        for i, name in enumerate(("t", *_MOMENTS)):
            x, low, high = inputs[3 * i : 3 * i + 3]
            levels = Levels(node.dtype(0), scalar(low, f"{name}_min"), scalar(high, f"{name}_max"))
            numbers.append(to_floats(x, levels).double())
        t, m, v, beta, gamma = numbers
        if t.dim() != 4 or any(list(each.shape) != [t.shape[3]] for each in numbers[1:]):
            raise invalid(f"moments, offset and scale do not fit images {list(t.shape)}")
        factor = torch.rsqrt(v + epsilon) * (gamma if scales else 1.0)
        result = Levels(node.outputs[0].dtype, -_RESULT, _RESULT)
        return [to_integers((t - m) * factor + beta, result), *scalars(-_RESULT, _RESULT)]

    return run


batch_norm_op.no_gradient()


# ---- resizing

resize_op = op(
    "QuantizedResizeBilinear",
    "images: T, size: int32, min: float, max: float -> resized_images: T, out_min: float, out_max: float",
    "align_corners: bool = false ; half_pixel_centers: bool = false",
    T=(dtypes.quint8, dtypes.qint32, dtypes.float32),
    host=("size", "min", "max", "out_min", "out_max"),
    cost=8.0,
)


@resize_op.infer
def _(node: Node) -> Shapes:
    require_scalars(node, 2, 3)
    batch, _, _, channels = require_rank(node.dims(0), 4)
    size = node.constant_dims(1)
    if size is not None and len(size) != 2:
        raise ValueError(f"Dimension 0 in both shapes must be equal, but are {len(size)} and 2")
    return [(batch, *(size or (None, None)), channels), (), ()]


@resize_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    align, half = node.attributes["align_corners"], node.attributes["half_pixel_centers"]
    exact = node.dtype(0) is dtypes.float32
    if align and half:
        raise invalid("If half_pixel_centers is True, align_corners must be False.")

    def run(x: torch.Tensor, size: torch.Tensor, *ends: torch.Tensor) -> list[torch.Tensor]:
        found = resized_bilinear(x if exact else x.double(), size, align, half)
        low, high = (scalar(each, name) for each, name in zip(ends, ("min", "max")))
        return [found if exact else torch.floor(found + 0.5).to(x.dtype), *scalars(low, high)]

    return run


resize_op.no_gradient()
