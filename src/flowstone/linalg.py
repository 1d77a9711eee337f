"""`flowstone.linalg`: matrices."""

from types import SimpleNamespace as _SimpleNamespace

from flowstone.ops.algebra.cholesky_factors import cholesky, cholesky_solve
from flowstone.ops.algebra.conjugate_gradients import conjugate_gradient as _conjugate_gradient
from flowstone.ops.algebra.diagonals import diag as tensor_diag
from flowstone.ops.algebra.diagonals import diag_part as tensor_diag_part
from flowstone.ops.algebra.diagonals import matrix_band_part as band_part
from flowstone.ops.algebra.diagonals import matrix_diag as diag
from flowstone.ops.algebra.diagonals import matrix_diag_part as diag_part
from flowstone.ops.algebra.diagonals import matrix_set_diag as set_diag
from flowstone.ops.algebra.diagonals import trace
from flowstone.ops.algebra.eigenvalues import eig, eigvals
from flowstone.ops.algebra.eigenvalues import self_adjoint_eig as eigh
from flowstone.ops.algebra.eigenvalues import self_adjoint_eigvals as eigvalsh
from flowstone.ops.algebra.inverses import matrix_determinant as det
from flowstone.ops.algebra.inverses import matrix_inverse as inv
from flowstone.ops.algebra.least_squares import matrix_solve_ls as lstsq
from flowstone.ops.algebra.linear_systems import banded_triangular_solve
from flowstone.ops.algebra.linear_systems import matrix_solve as solve
from flowstone.ops.algebra.linear_systems import matrix_triangular_solve as triangular_solve
from flowstone.ops.algebra.lu_factors import lu, lu_matrix_inverse, lu_reconstruct, lu_solve
from flowstone.ops.algebra.matrices import matmul
from flowstone.ops.algebra.matrix_functions import matrix_exponential as expm
from flowstone.ops.algebra.matrix_functions import matrix_logarithm as logm
from flowstone.ops.algebra.matrix_functions import matrix_square_root as sqrtm
from flowstone.ops.algebra.matrix_properties import (
    adjoint,
    eigh_tridiagonal,
    logdet,
    matrix_rank,
    matvec,
    normalize,
    pinv,
    slogdet,
)
from flowstone.ops.algebra.orthogonal_factors import qr
from flowstone.ops.algebra.singular_values import svd
from flowstone.ops.algebra.tensor_contractions import einsum, norm, tensordot
from flowstone.ops.algebra.tridiagonal_matrices import tridiagonal_matmul, tridiagonal_solve
from flowstone.ops.arrays.constants import eye
from flowstone.ops.arrays.rearranging import matrix_transpose
from flowstone.ops.arrays.rearranging import matrix_transpose as transpose
from flowstone.ops.linear_operators.adjoint import LinearOperatorAdjoint
from flowstone.ops.linear_operators.blocks import LinearOperatorBlockDiag, LinearOperatorBlockLowerTriangular
from flowstone.ops.linear_operators.circulant import (
    LinearOperatorCirculant,
    LinearOperatorCirculant2D,
    LinearOperatorCirculant3D,
)
from flowstone.ops.linear_operators.composition import LinearOperatorComposition
from flowstone.ops.linear_operators.diagonal import LinearOperatorDiag
from flowstone.ops.linear_operators.full_matrix import LinearOperatorFullMatrix
from flowstone.ops.linear_operators.householder import LinearOperatorHouseholder
from flowstone.ops.linear_operators.identity import LinearOperatorIdentity
from flowstone.ops.linear_operators.inversion import LinearOperatorInversion
from flowstone.ops.linear_operators.kronecker import LinearOperatorKronecker
from flowstone.ops.linear_operators.linear_operator import LinearOperator
from flowstone.ops.linear_operators.low_rank_update import LinearOperatorLowRankUpdate
from flowstone.ops.linear_operators.lower_triangular import LinearOperatorLowerTriangular
from flowstone.ops.linear_operators.permutation import LinearOperatorPermutation
from flowstone.ops.linear_operators.scaled_identity import LinearOperatorScaledIdentity
from flowstone.ops.linear_operators.toeplitz import LinearOperatorToeplitz
from flowstone.ops.linear_operators.tridiagonal import LinearOperatorTridiag
from flowstone.ops.linear_operators.zeros import LinearOperatorZeros
from flowstone.ops.networks.neural_net import l2_normalize
from flowstone.ops.numbers.clipping import global_norm
from flowstone.ops.numbers.special_functions import cross

experimental = _SimpleNamespace(conjugate_gradient=_conjugate_gradient)
