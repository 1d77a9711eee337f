"""Lu: P A = L U of square matrices A [..., n, n], with a unit lower L and an upper U in one matrix.

The permutation p [..., n] says which row of A stands in each row of L U. What is made of factors: solutions,
inverses, and the matrices themselves.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.algebra.inverses import TYPES
from flowstone.ops.algebra.matrix_gradients import product
from flowstone.ops.algebra.matrix_shapes import check_square, cubic, invalid, square
from flowstone.ops.control.checks import assert_equal

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
        order = _order(pivots.reshape(x.shape[:-2].numel(), x.shape[-1])).reshape(x.shape[:-1])
        return (factors.half() if is_half else factors), order.to(index_type)

    return factor


_FEW = 8  # matrices, whose rows are exchanged one by one


def _order(pivots: torch.Tensor) -> torch.Tensor:
    """The order that LAPACK's exchanges [b, n] leave: row i with row ``pivots[i] - 1``, from the first on."""
    count, size = pivots.shape
    if count <= _FEW:
        orders = []
        for exchanges in pivots.tolist():
            order = list(range(size))
            for i, other in enumerate(exchanges):
                order[i], order[other - 1] = order[other - 1], order[i]
            orders.append(order)
        return torch.tensor(orders, dtype=torch.int64, device=pivots.device).reshape(count, size)
    columns = torch.arange(size, device=pivots.device)[:, None].repeat(1, count)  # [n, b]
    others = (pivots.T - 1).long().contiguous()
    for i in range(size):
        at = others[i : i + 1]
        moved = columns.gather(0, at)
        columns.scatter_(0, at, columns[i : i + 1].clone())
        columns[i : i + 1] = moved
    return columns.T


def lu(input: Any, output_idx_type: Any = dtypes.int32, name: str | None = None) -> Any:
    """The factors P A = L U of square matrices [..., n, n], a named tuple.

    Returns:
        lu: [..., n, n], U in the upper triangle, L without its diagonal of ones below.
        p: [..., n] of `output_idx_type`, the row of A that stands in each row of L U.

    InvalidArgumentError in the step for a singular matrix.
    """
    return lu_op.several(input, output_idx_type=output_idx_type, name=name)


def lu_reconstruct(
    lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The matrices A [..., n, n] whose factors these are; see `lu`."""
    with get_default_graph().name_scope(name or "lu_reconstruct"):
        factors, order = _factors(lower_upper, perm, validate_args)
        lower, upper = _unit_lower(factors), F.MatrixBandPart(factors, 0, -1)
        return product(order, product(lower, upper), adjoint_a=True)


def lu_solve(
    lower_upper: Any, perm: Any, rhs: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The X [..., n, k] with A X = rhs, given the factors of A; see `lu`.

    With `validate_args` the step checks that `perm` is a permutation.
    """
    with get_default_graph().name_scope(name or "lu_solve"):
        factors, order = _factors(lower_upper, perm, validate_args)
        b = convert_to_tensor(rhs, factors.dtype, name="rhs")
        if b.dims is not None and len(b.dims) < 2:
            raise ValueError(f"`rhs` must have at least 2 dimensions (saw: {len(b.dims)}).")
        inner = F.MatrixTriangularSolve(_unit_lower(factors), product(order, b))
        return F.MatrixTriangularSolve(factors, inner, lower=False)


def lu_matrix_inverse(
    lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The inverses of the matrices whose factors these are; see `lu`."""
    with get_default_graph().name_scope(name or "lu_matrix_inverse"):
        factors, order = _factors(lower_upper, perm, validate_args)
        inner = F.MatrixTriangularSolve(_unit_lower(factors), order)
        return F.MatrixTriangularSolve(factors, inner, lower=False)


def _factors(lower_upper: Any, perm: Any, validate_args: bool) -> tuple[Tensor, Tensor]:
    """The factors, and the permutation as matrices. ValueError for ranks that do not fit."""
    factors = convert_to_tensor(lower_upper, name="lower_upper")
    order = convert_to_tensor(perm, dtypes.int32, name="perm")
    if factors.dims is not None and len(factors.dims) < 2:
        raise ValueError(f"`lower_upper` must have at least 2 dimensions (saw: {len(factors.dims)}).")
    if factors.dims is not None and order.dims is not None and len(order.dims) != len(factors.dims) - 1:
        raise ValueError("`rank(lower_upper)` must equal `rank(perm) + 1`")
    size = F.StridedSlice(F.Shape(factors), [-1], [0], [1], end_mask=1, shrink_axis_mask=1)
    number = factors.dtype.as_numpy_dtype
    matrices = F.OneHot(order, size, number(1), number(0))
    if validate_args:
        counts = F.Sum(matrices, [-2])
        checks = [assert_equal(counts, F.OnesLike(counts), message="`perm` is no permutation")]
        with get_default_graph().control_dependencies(checks):
            matrices = F.Identity(matrices)
    return factors, matrices


def _unit_lower(factors: Tensor) -> Tensor:
    lower = F.MatrixBandPart(factors, -1, 0)
    return F.MatrixSetDiag(lower, F.OnesLike(F.MatrixDiagPart(lower)))
