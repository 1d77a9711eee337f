"""Normalisation of each element by its neighbours among the channels, and the gradient.

    y = x * norm ** -beta,   norm = bias + alpha * (sum of squares of channels at most depth_radius away)

(Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", 2012, 3.3.) The sums of
neighbours are a product with a band matrix where channels are few; with many, a tree of additions of the rows
shifted in memory, between which zeros lie: 1, 2, 4, 8 … neighbours at a time. On a host ATen's sum over an
unfolded dimension takes six times as long as either, and a power twice as long as the roots that 1/2 and 3/4
are. The public names belong to ``tf.nn``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine import onednn
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import merge
from flowstone.ops.networks.windows import require_rank

__all__ = ["local_response_normalization", "lrn"]

_ATTRIBUTES = (
    "depth_radius: int = 5 ; bias: float = 1 ; alpha: float = 1 ; beta: float = 0.5 ; "
    "T: type in [half, bfloat16, float] = float"
)
lrn_op = op("LRN", "input: T -> output: T", _ATTRIBUTES, cost=20)
lrn_op.infer(lambda node: require_rank(node.dims(0), 4))
lrn_grad = op("LRNGrad", "input_grads: T, input_image: T, output_image: T -> output: T", _ATTRIBUTES, cost=20)
lrn_grad.infer(lambda node: merge(merge(require_rank(node.dims(0), 4), node.dims(1)), node.dims(2)))
lrn_grad.no_gradient()

_product = onednn.product


def _settings(node: Node) -> tuple[int, float, float, float]:
    radius, bias, alpha, beta = (node.attributes[key] for key in ("depth_radius", "bias", "alpha", "beta"))
    return radius, bias, alpha, beta


# ---- sums of neighbours

Sum = Callable[[torch.Tensor], torch.Tensor]


def neighbours(dims: Any, radius: int, env: Environment, factor: float = 1.0, shift: float = 0.0) -> Sum:
    """A function of float32 [..., channels]: ``factor * (sum of channels at most radius away) + shift``.

    `dims`: the static shape, of which only the channels matter, or None.
    """
    channels = None if dims is None else dims[-1]
    if env.device.type == "cpu" and channels:
        if channels <= env.machine.profile.band_channels and env.machine.has_onednn:
            return _by_band(channels, radius, factor, shift)
        return lambda x: _by_shifts(x, radius).mul_(factor).add_(shift)

    def unfolded(x: torch.Tensor) -> torch.Tensor:
        if not x.numel():
            return x.clone()
        found = torch.constant_pad_nd(x, [radius, radius]).unfold(-1, 2 * radius + 1, 1).sum(-1)
        return found.mul_(factor).add_(shift)

    return unfolded


def _by_band(channels: int, radius: int, factor: float, shift: float) -> Sum:
    places = torch.arange(channels)
    band = ((places[:, None] - places).abs() <= radius).float().mul_(factor)
    shifts = torch.full((channels,), shift, dtype=torch.float32) if shift else None
    return lambda x: _product(x.reshape(-1, channels), band, shifts, "none", (), "").view(x.shape)


def _by_shifts(x: torch.Tensor, radius: int) -> torch.Tensor:
    """A view of every row's sums in a longer row of memory."""
    *rest, channels = x.shape
    width, length = 2 * radius + 1, channels + 2 * radius
    count = x.numel() // channels * length
    sums = x.new_zeros(count + width)
    sums[:count].view(*rest, length)[..., radius : radius + channels] = x
    parts, taken = [], 0
    for bit in range(width.bit_length()):
        size = 1 << bit
        if bit:  # sums[i] is that of `size` elements from i on
            sums = sums[: -(size // 2)] + sums[size // 2 :]
        if width & size:
            parts.append(sums[taken : taken + count])
            taken += size
    total = sum(parts[1:], parts[0])
    return total.view(*rest, length)[..., :channels]


# ---- powers


def _power(exponent: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """``x ** -exponent``."""
    if exponent == 0.5:
        return torch.rsqrt
    if exponent == 0.75:
        return _three_quarters
    return torch.reciprocal if exponent == 1 else lambda x: torch.pow(x, -exponent)


def _three_quarters(x: torch.Tensor) -> torch.Tensor:
    root = torch.rsqrt(x)
    return torch.sqrt(root).mul_(root)


# ---- kernels


def _require_image(x: torch.Tensor) -> None:
    if x.dim() != 4:
        raise errors.InvalidArgumentError(None, None, f"in must be 4-dimensional, not {x.dim()}")


@lrn_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    radius, bias, alpha, beta = _settings(node)
    norm_of, power = neighbours(node.static_shape(0), radius, env, alpha, bias), _power(beta)

    def run(x: torch.Tensor) -> torch.Tensor:
        _require_image(x)
        wide = x.float()
        return power(norm_of(wide * wide)).mul_(wide).to(x.dtype)

    return run


@lrn_grad.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    radius, bias, alpha, beta = _settings(node)
    dims = node.static_shape(1)
    norm_of, power = neighbours(dims, radius, env, alpha, bias), _power(beta)
    sum_of = neighbours(dims, radius, env, -2 * alpha * beta)

    def run(dy: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        _require_image(x)
        dtype = x.dtype
        dy, x, y = dy.float(), x.float(), y.float()
        norm = norm_of(x * x)
        shared = sum_of((dy * y).div_(norm)).mul_(x)
        return shared.addcmul_(dy, power(norm)).to(dtype)

    return run


@lrn_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    attributes = {key: op.attributes[key] for key in ("depth_radius", "bias", "alpha", "beta")}
    return (F.LRNGrad(dy, op.inputs[0], op.outputs[0], **attributes),)


# ---- the public function


def local_response_normalization(
    input: Any, depth_radius: int = 5, bias: float = 1, alpha: float = 1, beta: float = 0.5,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """input / (bias + alpha * sum of squares of channels at most depth_radius away) ** beta;

    [batch, height, width, channels].
    """
    return lrn_op(input, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta, name=name)


lrn = local_response_normalization
