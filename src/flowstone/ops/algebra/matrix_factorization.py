"""What factorising a sparse matrix needs: MaskedMatmul, WALSComputePartialLhsAndRhs.

A product of matrices is computed at some places alone. Weighted alternating least squares (Hu, Koren and
Volinsky, 2008) solves a linear system for every row; the second op sums up what the row's entries add to it.
"""

from __future__ import annotations

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid

masked_matmul_op = op(
    "MaskedMatmul",
    "a: float, b: float, mask_indices: int64, transpose_a: bool, transpose_b: bool -> prod_values: float",
)
masked_matmul_op.no_gradient()


@masked_matmul_op.infer
def _(node: Node) -> Shapes:
    return [None]


def _require_rank(value: torch.Tensor, name: str, rank: int) -> None:
    if value.dim() != rank:
        kind = ("a scalar", "a vector", "a matrix")[rank]
        raise invalid(f"{name} must be {kind}, got the shape {list(value.shape)}")


def _require_pairs(indices: torch.Tensor, name: str) -> None:
    _require_rank(indices, name, 2)
    if indices.shape[1] != 2:
        raise invalid(f"{name} must be [entries, 2], got the shape {list(indices.shape)}")


def _require_below(index: torch.Tensor, count: int, name: str) -> None:
    if len(index) and not (int(index.min()) >= 0 and int(index.max()) < count):
        raise invalid(f"{name} must be between 0 and {count}")


@masked_matmul_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def run(
        a: torch.Tensor,
        b: torch.Tensor,
        indices: torch.Tensor,
        transpose_a: torch.Tensor,
        transpose_b: torch.Tensor,
    ) -> torch.Tensor:
        _require_rank(a, "a", 2)
        _require_rank(b, "b", 2)
        _require_pairs(indices, "mask_indices")
        _require_rank(transpose_a, "transpose_a", 0)
        _require_rank(transpose_b, "transpose_b", 0)
        rows = a.t() if transpose_a else a
        columns = b if transpose_b else b.t()
        if rows.shape[1] != columns.shape[1]:
            raise invalid(f"the matrices {list(a.shape)} and {list(b.shape)} cannot be multiplied")
        _require_below(indices[:, 0], rows.shape[0], "rows of mask_indices")
        _require_below(indices[:, 1], columns.shape[0], "columns of mask_indices")
        return (rows[indices[:, 0]] * columns[indices[:, 1]]).sum(1)

    return run


masked_matmul_op.check_complete()

wals_partial_op = op(
    "WALSComputePartialLhsAndRhs",
    "factors: float, factor_weights: float, unobserved_weights: float, input_weights: float, "
    "input_indices: int64, input_values: float, entry_weights: float, input_block_size: int64, "
    "input_is_transpose: bool -> partial_lhs: float, partial_rhs: float",
)
wals_partial_op.no_gradient()


@wals_partial_op.infer
def _(node: Node) -> Shapes:
    return [None, None]


def _require_weights(factor_weights: torch.Tensor, weights: torch.Tensor, entries: torch.Tensor) -> None:
    """Either every entry has a weight, or every row and every factor."""
    if len(entries) and not (len(factor_weights) or len(weights)):
        return
    if len(entries) or not (len(factor_weights) and len(weights)):
        raise invalid("either entry_weights or both input_weights and factor_weights must be given")


@wals_partial_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def run(
        factors: torch.Tensor,
        factor_weights: torch.Tensor,
        unobserved: torch.Tensor,
        weights: torch.Tensor,
        indices: torch.Tensor,
        values: torch.Tensor,
        entry_weights: torch.Tensor,
        block_size: torch.Tensor,
        is_transpose: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _require_rank(factors, "factors", 2)
        for name, vector in (
            ("factor_weights", factor_weights), ("input_weights", weights),
            ("input_values", values), ("entry_weights", entry_weights),
        ):  # fmt: skip
            _require_rank(vector, name, 1)
        _require_rank(unobserved, "unobserved_weights", 0)
        _require_rank(block_size, "input_block_size", 0)
        _require_rank(is_transpose, "input_is_transpose", 0)
        _require_pairs(indices, "input_indices")
        if len(indices) != len(values):
            raise invalid(f"there are {len(indices)} input_indices, but {len(values)} input_values")
        _require_weights(factor_weights, weights, entry_weights)
        rows, columns = indices.flip(1).unbind(1) if is_transpose else indices.unbind(1)
        size = int(block_size)
        _require_below(rows, size, "rows of input_indices")
        _require_below(columns, len(factors), "columns of input_indices")
        if len(entry_weights):
            entries = _entry_weights(entry_weights, len(values))
        else:
            _require_below(rows, len(weights), "rows of input_indices")
            _require_below(columns, len(factor_weights), "columns of input_indices")
            entries = weights[rows] * factor_weights[columns]
        return _sums(factors[columns], entries, unobserved, values, rows, size)

    return run


def _entry_weights(weights: torch.Tensor, count: int) -> torch.Tensor:
    if len(weights) != count:
        raise invalid(f"there are {count} entries, but {len(weights)} entry_weights")
    return weights


def _sums(
    factors: torch.Tensor,
    weights: torch.Tensor,
    unobserved: torch.Tensor,
    values: torch.Tensor,
    rows: torch.Tensor,
    size: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """For each row, the sums of w f f' [size, n, n] and of (w + unobserved) v f [size, n]."""
    count = factors.shape[1]
    weighted = factors * weights[:, None]
    left = factors.new_zeros(size, count, count)
    left.index_add_(0, rows, weighted[:, :, None] * factors[:, None])
    right = factors.new_zeros(size, count)
    right.index_add_(0, rows, (weighted + unobserved * factors) * values[:, None])
    return left, right


wals_partial_op.check_complete()
