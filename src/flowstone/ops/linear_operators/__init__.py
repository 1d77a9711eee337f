"""Linear operators: matrices by their structure, with products, solutions and determinants.

Importing this package imports them all: what an operator makes of another may be of any class.
"""

from flowstone.ops.linear_operators import (
    adjoint,
    blocks,
    circulant,
    composition,
    diagonal,
    full_matrix,
    given_sizes,
    householder,
    identity,
    inversion,
    kronecker,
    linear_operator,
    low_rank_update,
    lower_triangular,
    permutation,
    scaled_identity,
    toeplitz,
    tridiagonal,
    zeros,
)

__all__ = [
    "adjoint",
    "blocks",
    "circulant",
    "composition",
    "diagonal",
    "full_matrix",
    "given_sizes",
    "householder",
    "identity",
    "inversion",
    "kronecker",
    "linear_operator",
    "low_rank_update",
    "lower_triangular",
    "permutation",
    "scaled_identity",
    "toeplitz",
    "tridiagonal",
    "zeros",
]
