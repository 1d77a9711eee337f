"""A convolution with its bias and activation: one pass over the result.

Plans only: `rewriting/fusion.py` makes ``_BiasedConv2D`` of a Conv2D, the addition of a vector to its
channels, and Relu, Tanh or Sigmoid after that. oneDNN does all of it in the convolution's own pass; its tanh
is also ten times as fast as ATen's where MKL does not know the processor.
"""

from __future__ import annotations

import torch

from flowstone.framework import dtypes
from flowstone.framework.kernel import CPU, GPU, X2, Call
from flowstone.framework.operation import op
from flowstone.ops.convolution import FLOATS, IMAGE, conv2d_op
from flowstone.ops.matrices import ACTIVATED
from flowstone.ops.windows import is_channels_last

__all__: list[str] = []

biased_conv2d_op = op(
    "_BiasedConv2D",
    "input: T, filter: T, bias: T -> output: T",
    f"{IMAGE} ; activation: string = ''",
    T=FLOATS,
)
biased_conv2d_op.infer(conv2d_op.infer_function)
biased_conv2d_op.not_differentiable()


@biased_conv2d_op.kernel(CPU, GPU)
def _(node, env):
    convolution, activation = conv2d_op.kernels[env.device_type](node, env), node.attributes["activation"]
    last = is_channels_last(node.attributes["data_format"])
    by_onednn = env.device.type == "cpu" and node.dtype(0) is dtypes.float32
    if by_onednn and type(convolution) is Call and torch.backends.mkldnn.is_available():
        inner = convolution.arguments[0] if last else convolution
        x, kernel, _, strides, padding, dilations, groups = inner.arguments
        fused = Call(
            torch.ops.mkldnn._convolution_pointwise.default,
            x, kernel, X2, padding, strides, dilations, groups, activation.lower() or "none", (), "",
        )  # fmt: skip
        return Call(torch.permute, fused, convolution.arguments[1]) if last else fused
    activate = ACTIVATED[activation]

    def run(x, kernel, bias):
        return activate(convolution(x, kernel).add_(bias if last else bias.reshape(-1, 1, 1)))

    return run
