"""Descent by a gradient that is a matrix product: ``var -= alpha * a b`` in BLAS's own accumulation.

Plans only: `rewriting/update_fusion.py` makes these nodes of a product and the update that alone takes it.
The gradient is never made, which for the weights of a layer with few examples is most of the step's memory
traffic: 7 ms instead of 49 for 9216 x 4096 weights and 16 examples.

Weights of few columns are kept column by column from the first such step on: BLAS then needs a quarter of the
time (24 µs instead of 88 for 784 x 10 weights and 100 examples).
"""

from __future__ import annotations

import torch

from flowstone.framework.kernel import CPU, GPU, Call, Input
from flowstone.framework.operation import op
from flowstone.ops.elementwise import FLOATS
from flowstone.ops.matrices import is_narrow

__all__: list[str] = []


def _update(transpose_a, transpose_b, by_columns):
    def descend(variable, alpha, a, b):
        tensor = variable.tensor
        if by_columns and tensor.is_contiguous():
            tensor = variable.tensor = tensor.t().contiguous().t()
        a, b = a.t() if transpose_a else a, b.t() if transpose_b else b
        if isinstance(alpha, torch.Tensor):
            tensor.addmm_(a * -alpha, b)
        else:
            tensor.addmm_(a, b, alpha=-alpha)
        return variable

    return descend


def _kernel(node, env):
    value = node.constant(1)
    alpha = Input(1)
    if value is not None:
        alpha = value.item()
    elif env.device.type == "cpu":
        alpha = Call(torch.Tensor.item, Input(1))
    transpose_a, transpose_b = node.attributes["transpose_a"], node.attributes["transpose_b"]
    rows, columns = node.static_shape(2)[transpose_a], node.static_shape(3)[not transpose_b]
    update = _update(transpose_a, transpose_b, env.device.type == "cpu" and is_narrow(rows, columns))
    return Call(update, Input(0), alpha, Input(2), Input(3))


_ATTRIBUTES = "transpose_a: bool = false ; transpose_b: bool = false"
on_reference = op(
    "_ApplyProduct",
    "var: Ref(T), alpha: T, a: T, b: T -> out: Ref(T)",
    _ATTRIBUTES,
    T=FLOATS,
    mutates=[0],
    aliases=[0],
)
on_reference.infer(lambda node: node.dims(0))
on_resource = op(
    "_ResourceApplyProduct",
    "var: resource, alpha: T, a: T, b: T ->",
    _ATTRIBUTES,
    T=FLOATS,
    mutates=[0],
    stateful=True,
)
on_resource.infer(lambda node: None)
for _declaration in (on_reference, on_resource):
    _declaration.kernel(CPU, GPU)(_kernel)
    _declaration.not_differentiable()
