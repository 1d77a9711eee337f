"""The ops of TensorFlow's first versions that were for batches of matrices, beside those for one matrix.

Those for one take batches too since, and each of these computes the same. None has a gradient.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.types import dtypes
from flowstone.ops.algebra.cholesky_factors import cholesky_grad_op, cholesky_op
from flowstone.ops.algebra.diagonals import (
    matrix_band_part_op,
    matrix_diag_op,
    matrix_diag_part_op,
    matrix_set_diag_op,
)
from flowstone.ops.algebra.eigenvalues import self_adjoint_eig_op, self_adjoint_eig_v2_op
from flowstone.ops.algebra.inverses import TYPES, matrix_determinant_op, matrix_inverse_op
from flowstone.ops.algebra.least_squares import matrix_solve_ls_op
from flowstone.ops.algebra.linear_systems import matrix_solve_op, matrix_triangular_solve_op
from flowstone.ops.algebra.singular_values import svd_op

_DOUBLES = (dtypes.float64, dtypes.float32)


def _batch_form(
    of: OpDeclaration, removed_in: int, signature: str, attributes: str = "", **traits: Any
) -> None:
    """Declares the op named "Batch" before the name of `of`, with its inference, kernels, cost and traits.

    `removed_in` is the version of GraphDefs that has `of` only.
    """
    instead = "SelfAdjointEigV2" if of is self_adjoint_eig_op else of.name
    declaration = op(
        f"Batch{of.name}",
        signature,
        attributes,
        host=of.host,
        aliases=of.aliases,
        snapshot=of.snapshot,
        capturable=of.is_capturable,
        cost=of.cost_function,
        deprecated=(removed_in, instead),
        **traits,
    )
    assert of.infer_function is not None
    declaration.infer(of.infer_function)
    for device_type, factory in of.kernels.items():
        declaration.kernel(device_type)(factory)
    declaration.no_gradient()


_batch_form(matrix_band_part_op, 14, "input: T, num_lower: int64, num_upper: int64 -> band: T", T=None)
_batch_form(matrix_diag_op, 14, "diagonal: T -> output: T", T=None)
_batch_form(matrix_diag_part_op, 14, "input: T -> diagonal: T", T=None)
_batch_form(matrix_set_diag_op, 14, "input: T, diagonal: T -> output: T", T=None)
_batch_form(cholesky_op, 13, "input: T -> output: T", T=_DOUBLES)
_batch_form(cholesky_grad_op, 13, "l: T, grad: T -> output: T", T=_DOUBLES)
_batch_form(matrix_determinant_op, 13, "input: T -> output: T", T=TYPES)
_batch_form(matrix_inverse_op, 13, "input: T -> output: T", "adjoint: bool = false", T=_DOUBLES)
_batch_form(matrix_solve_op, 13, "matrix: T, rhs: T -> output: T", "adjoint: bool = false", T=_DOUBLES)
_batch_form(
    matrix_solve_ls_op,
    13,
    "matrix: T, rhs: T, l2_regularizer: double -> output: T",
    "fast: bool = true",
    T=_DOUBLES,
)
_batch_form(
    matrix_triangular_solve_op,
    13,
    "matrix: T, rhs: T -> output: T",
    "lower: bool = true ; adjoint: bool = false",
    T=_DOUBLES,
)
_batch_form(self_adjoint_eig_op, 11, "input: T -> output: T", T=_DOUBLES)
_batch_form(self_adjoint_eig_v2_op, 13, "input: T -> e: T, v: T", "compute_v: bool = true", T=_DOUBLES)
_batch_form(
    svd_op,
    13,
    "input: T -> s: T, u: T, v: T",
    "compute_uv: bool = true ; full_matrices: bool = false",
    T=TYPES,
)
