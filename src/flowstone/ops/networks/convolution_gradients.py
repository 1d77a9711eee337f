"""Gradients of convolutions that are told shapes by whole tensors: forms older and later than those with
sizes.

All take (input, filter, gradient of the result): of the one whose gradient is computed, only the shape
counts.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel, KernelFactory
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.convolution import IMAGE
from flowstone.ops.networks.windows import (
    channels_first,
    channels_last,
    crop_spatial,
    is_channels_last,
    pad_spatial,
    padding_of,
    require_no_batch_stride,
    require_rank,
    spatial,
)

_VOLUME = (
    "strides: list(int) >= 5 ; padding: string in ['SAME', 'VALID'] ; dilations: list(int) = [1, 1, 1, 1, 1]"
)


def _kernel(argument: int) -> KernelFactory:
    """The gradient with respect to input `argument`: 0 the images, 1 the filter."""

    def factory(node: Node, env: Environment) -> Kernel:
        attributes = node.attributes
        rank = len(attributes["strides"])
        layout = attributes.get("data_format", "NDHWC")
        for name in ("strides", "dilations"):
            require_no_batch_stride(attributes[name], layout, rank, name)
        strides, dilations = spatial(attributes["strides"], layout), spatial(attributes["dilations"], layout)
        padding, last = padding_of(attributes, rank), is_channels_last(layout)
        exact = node.dtype(0).is_integer

        def run(x: torch.Tensor, kernel: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
            if {x.dim(), kernel.dim(), dy.dim()} != {rank}:
                raise invalid(f"input, filter and out_backprop must be {rank}-dimensional")
            dtype = dy.dtype
            values = [each.double() if exact else each for each in (x, kernel, dy)]
            x, dy = (each.permute(channels_first(rank)) if last else each for each in (values[0], values[2]))
            weights = values[1].permute(rank - 1, rank - 2, *range(rank - 2))
            lengths = x.shape[2:]
            counts, before, after = padding.solve(lengths, kernel.shape[: rank - 2], strides, dilations)
            if tuple(counts) != tuple(dy.shape[2:]) or dy.shape[1] != kernel.shape[-1] or len(dy) != len(x):
                raise invalid(
                    f"Size of out_backprop doesn't match computed: actual = {list(dy.shape[2:])}, "
                    f"computed = {list(counts)}"
                )
            if before != after:
                x, cut, before = pad_spatial(x, before, after), before, (0,) * len(before)
            else:
                cut = (0,) * len(before)
            if not x.numel() or not dy.numel():
                return torch.zeros_like((x if argument == 0 else kernel), dtype=dtype)
            groups = x.shape[1] // weights.shape[1]
            if argument == 1:
                weights = x.new_empty(weights.shape)  # ATen wants it contiguous, and only its shape counts
            wanted = [argument == 0, argument == 1, False]
            found = torch.ops.aten.convolution_backward.default(
                dy, x, weights, None, strides, before, dilations, False, [0] * (rank - 2), groups, wanted
            )[argument]
            if argument == 1:
                return found.permute(*range(2, rank), 1, 0).to(dtype)  # type: ignore[no-any-return]
            found = crop_spatial(found, cut, lengths).to(dtype)
            return found.permute(channels_last(rank)) if last else found

        return run

    return factory


def _declare(name: str, argument: int, attributes: str, **traits: Any) -> OpDeclaration:
    rank = 5 if attributes is _VOLUME else 4
    found = op(
        name,
        "input: T, filter: T, out_backprop: T -> output: T",
        attributes,
        cost=work.convolution(work.input_at(2), work.input_at(1)),
        **traits,
    )
    found.infer(lambda node: require_rank(node.dims(argument), rank))
    found.kernel(CPU, GPU)(_kernel(argument))
    return found


conv2d_by_input_op = _declare(
    "Conv2DBackpropInputV2", 0, IMAGE, T=(*dtypes.FLOATS_WITH_BFLOAT16, dtypes.int32)
)
conv2d_by_filter_op = _declare("Conv2DBackpropFilterV2", 1, IMAGE, T=dtypes.FLOATS_WITH_BFLOAT16)
conv3d_by_input_op = _declare(
    "Conv3DBackpropInput", 0, _VOLUME, T=dtypes.FLOATS, deprecated=(10, "Conv3DBackpropInputV2")
)
conv3d_by_filter_op = _declare(
    "Conv3DBackpropFilter", 1, _VOLUME, T=dtypes.FLOATS, deprecated=(10, "Conv3DBackpropFilterV2")
)
for _each in (conv2d_by_input_op, conv2d_by_filter_op, conv3d_by_input_op, conv3d_by_filter_op):
    _each.no_gradient()
