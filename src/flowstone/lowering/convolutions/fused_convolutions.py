"""A convolution with its bias and activation: one pass over the result.

Plans only: `lowering/products/fusion.py` makes ``_BiasedConv2D`` of a Conv2D, the addition of a vector to its
channels, and Relu, Tanh or Sigmoid after that. oneDNN does all of it in the convolution's own pass; its tanh
is also ten times as fast as ATen's where MKL does not know the processor. Its relu makes 0 of NaN, which
would hide that training has gone astray: it is used only where all that is convolved was found to be finite,
which costs less than a relu of its own where images have fewer elements than results.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, X1, X2, Call
from flowstone.framework.declarations.operation import op
from flowstone.framework.machine import machine, onednn
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import num_elements
from flowstone.lowering.packing.packed_weights import FORMS, Form, reordered_filter
from flowstone.ops.algebra.matrices import ACTIVATED
from flowstone.ops.networks.convolution import FLOATS, IMAGE, conv2d_op, infer_convolution
from flowstone.ops.networks.convolution_arrangement import arrange
from flowstone.ops.networks.convolution_geometry import Geometry
from flowstone.ops.networks.pointwise_convolutions import is_row
from flowstone.ops.networks.small_convolutions import small_convolution
from flowstone.ops.networks.windows import is_channels_last

__all__: list[str] = []

biased_conv2d_op = op(
    "_BiasedConv2D",
    "input: T, filter: T, bias: T -> output: T",
    f"{IMAGE} ; activation: string = '' ; packed: bool = false ; direct: bool = false",
    T=FLOATS,
    cost=work.convolution(work.first_output, work.input_at(1)),
    multiplies="convolution",
)
biased_conv2d_op.infer(infer_convolution(4, depthwise=False))
biased_conv2d_op.not_differentiable()


_convolve = onednn.convolve


def _suits_onednn(node: Any) -> Any:
    """Whether oneDNN makes this float32 convolution on a host."""
    if node.dtype(0) is not dtypes.float32:
        return False
    results, kernel = num_elements(node.outputs[0].dims), num_elements((node.dims(1) or (None,))[:-1])
    return bool(results and kernel and machine.current().convolves_by_onednn(results * kernel))


def _with_bias(call: Any, node: Any, packed: bool) -> Any:
    """A convolution's call, with all that is called on its result, where oneDNN adds bias and activation."""
    if call.function is torch.conv2d:
        x, kernel, _, strides, padding, dilations, groups = call.arguments
    elif call.function is _convolve:
        x, kernel, _, padding, strides, dilations, groups, *_ = call.arguments
    else:
        return Call(call.function, _with_bias(call.arguments[0], node, packed), *call.arguments[1:])
    operands, geometry = (x, X1 if packed else kernel, X2), (padding, strides, dilations, groups)
    activation = node.attributes["activation"].lower() or "none"
    if activation != "relu":
        return Call(_convolve, *operands, *geometry, activation, (), "")
    images, results = num_elements(node.dims(0)), num_elements(node.outputs[0].dims)
    if packed or images is None or results is None or images >= results:
        return Call(torch.relu_, Call(_convolve, *operands, *geometry, "none", (), ""))
    return Call(_rectified, *operands, *geometry)


def _rectified(images: Any, filters: Any, bias: Any, *geometry: Any) -> Any:
    """oneDNN's convolution with its relu where no NaN can come of the operands, else with ATen's."""
    sums = [operand.sum().item() for operand in (images, filters, bias)]
    if math.isfinite(sum(sums)):
        return _convolve(images, filters, bias, *geometry, "relu", (), "")
    return _convolve(images, filters, bias, *geometry, "none", (), "").relu_()


def packing(node: Any) -> Any:
    """The numbers by which the filter of a ``_BiasedConv2D`` on a host is packed: padding, strides,
    dilations, batch and lengths of the images; None where it cannot be, or is too small to gain.

    They are those of the convolution that oneDNN is asked for: a filter in the order that another one reads
    is put into its order in every step, one number at a time.
    """
    if not (is_channels_last(node.attributes["data_format"]) and _suits_onednn(node)):
        return None
    if node.attributes.get("direct", False):
        return None
    seen = arrange(Geometry(node), node.static_shape(0), node.static_shape(1), False)
    if seen is None or seen.groups > 1 or seen.kernel != seen.given_kernel:
        return None
    if not machine.current().packs(math.prod(seen.kernel), 4):
        return None
    if is_row(node.dtype(0), machine.current().profile, seen):
        positions = seen.image[0] * math.prod(seen.counts)
        return (*seen.padding, 1, 1, *seen.dilations, 1, 1, positions)
    return (*seen.padding, *seen.strides, *seen.dilations, seen.image[0], *seen.lengths)


def _pack(weights: Any, numbers: Any) -> Any:
    (filters,) = weights
    dims = (numbers[6], filters.shape[1], *numbers[7:])
    return (reordered_filter(filters, numbers[:2], numbers[2:4], numbers[4:6], dims),)


FORMS["filter"] = Form(
    lambda dims, numbers: [dims],  # as the program has it: the value is for the kernel alone
    lambda weights, numbers: (weights.permute(3, 2, 0, 1),),
    _pack,
)


@biased_conv2d_op.kernel(CPU, GPU)
def _(node: Any, env: Any) -> Any:
    """`packed`: the filter comes in the form "filter" of `packed_weights.py`, for oneDNN alone."""
    return _small(node, env) or _usual(node, env, node.attributes["activation"])


def _small(node: Any, env: Any) -> Any:
    """The kernel where images are small enough for machine code; None elsewhere."""
    if not node.attributes.get("direct"):
        return None
    seen = arrange(Geometry(node), node.static_shape(0), node.static_shape(1), False)
    if seen is None:
        return None
    activation = node.attributes["activation"]
    within = activation if activation == "Relu" else ""  # what comes before the sums are stored
    usual = functools.partial(_usual, node, env, within)
    found = small_convolution(node, "results", seen, usual, biased=True, rectified=bool(within))
    if found is None or activation == within:
        return found
    activate, summed = ACTIVATED[activation], found
    return lambda *inputs: activate(summed(*inputs))


def _usual(node: Any, env: Any, activation: str) -> Any:
    convolution = conv2d_op.kernels[env.device_type](node, env)
    last = is_channels_last(node.attributes["data_format"])
    if type(convolution) is Call and env.device.type == "cpu" and _suits_onednn(node):
        return _with_bias(convolution, node, node.attributes.get("packed", False))
    assert callable(convolution)
    activate = ACTIVATED[activation]

    def run(x: Any, kernel: Any, bias: Any) -> Any:
        return activate(convolution(x, kernel).add_(bias if last else bias.reshape(-1, 1, 1)))

    return run
