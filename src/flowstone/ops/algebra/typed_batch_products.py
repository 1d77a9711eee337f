"""`BatchMatMulV3`: products of many matrices at a time, whose operands and result may differ in type.

Operands are brought to the type of the result, in which sums are taken."""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call, Environment, Input, Kernel
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import broadcast
from flowstone.ops.algebra.batch_matrices import (
    BATCH_ATTRIBUTES,
    adjoint,
    batch_gradients,
    batch_shape,
    batch_sums,
)
from flowstone.ops.algebra.matrices import TYPES, call_of, refuse

_OPERANDS = (*TYPES, dtypes.int16, dtypes.int8, dtypes.uint8)
_UNSIGNED = (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)
_RESULTS = (*(dtype for dtype in TYPES if dtype not in _UNSIGNED), dtypes.int16)

batch_matmul_v3_op = op(
    "BatchMatMulV3",
    "x: Ta, y: Tb -> output: Tout",
    BATCH_ATTRIBUTES,
    Ta=_OPERANDS,
    Tb=_OPERANDS,
    Tout=_RESULTS,
    cost=work.product,
)
batch_matmul_v3_op.infer(batch_shape(broadcast))


@batch_matmul_v3_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.attributes["Tout"]

    def operand(value: Input, i: int) -> Input | Call:
        is_adjoint = node.attributes["adj_x" if i == 0 else "adj_y"]
        return adjoint(value, dtype) if is_adjoint else value

    call = call_of(torch.matmul, operand(X0, 0), operand(X1, 1), dtype, env)

    def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.ndim < 2 or y.ndim < 2:
            refuse(x, y)
        result: torch.Tensor = call(x.to(dtype.torch), y.to(dtype.torch))
        return result

    return product


@batch_matmul_v3_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    x, y = op.inputs

    def product(a: Tensor, b: Tensor, **keywords: Any) -> Tensor:
        return F.BatchMatMulV3(a, b, Tout=dz.dtype.base_dtype, **keywords)

    dx, dy = batch_gradients(product, x, y, op.attributes["adj_x"], op.attributes["adj_y"], dz)
    return batch_sums(dx, dy, x, y)
