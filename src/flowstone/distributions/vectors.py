"""What distributions of vectors have in common: concentrations, covariances, and draws of counts."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.algebra.diagonals import matrix_set_diag
from flowstone.ops.algebra.matrices import matmul
from flowstone.ops.arrays.constants import range as number_range
from flowstone.ops.arrays.masks import sequence_mask
from flowstone.ops.arrays.shapes import expand_dims, reshape, shape
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.reductions import reduce_max
from flowstone.ops.randomness.random_choice import multinomial


def with_column(x: Tensor) -> Tensor:
    """x [..., 1]"""
    return x[..., None]


def covariance_of_shares(left: Tensor, right: Tensor, variance: Tensor) -> Tensor:
    """The matrices [..., k, k] of -left right, with the variances in the diagonals."""
    return matrix_set_diag(F.Neg(matmul(left[..., None], right[..., None, :])), variance)


def drawn_counts(logits: Tensor, totals: Tensor, n: Any, seed: int | None, dtype: Any) -> Tensor:
    """How often each class was drawn, [rows, n, k]: n times totals[row] draws from logits[row].

    Each row is drawn from as often as the largest total asks for; what a row's own total leaves out weighs
    nothing. The weights are summed at the places (row, draw, class), so that memory grows with the draws and
    not with their product by k.
    """
    rows, k = (shape(logits)[axis] for axis in (0, 1))
    most = F.Maximum(reduce_max(totals), 0)
    classes = reshape(multinomial(logits, n * most, seed=seed), [rows * n, most])
    weights = reshape(sequence_mask(totals, most, dtype=dtype), [rows, 1, most])
    weights = reshape(F.BroadcastTo(weights, [rows, n, most]), [rows * n, most])
    first = expand_dims(number_range(rows * n), -1) * k
    places = cast(classes, dtypes.int32) + first
    counts = F.UnsortedSegmentSum(weights, places, rows * n * k)
    return reshape(counts, [rows, n, k])
