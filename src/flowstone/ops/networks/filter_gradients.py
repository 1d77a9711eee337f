"""Kernels of the gradient of a convolution with respect to its filter: ATen's own, a matrix product for
pointwise convolutions, and one of only the positions that count where windows are further apart than wide.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import X0, X2, Call, Environment, Kernel, KernelFactory
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.dtypes import DType
from flowstone.ops.networks import pointwise_convolutions, single_images, tiny_images
from flowstone.ops.networks.convolution_arrangement import Arrangement, arrange_gradient
from flowstone.ops.networks.convolution_geometry import Geometry, shape_only
from flowstone.ops.networks.small_convolutions import small_convolution
from flowstone.ops.networks.window_products import by_windows
from flowstone.ops.networks.windows import (
    pad_spatial,
)

__all__: list[str] = []

_backward = torch.ops.aten.convolution_backward.default


# ---- the gradient with respect to the input


def shape_argument(node: Node, i: int) -> tuple[int, ...] | None:
    """The constant shape input `i` as a tuple, or None."""
    value = node.constant(i)
    return None if value is None else tuple(value.tolist())


# ---- the gradient with respect to the filter


def check_batches(images: int, gradients: int) -> None:
    """InvalidArgumentError if there are not as many images as gradients of what was made of them."""
    if images != gradients:
        message = f"input and out_backprop must have the same batch size: {images} vs. {gradients}"
        raise errors.InvalidArgumentError(None, None, message)


def _filter_gradient_call(seen: Arrangement, env: Environment, dtype: DType) -> Call:
    zeros = (0,) * len(seen.strides)
    assert dtype.torch is not None
    weights = shape_only(seen.geometry, seen.kernel, dtype.torch, env.device)
    dy, x = seen.result_of(X2), seen.image_of(X0)
    if _overruns(seen.kernel, seen.strides, seen.groups):
        x = Call(_positions_that_count, x, seen.strides, seen.padding)
        call = Call(
            _backward, dy, x, weights, None, (1, 1), zeros, (1, 1), False, zeros, 1, (False, True, False)
        )
        return seen.given_filter_gradient(Call(operator.getitem, call, 1))
    if len(zeros) == 3 and single_images.suits(seen, env, dtype, seen.lengths, seen.channels):
        call = single_images.by_filter(seen, dy, x, weights)
        return seen.given_filter_gradient(Call(operator.getitem, call, 1))
    call = Call(
        _backward, dy, x, weights, None, seen.strides, seen.padding,
        seen.dilations, False, zeros, seen.groups, (False, True, False),
    )  # fmt: skip
    return seen.given_filter_gradient(Call(operator.getitem, call, 1))


def _overruns(kernel: tuple[int, ...], strides: Sequence[int], groups: int) -> bool:
    """Whether oneDNN's gradient with respect to this filter (of [spatial..., in, out]) writes past the end of
    a buffer.

    Its kernel for 1x1 filters with strides does on processors without AVX-512 (oneDNN 3.12, which comes with
    torch 2.13) where the channels are no multiple of 8; without strides it does not.
    """
    *size, channels, _ = kernel
    return size == [1, 1] and max(strides) > 1 and groups == 1 and channels % 8 != 0


def _positions_that_count(x: torch.Tensor, strides: Sequence[int], padding: Sequence[int]) -> torch.Tensor:
    """What a 1x1 convolution of images with channels first reads, as it would be with strides of 1."""
    if any(padding):
        x = torch.nn.functional.pad(x, [n for n in reversed(padding) for _ in range(2)])
    return x[:, :, :: strides[0], :: strides[1]]


def filter_gradient_kernel(depthwise: bool) -> KernelFactory:
    def factory(node: Node, env: Environment) -> Kernel:
        geometry = Geometry(node)
        constant = shape_argument(node, 1)
        seen = arrange_gradient(geometry, node.static_shape(0), constant, node.static_shape(2), depthwise)
        if seen is not None:
            if pointwise_convolutions.suits_product(node.dtype(0), env, seen, by_filter=True):
                x = seen.flat_image_of(X0)
                gradient = pointwise_convolutions.gradient_by_filter(x, X2, seen, env.machine)
                return seen.given_flat_filter(gradient)
            if tiny_images.suits(seen, env, node.dtype(0), is_gradient=True):
                return tiny_images.by_filter(seen)
            usual = functools.partial(_filter_gradient_call, seen, env, node.dtype(0))
            return small_convolution(node, "filter", seen, usual) or usual()
        n, last, to_first = geometry.rank - 2, geometry.last, geometry.to_first
        strides, dilations, zeros = list(geometry.strides), list(geometry.dilations), [0] * n
        products = by_windows(geometry, env, node.dtype(0), depthwise)

        def run(x: torch.Tensor, sizes: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
            shape = constant or tuple(sizes.tolist())
            before: Sequence[int]
            counts, before, after = geometry.solve(geometry.sizes_of(x.shape), shape[:n])
            if counts != geometry.sizes_of(dy.shape):
                raise errors.InvalidArgumentError(
                    None, None, f"Size of out_backprop {list(dy.shape)} doesn't match computed {list(counts)}"
                )
            check_batches(x.shape[0], dy.shape[0])
            if dy.numel() == 0 or x.numel() == 0:
                return x.new_zeros(shape)
            channels, outputs = geometry.channels_of(x.shape), geometry.channels_of(dy.shape)
            if products.suit(x.shape[0], counts, shape, channels, outputs):
                if not last:
                    x, dy = x.permute(geometry.to_last), dy.permute(geometry.to_last)
                return products.by_filter(x, dy, shape, before, after)
            if last:
                x, dy = x.permute(to_first), dy.permute(to_first)
            if before != after:
                x, before = pad_spatial(x, before, after), zeros
            channels = x.shape[1]
            groups = channels if depthwise else channels // shape[-2]
            outputs = shape[-1] * channels if depthwise else shape[-1]
            weights = x.new_empty((1,)).expand(outputs, channels // groups, *shape[:n])
            steps = strides
            if _overruns((*shape[:n], channels, outputs), strides, groups):
                x, steps, before = _positions_that_count(x, strides, before), [1, 1], zeros
            found: torch.Tensor = _backward(
                dy,
                x,
                weights,
                None,
                steps,
                list(before),
                dilations,
                False,
                zeros,
                groups,
                [False, True, False],
            )[1]
            if depthwise:
                return found.permute(2, 3, 1, 0).reshape(shape)
            return found.permute(geometry.filter_last)

        return run

    return factory
