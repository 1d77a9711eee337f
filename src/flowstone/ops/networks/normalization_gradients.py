"""The gradient of batch normalisation's gradient, as gradient penalties through normalised layers need it.

With r = 1 / sqrt(variance + epsilon), h = (x - mean) r and the flow dy,

    dx = scale r (dy - E(dy) - h E(dy h)),   dscale = sum(dy h),   doffset = sum(dy)

where E are means over all but the channels; at inference, with moments that are given, dx = scale r dy. In
training the moments are computed from x here, for flows go through them.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F, Gradients
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.networks.windows import is_channels_last
from flowstone.ops.numbers.reductions import reduce_mean, reduce_sum

__all__ = ["second_gradient"]


def second_gradient(op: Operation, *flows: Tensor) -> Gradients:
    """The flows to dy, x and scale of those to dx, dscale and doffset."""
    dy, x, scale = (_wide(each) for each in op.inputs[:3])
    to_dx, to_scale, to_offset = (_wide(each) for each in flows[:3])
    channels = _Channels(op.attributes["data_format"])
    scale, to_scale, to_offset = (channels.spread(each) for each in (scale, to_scale, to_offset))
    epsilon = float(op.attributes["epsilon"])
    if op.attributes["is_training"]:
        mean = channels.mean(x)
        variance = channels.mean(F.Square(F.Sub(x, mean)))
        found = _in_training(channels, dy, x, scale, (mean, variance), epsilon, (to_dx, to_scale, to_offset))
    else:
        moments = [channels.spread(_wide(each)) for each in op.inputs[3:5]]
        found = _at_inference(channels, dy, x, scale, moments, epsilon, (to_dx, to_scale, to_offset))
    results = [_as(each, like) for each, like in zip(found, op.inputs)]
    return (*results, *[None] * (len(op.inputs) - 3))


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype.base_dtype is dtypes.float32 else F.Cast(x, DstT=dtypes.float32)


def _as(x: Tensor, like: Tensor) -> Tensor:
    dtype = like.dtype.base_dtype
    return x if dtype is dtypes.float32 else F.Cast(x, DstT=dtype)


class _Channels:
    """Means and sums over all axes but that of the channels, and values a channel in the images' rank."""

    def __init__(self, layout: str) -> None:
        last = is_channels_last(layout)
        rank = len(layout)
        self.axes = list(range(rank - 1)) if last else [0, *range(2, rank)]
        self._shape = [1] * (rank - 1) + [-1] if last else [1, -1] + [1] * (rank - 2)

    def mean(self, x: Tensor) -> Tensor:
        return reduce_mean(x, self.axes, keepdims=True)

    def sum(self, x: Tensor) -> Tensor:
        return reduce_sum(x, self.axes)

    def spread(self, x: Tensor) -> Tensor:
        return F.Reshape(x, self._shape)


def _in_training(
    channels: _Channels, dy: Tensor, x: Tensor, scale: Tensor, moments: Any, epsilon: float, flows: Any
) -> tuple[Tensor, Tensor, Tensor]:
    to_dx, to_scale, to_offset = flows
    inverse = F.Rsqrt(F.AddV2(moments[1], epsilon))
    h = F.Mul(F.Sub(x, moments[0]), inverse)
    factor = F.Mul(scale, inverse)
    flow_h, given_h = channels.mean(F.Mul(to_dx, h)), channels.mean(F.Mul(dy, h))
    # What is left of the flow to dx without its mean and its part along h, as dx is left of dy.
    left = F.Sub(F.Sub(to_dx, channels.mean(to_dx)), F.Mul(h, flow_h))
    for_dy = F.AddV2(F.AddV2(F.Mul(factor, left), F.Mul(to_scale, h)), to_offset)
    product = channels.mean(F.Mul(left, dy))
    for_scale = channels.sum(F.Mul(F.Mul(left, dy), inverse))
    along = F.AddV2(F.Mul(given_h, to_dx), F.Mul(flow_h, dy))
    for_h = F.Sub(F.Mul(to_scale, dy), F.Mul(factor, along))
    kept = F.Sub(F.Sub(for_h, channels.mean(for_h)), F.Mul(h, channels.mean(F.Mul(for_h, h))))
    by_inverse = F.Mul(F.Mul(factor, product), h)
    return for_dy, F.Mul(inverse, F.Sub(kept, by_inverse)), for_scale


def _at_inference(
    channels: _Channels, dy: Tensor, x: Tensor, scale: Tensor, moments: Any, epsilon: float, flows: Any
) -> tuple[Tensor, Tensor, Tensor]:
    to_dx, to_scale, to_offset = flows
    inverse = F.Rsqrt(F.AddV2(moments[1], epsilon))
    h = F.Mul(F.Sub(x, moments[0]), inverse)
    for_dy = F.AddV2(F.AddV2(F.Mul(F.Mul(scale, inverse), to_dx), F.Mul(to_scale, h)), to_offset)
    for_scale = channels.sum(F.Mul(F.Mul(to_dx, dy), inverse))
    return for_dy, F.Mul(F.Mul(to_scale, inverse), dy), for_scale
