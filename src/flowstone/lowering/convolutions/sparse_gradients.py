"""Gradients of convolutions below a maximum over many positions: only what is not zero is multiplied.

    %2 = Conv2DBackpropInput(sizes, W, %0)    becomes    %2 = _SparseConv2DGradient(W, sizes, %0) by='images'
    %2 = Conv2DBackpropFilter(x, sizes, %0)   becomes    %2 = _SparseConv2DGradient(x, sizes, %0) by='filter'

where %0 is the gradient of a maximum over positions (`tf.reduce_max` over the words of a text, a pooling of
wide windows), or made of it by what keeps zeros. How many elements are zero is known in the step alone: equal
maxima all have a part of the gradient. Where they are many, or an operand is not finite, the node that was
there computes it. ``FLOWSTONE_PASSES=-skip_zero_gradients`` leaves all as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU
from flowstone.framework.declarations.operation import op
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.tensors.node import Node, PlanData
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import num_elements
from flowstone.lowering.convolutions.direct import arranged
from flowstone.native.networks import sparse_gradients as code
from flowstone.ops.networks.convolution_arrangement import Arrangement
from flowstone.rewriting.patterns import Replacement, rewrite

__all__ = ["LEAST", "skip_zero_gradients"]

_KINDS = {"Conv2DBackpropInput": "images", "Conv2DBackpropFilter": "filter"}
_SHARE = 1 / 16  # of elements that are expected not to be zero, at most
LEAST = 3e5  # multiplications of a plain gradient, from which it pays
_KEEP_ZEROS = {
    **dict.fromkeys(("Reshape", "Squeeze", "ExpandDims", "Cast", "RealDiv"), (0,)),
    **dict.fromkeys(("ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "LeakyReluGrad"), (0,)),
    **dict.fromkeys(("SoftplusGrad", "SoftsignGrad"), (0,)),
    **dict.fromkeys(("TanhGrad", "SigmoidGrad"), (1,)),
    "Mul": (0, 1),
}
"""Of these the inputs whose zeros are zeros of the result."""
_POOLINGS = {"MaxPoolGrad": 2, "MaxPoolGradV2": 2, "_MaxPoolGradAtPlaces": 1}
"""Of these the input that holds the gradient of the maxima."""
_STEPS = 12  # of nodes that are looked through


class _Replaced(PlanData):
    """The node that computes the same of all elements."""

    __slots__ = ("node",)

    def __init__(self, node: PlanNode) -> None:
        self.node = node


_declaration = op(
    "_SparseConv2DGradient",
    "given: T, sizes: int32, out_backprop: T -> output: T",
    "by: string in ['images', 'filter']",
    T=[dtypes.float32, dtypes.float64],
)
_declaration.cost(lambda node: 2 * _SHARE * _multiplications(_arranged(node)))
_declaration.infer(lambda node: node.attributes["replaced"].node.outputs[0].dims)
_declaration.not_differentiable()


@_declaration.kernel(CPU)
def _(node: Node, env: Any) -> Callable[..., torch.Tensor]:
    replaced: PlanNode = node.attributes["replaced"].node
    usual: Callable[..., torch.Tensor] = replaced.declaration.kernels[CPU](replaced, env)  # type: ignore[assignment]
    seen, by, dtype = _arranged(node), node.attributes["by"], node.outputs[0].dtype
    sparse = code.SparseGradient(by, dtype.name, _words(seen))

    def by_images(given: torch.Tensor, sizes: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        found = sparse(given.reshape(seen.kernel).permute(3, 0, 1, 2), dy)
        return usual(sizes, given, dy) if found is None else found.view(seen.given_image)

    def by_filter(given: torch.Tensor, sizes: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        found = sparse(given, dy)
        if found is None:
            return usual(given, sizes, dy)
        return found.permute(1, 2, 3, 0).reshape(seen.given_kernel)

    return by_images if by == "images" else by_filter


def _arranged(node: Any) -> Arrangement:
    replaced: PlanNode = node.attributes["replaced"].node
    seen = arranged(replaced, _KINDS[replaced.type])
    assert seen is not None
    return seen


def _words(seen: Arrangement) -> dict[str, int]:
    batch, height, width, channels = seen.image
    numbers = {
        "batch": batch, "height": height, "width": width, "channels": channels,
        "rows": seen.counts[0], "columns": seen.counts[1], "outputs": seen.kernel[3],
        "taps_down": seen.kernel[0], "taps_across": seen.kernel[1],
        "stride_down": seen.strides[0], "stride_across": seen.strides[1], "dilation_down": seen.dilations[0],
        "above": seen.before[0], "beside": seen.before[1],
    }  # fmt: skip
    return numbers


def _multiplications(seen: Arrangement) -> float:
    return float(seen.image[0] * math.prod(seen.counts) * math.prod(seen.kernel))


def skip_zero_gradients(subgraph: Subgraph) -> None:
    """Replaces gradients of convolutions by those of the elements that are not zero, where these are few."""
    if not code.is_on() or not any(node.type in _KINDS for node in subgraph.nodes):
        return

    def rule(node: PlanNode) -> Replacement | None:
        kind = _KINDS.get(node.type)
        if kind is None or node.attributes.get("direct") or not _suits(node, kind):
            return None
        sizes, given = node.inputs[:2] if kind == "images" else node.inputs[1::-1]
        attributes: dict[str, Any] = {"T": given.dtype.base_dtype, "by": kind, "replaced": _Replaced(node)}
        operands = [given, sizes, node.inputs[2]]
        new = subgraph.new_node(_declaration, operands, attributes, like=node)
        return Replacement(list(new.outputs), "its gradient is one of maxima, of which few are", (new,))

    rewrite(subgraph, "skip_zero_gradients", rule)


def _suits(node: PlanNode, kind: str) -> bool:
    if node.outputs[0].dtype.base_dtype not in (dtypes.float32, dtypes.float64):
        return False
    if _share(node.inputs[2]) > _SHARE:
        return False
    seen = arranged(node, kind)
    if seen is None or not seen.geometry.last or seen.geometry.rank != 4 or seen.groups > 1:
        return False
    is_matrix = math.prod(seen.kernel[:2]) == 1  # of a product, which is as fast
    return seen.dilations[1] == 1 and not is_matrix and _multiplications(seen) >= LEAST


def _share(x: PlanOutput, steps: int = _STEPS) -> float:
    """The share of elements that are not zero, as far as is known: 1 if nothing is."""
    node: PlanNode = x.op
    size = num_elements(x.dims)
    if not size or not steps:
        return 1.0
    if node.type == "Equal":  # to the maxima
        return min(num_elements(y.dims) or size for y in node.inputs) / size
    if node.type in _POOLINGS:
        return (num_elements(node.inputs[_POOLINGS[node.type]].dims) or size) / size
    inputs = [node.inputs[i] for i in _KEEP_ZEROS.get(node.type, ())]
    return min([_share(y, steps - 1) for y in inputs], default=1.0)
