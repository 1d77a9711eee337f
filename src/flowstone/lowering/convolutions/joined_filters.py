"""What convolutions of the same images are joined by: their filters side by side, and their gradients.

Plans only, on a host, of float32 with channels last: `joined_convolutions.py` says where.

    _JoinedFilters   filters [height, width, in, outₖ] as one [height, width, in, Σ outₖ], in memory by
                     outputs, as `filter_layout.py` keeps filters
    _JoinedReluGrad  gradients of relus, each by its part of the channels of one result, without a copy
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU
from flowstone.framework.declarations.operation import op
from flowstone.framework.types import dtypes

__all__: list[str] = []

_relu_gradient = torch.ops.aten.leaky_relu_backward.grad_input


def _side_by_side(shapes: list[Any]) -> tuple[int | None, ...]:
    """The dims of tensors that are joined by their last dimension."""
    return (*shapes[0][:-1], sum(dims[-1] for dims in shapes))


filters_op = op("_JoinedFilters", "filters: N*T -> output: T", "N: int >= 2", T=[dtypes.float32])
filters_op.infer(lambda node: _side_by_side([x.dims for x in node.inputs]))
filters_op.not_differentiable()


@filters_op.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    def run(*filters: torch.Tensor) -> torch.Tensor:
        return torch.cat([each.permute(3, 0, 1, 2) for each in filters]).permute(1, 2, 3, 0)

    return run


relu_gradient_op = op(
    "_JoinedReluGrad",
    "gradients: N*T, features: N*T -> backprops: T",
    "N: int >= 2",
    T=[dtypes.float32],
    takes_result=1,
)
relu_gradient_op.infer(lambda node: _side_by_side([x.dims for x in node.inputs[: node.attributes["N"]]]))
relu_gradient_op.not_differentiable()


@relu_gradient_op.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    number, dims = node.attributes["N"], node.outputs[0].dims
    channels = [x.dims[-1] for x in node.inputs[:number]]
    places = list(zip(accumulate(channels, initial=0), channels))

    def run(*inputs: torch.Tensor) -> torch.Tensor:
        joined = inputs[0].new_empty(dims)
        for gradient, feature, place in zip(inputs, inputs[number:], places):
            _relu_gradient(gradient, feature, 0, False, grad_input=joined.narrow(-1, *place))
        return joined

    return run
