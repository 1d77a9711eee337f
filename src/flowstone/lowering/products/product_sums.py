"""Sums of matrix products as few products of stacked operands.

Plans only. `loop_accumulators.py` lets a loop hand on a `ProductSum` where it handed on the sum.
Its operands are kept until they are larger than their product, so memory stays bounded however long the loop.
`sums.py` stacks the operands of sums outside loops.

A large first operand that is transposed is stacked column by column: its transpose then lies row by row, as
the product reads it. From rows oneDNN would first make a copy of that kind, which costs a tenth of the
product's time (1300 x 1000 by 1000 x 2600: 17.4 instead of 15.8 ms, stacking 0.1 instead of 0.4) and its size
again. Of small operands (`Machine.stacks_by_columns`) it costs what it saves, and more where BLAS
multiplies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, X2, Call, Input
from flowstone.framework.declarations.operation import op
from flowstone.framework.machine.machine import Machine
from flowstone.ops.algebra.matrices import product_of_operands

__all__: list[str] = []

_STACKED = 2  # operands are multiplied when they are so many times larger than the product


def stack_by_columns(matrices: Sequence[Any]) -> Any:
    """The matrices one below the other, kept column by column."""
    return torch.cat([x.t() for x in matrices], 1).t()


class ProductSum:
    """``initial + a₁'b₁ + a₂'b₂ + …``, the products being of operands transposed or not."""

    __slots__ = ("_a", "_b", "_initial", "_kept", "_machine", "_product", "_total", "_transposed")

    def __init__(self, initial: Any, transpose_a: bool, transpose_b: bool, machine: Machine) -> None:
        self._machine, self._product = machine, product_of_operands(machine)
        self._initial, self._transposed = initial, (transpose_a, transpose_b)
        self._total: Any = None
        self._a: list[Any] = []
        self._b: list[Any] = []
        self._kept = 0  # elements

    def add(self, a: Any, b: Any) -> ProductSum:
        """Adds the product of these; they must not be changed afterwards."""
        self._a.append(a)
        self._b.append(b)
        self._kept += a.numel() + b.numel()
        if self._kept > _STACKED * self._initial.numel():
            self._multiply()
        return self

    def _multiply(self) -> None:
        transpose_a, transpose_b = self._transposed
        if not transpose_a:
            a = torch.cat(self._a, 1)
        elif not self._machine.stacks_by_columns(len(self._a) * self._a[0].numel()):
            a = torch.cat(self._a).t()
        else:
            a = stack_by_columns(self._a).t()
        b = torch.cat(self._b, 1).t() if transpose_b else torch.cat(self._b)
        product = self._product(a, b)
        self._total = product if self._total is None else self._total.add_(product)
        self._a, self._b, self._kept = [], [], 0

    def total(self, from_zero: bool) -> Any:
        """The sum so far; `from_zero`: the initial value is known to be zero."""
        if self._a:
            self._multiply()
        if self._total is None:
            return self._initial.clone()
        return self._total if from_zero else self._total.add_(self._initial)


stack_op = op("_StackByColumns", "values: N*T -> output: T", T=None)
stack_op.not_differentiable()
stack_op.kernel(CPU, GPU)(
    lambda node, env: Call(stack_by_columns, [Input(i) for i in range(len(node.inputs))])
)


@stack_op.infer
def _(node: Any) -> Any:
    shapes = [node.static_shape(i) for i in range(len(node.inputs))]
    if None in shapes:
        return (None, None)
    return sum(shape[0] for shape in shapes), shapes[0][1]


product_sum_op = op(
    "_ProductSum",
    "initial: T -> handle: resource",
    "transpose_a: bool = false ; transpose_b: bool = false",
    T=None,
    stateful=True,
    capturable=True,
    keeps=[0],
    container="sum",
)
product_sum_op.infer(lambda node: ())
product_sum_op.not_differentiable()


@product_sum_op.kernel(CPU, GPU)
def _(node: Any, env: Any) -> Any:
    return Call(ProductSum, X0, node.attributes["transpose_a"], node.attributes["transpose_b"], env.machine)


add_op = op(
    "_ProductSumAdd",
    "handle: resource, a: T, b: T -> same: resource",
    T=None,
    stateful=True,
    capturable=True,
    mutates=[0],
    keeps=[1, 2],
    container="add",
    cost=work.added_product,
)
add_op.infer(lambda node: ())
add_op.not_differentiable()
add_op.kernel(CPU, GPU)(lambda node, env: Call(ProductSum.add, X0, X1, X2))

total_op = op(
    "_ProductSumTotal",
    "handle: resource -> sum: T",
    "T: type ; shape: shape ; from_zero: bool = false",
    stateful=True,
    capturable=True,
    container="total",
)
total_op.infer(lambda node: node.attributes["shape"])
total_op.not_differentiable()
total_op.kernel(CPU, GPU)(lambda node, env: Call(ProductSum.total, X0, node.attributes["from_zero"]))
