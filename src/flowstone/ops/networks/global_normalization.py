"""The batch normalisation of old graphs, whose moments are inputs: an op and the op of its gradients.

``result = (t - m) / sqrt(v + epsilon)``, times `gamma` if it scales afterwards, plus `beta`; t is [batch,
height, width, channels], all others are [channels].
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.windows import require_rank

_ATTRIBUTES = "variance_epsilon: float ; scale_after_normalization: bool"
_TYPES = (*dtypes.NUMBERS, dtypes.bfloat16)
_INSTEAD = (9, "tf.nn.batch_normalization()")

normalization_op = op(
    "BatchNormWithGlobalNormalization",
    "t: T, m: T, v: T, beta: T, gamma: T -> result: T",
    _ATTRIBUTES,
    T=_TYPES,
    deprecated=_INSTEAD,
    cost=4.0,
)
normalization_grad_op = op(
    "BatchNormWithGlobalNormalizationGrad",
    "t: T, m: T, v: T, gamma: T, backprop: T -> dx: T, dm: T, dv: T, db: T, dg: T",
    _ATTRIBUTES,
    T=_TYPES,
    deprecated=_INSTEAD,
    cost=8.0,
)


def _channels(node: Node, images: tuple[int, ...], vectors: tuple[int, ...]) -> tuple[int | None, ...]:
    """The dims of the images, with what the vectors and other images tell."""
    dims = [require_rank(node.dims(i), 4) for i in images]
    known = [require_rank(node.dims(i), 1)[0] for i in vectors] + [each[3] for each in dims]
    channels = {n for n in known if n is not None}
    if len(channels) > 1:
        raise ValueError(f"Dimensions must be equal, but are {' and '.join(map(str, sorted(channels)))}")
    sizes = [next((each[axis] for each in dims if each[axis] is not None), None) for axis in range(3)]
    return (*sizes, next(iter(channels), None))


@normalization_op.infer
def _(node: Node) -> Shapes:
    return _channels(node, (0,), (1, 2, 3, 4))


@normalization_grad_op.infer
def _(node: Node) -> Shapes:
    dims = _channels(node, (0, 4), (1, 2, 3))
    return [dims, *[(dims[3],)] * 4]


def _check(t: torch.Tensor, *vectors: torch.Tensor) -> None:
    if t.dim() != 4:
        raise invalid(f"input must be 4-dimensional {list(t.shape)}")
    for vector in vectors:
        if list(vector.shape) != [t.shape[3]]:
            raise invalid(f"moments, offset and scale must be [{t.shape[3]}], not {list(vector.shape)}")


def _require_float(node: Node) -> None:
    if not node.dtype(0).is_floating:
        raise invalid(f"{node.declaration.name} computes floating-point numbers, not {node.dtype(0).name}")


@normalization_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    _require_float(node)
    epsilon, scales = node.attributes["variance_epsilon"], node.attributes["scale_after_normalization"]

    def run(
        t: torch.Tensor, m: torch.Tensor, v: torch.Tensor, beta: torch.Tensor, gamma: Any
    ) -> torch.Tensor:
        _check(t, m, v, beta, gamma)
        factor = torch.rsqrt(v + epsilon)
        if scales:
            factor *= gamma
        return (t - m).mul_(factor).add_(beta)

    return run


@normalization_grad_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    _require_float(node)
    epsilon, scales = node.attributes["variance_epsilon"], node.attributes["scale_after_normalization"]

    def run(
        t: torch.Tensor, m: torch.Tensor, v: torch.Tensor, gamma: torch.Tensor, dy: torch.Tensor
    ) -> list[torch.Tensor]:
        _check(t, m, v, gamma)
        if dy.shape != t.shape:
            raise invalid(f"input and backprop differ: {list(t.shape)}, {list(dy.shape)}")
        inverse = torch.rsqrt(v + epsilon)
        factor = inverse * gamma if scales else inverse
        offsets = dy.sum((0, 1, 2))
        moments = (dy * (t - m)).sum((0, 1, 2))
        dv = -0.5 * moments * factor / (v + epsilon)
        scale = moments * inverse if scales else torch.zeros_like(gamma)
        return [dy * factor, -offsets * factor, dv, offsets, scale]

    return run


@normalization_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    t, m, v, _, gamma = op.inputs
    shared = {key: op.attributes[key] for key in ("variance_epsilon", "scale_after_normalization")}
    return F.BatchNormWithGlobalNormalizationGrad(t, m, v, gamma, dy, **shared)


normalization_grad_op.no_gradient()
