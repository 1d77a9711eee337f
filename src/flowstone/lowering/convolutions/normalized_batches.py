"""Batch normalisation with what follows it, and its gradient, by `native/networks/normalization_kernels.py`.

Plans only, made by `batch_normalization.py`: of float32 images with channels last, by the moments of the
batch. ATen reads the images three times and writes them once, and twice more for an activation; the machine
code reads them twice and writes them once, and adds up in float64. The gradient computes the activation's
sign again, where a plan would read what the activation gave.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, Call, Input
from flowstone.framework.declarations.operation import op
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import num_elements
from flowstone.native.networks import normalization_kernels

__all__ = ["gradient_op", "normalized_op"]


def _elements(node: Any) -> float:
    return float(num_elements(node.outputs[0].dims) or 0)


normalized_op = op(
    "_NormalizedBatch",
    "x: T, scale: T, offset: T, added: NA*T -> y: T, mean: T, variance: T, corrected: T",
    "epsilon: float ; activation: string in ['', 'Relu', 'Relu6'] = '' ; NA: int >= 0",
    T=[dtypes.float32],
)
normalized_op.cost(lambda node: 8.0 * _elements(node))
normalized_op.infer(lambda node: [node.dims(0), *[node.dims(1)] * 3])
normalized_op.not_differentiable()


@normalized_op.kernel(CPU)
def _(node: Any, env: Any) -> Call:
    epsilon, activation = node.attributes["epsilon"], node.attributes["activation"]
    normalization_kernels.prepare(_elements(node), activation, bool(node.attributes["NA"]))

    def run(overwritten: int, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x, scale, offset, *added = given = [x.contiguous() for x in inputs]
        y = None if overwritten < 0 else given[overwritten]
        more = added[0] if added else None
        y, moments = normalization_kernels.normalize(x, scale, offset, epsilon, activation, more, y)
        return y, *moments

    return _or_in_place(run, node, (0, 3))


def _or_in_place(run: Callable[..., Any], node: Any, places: tuple[int, ...]) -> Call:
    """The call, which may leave its first result in one of its inputs."""
    words = [Input(i) for i in range(len(node.inputs))]
    call = Call(functools.partial(run, -1), *words)
    for i in places:
        if i < len(words):
            call.or_in_place(i, functools.partial(run, i), *words)
    return call


gradient_op = op(
    "_NormalizedBatchGrad",
    "dy: T, x: T, scale: T, offset: T, mean: T, variance: T -> dx: T, d_scale: T, d_offset: T",
    "epsilon: float ; activation: string in ['', 'Relu', 'Relu6'] = ''",
    T=[dtypes.float32],
)
gradient_op.cost(lambda node: 12.0 * _elements(node))
gradient_op.infer(lambda node: [node.dims(1), node.dims(2), node.dims(2)])
gradient_op.not_differentiable()


@gradient_op.kernel(CPU)
def _(node: Any, env: Any) -> Call:
    epsilon, activation = node.attributes["epsilon"], node.attributes["activation"]
    normalization_kernels.prepare(_elements(node), activation, is_gradient=True)

    def run(overwritten: int, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        dy, x, scale, offset, mean, variance = [x.contiguous() for x in inputs]
        dx = None if overwritten < 0 else (dy, x)[overwritten]
        moments = mean, variance, epsilon, activation
        return normalization_kernels.differentiate(dy, x, scale, offset, *moments, dx)

    return _or_in_place(run, node, (0, 1))
