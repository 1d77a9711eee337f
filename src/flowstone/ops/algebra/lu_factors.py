"""Lu: P A = L U of square matrices A [..., n, n], with a unit lower L and an upper U in one matrix.

The permutation p [..., n] says which row of A stands in each row of L U. What is made of factors: solutions,
inverses, and the matrices themselves.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework import dtypes
from flowstone.framework.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.node import Node
from flowstone.framework.operation import op
from flowstone.framework.shape import Dims
from flowstone.ops.algebra.inverses import TYPES
from flowstone.ops.algebra.matrix_shapes import check_square, cubic, invalid, square

lu_op = op(
    "Lu",
    "input: T -> lu: T, p: output_idx_type",
    "output_idx_type: type in [int32, int64] = int32",
    T=(*TYPES, dtypes.float16),
    cost=cubic(2 / 3),
    capturable=False,
)
lu_op.no_gradient()


@lu_op.infer
def _(node: Node) -> list[Dims]:
    dims = square(node.dims(0))
    return [dims, None if dims is None else dims[:-1]]


@lu_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    index_type = node.attributes["output_idx_type"].torch
    is_half = node.dtype(0) is dtypes.float16

    def factor(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        check_square(x)
        factors, pivots, info = torch.linalg.lu_factor_ex(x.float() if is_half else x)
        if bool(info.any()) or bool(torch.isnan(x).any()):
            raise invalid("Input is not invertible.")
        exchanges = torch.lu_unpack(factors, pivots, unpack_data=False)[0]
        order = exchanges.real.argmax(-2) if x.numel() else pivots.reshape(x.shape[:-1])
        return (factors.half() if is_half else factors), order.to(index_type)

    return factor


def lu(input: Any, output_idx_type: Any = dtypes.int32, name: str | None = None) -> Any:
    """The factors P A = L U of square matrices [..., n, n], a named tuple.

    Returns:
        lu: [..., n, n], U in the upper triangle, L without its diagonal of ones below.
        p: [..., n] of `output_idx_type`, the row of A that stands in each row of L U.

    InvalidArgumentError in the step for a singular matrix.
    """
    return lu_op.several(input, output_idx_type=output_idx_type, name=name)
