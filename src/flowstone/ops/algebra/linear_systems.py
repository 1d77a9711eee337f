"""Solutions X [..., n, k] of linear systems A X = B: of any square A, of triangular and of banded ones.

MatrixSolve wants batches of one shape. The triangular ops broadcast them, and read one triangle only.
BandedTriangularSolve takes the bands [..., b, n] of a triangular matrix: the main diagonal first, then those
below it, of which the first elements are not used; or, of an upper triangle, the main diagonal last, after
those above it, of which the last elements are not used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine.machine_code import band_solver
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, broadcast
from flowstone.ops.algebra.batch_matrices import sum_batches
from flowstone.ops.algebra.inverses import TYPES
from flowstone.ops.algebra.matrix_gradients import product
from flowstone.ops.algebra.matrix_shapes import (
    at_least,
    check_sides,
    check_square,
    code_for_small,
    invalid,
    same_size,
    solution_shape,
    solving,
    square,
    substituting,
)

__all__ = ["matrix_solve", "matrix_triangular_solve"]

_SINGULAR = "Input matrix is not invertible."

# ---- of any square matrix

matrix_solve_op = op(
    "MatrixSolve",
    "matrix: T, rhs: T -> output: T",
    "adjoint: bool = false",
    T=TYPES,
    cost=solving,
    capturable=False,
    starts_team=True,
)
matrix_solve_op.infer(solution_shape)


@matrix_solve_op.kernel(CPU, GPU)
def solve_kernel(node: Node, env: Environment) -> Kernel:
    """The solutions, for the adjoints of the matrices if `adjoint`."""
    adjoint, small = node.attributes["adjoint"], code_for_small(node.dtype(0), env)

    def solve(matrix: torch.Tensor, rhs: torch.Tensor) -> Any:
        check_square(matrix)
        check_sides(matrix, rhs)
        if not rhs.numel():
            return torch.empty_like(rhs)
        found = small.solve(matrix, rhs, adjoint) if small is not None and small.fits(matrix, rhs) else None
        if found is not None:
            return found
        result, info = torch.linalg.solve_ex(matrix.mH if adjoint else matrix, rhs)
        if bool(info.any()) or bool(torch.isnan(matrix).any()):
            raise invalid(_SINGULAR)
        return result

    return solve


@matrix_solve_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    matrix, solution = op.inputs[0], op.outputs[0]
    adjoint = op.attributes["adjoint"]
    d_rhs = F.MatrixSolve(matrix, dy, adjoint=not adjoint)
    d_matrix = (
        product(solution, d_rhs, adjoint_b=True) if adjoint else product(d_rhs, solution, adjoint_b=True)
    )
    return F.Neg(d_matrix), d_rhs


# ---- of triangular matrices

_TRIANGULAR_TYPES = (*TYPES, dtypes.float16, dtypes.bfloat16)
_NARROW = (dtypes.float16, dtypes.bfloat16)
_TRIANGLE = "lower: bool = true ; adjoint: bool = false"

matrix_triangular_solve_op = op(
    "MatrixTriangularSolve",
    "matrix: T, rhs: T -> output: T",
    _TRIANGLE,
    T=_TRIANGULAR_TYPES,
    cost=substituting,
    capturable=False,
)


@matrix_triangular_solve_op.infer
def triangular_shape(node: Node) -> Dims:
    """Infers the solutions' shape, of which both batches broadcast."""
    matrix, rhs = square(node.dims(0)), at_least(2, node.dims(1))
    if matrix is None or rhs is None:
        return None
    outer = broadcast(matrix[:-2], rhs[:-2])
    return None if outer is None else (*outer, same_size(matrix[-1], rhs[-2]), rhs[-1])


@matrix_triangular_solve_op.kernel(CPU, GPU)
def triangular_kernel(node: Node, env: Environment) -> Kernel:
    """The solutions, for the adjoints of the triangles if `adjoint`."""
    lower, adjoint = node.attributes["lower"], node.attributes["adjoint"]
    narrow = node.dtype(0).torch if node.dtype(0) in _NARROW else None
    dtype = node.dtype(0) if narrow is None else dtypes.float32
    small = code_for_small(dtype, env)

    def solve(matrix: torch.Tensor, rhs: torch.Tensor) -> Any:
        check_square(matrix)
        check_sides(matrix, rhs, broadcasts=True)
        if small is not None and small.fits(matrix, rhs) and matrix.shape[:-2] == rhs.shape[:-2]:
            sides = (matrix, rhs) if narrow is None else (matrix.float(), rhs.float())
            found = small.substitute(*sides, lower, adjoint)
            if found is not None:
                return found if narrow is None else found.to(narrow)
        if bool((matrix.diagonal(0, -2, -1) == 0).any()):
            raise invalid(_SINGULAR)
        if narrow is not None:
            matrix, rhs = matrix.float(), rhs.float()
        if by_rows and _is_wide(matrix, rhs):
            side = matrix if adjoint else matrix.mT
            result = torch.linalg.solve_triangular(side, rhs.mT, upper=lower != adjoint, left=False).mT
        else:
            side = matrix.mH if adjoint else matrix
            result = torch.linalg.solve_triangular(side, rhs, upper=lower == adjoint)
        return result if narrow is None else result.to(narrow)

    on_host = env.device.type == "cpu"
    by_rows = dtype is dtypes.float32 and on_host and env.machine.profile.transposed_systems
    return solve


def _is_wide(matrix: torch.Tensor, rhs: torch.Tensor) -> bool:
    """Whether the transposed system, whose right-hand sides lie as LAPACK reads them, may be solved faster.

    In float32 that takes half the time on an EPYC 9005: 28 us of 61 for a matrix of 100 x 100 and as many
    right-hand sides, 138 of 310 for 200, 82 of 222 for 32 matrices of 40 x 40. Of few and long ones it takes
    more: of 1,000 x 8 410 us, where the system as it is takes 156.
    """
    rows, columns = rhs.shape[-2:]
    return bool(rows >= 32 and columns >= 16 and rows <= 8 * columns and matrix.shape[:-2] == rhs.shape[:-2])


@matrix_triangular_solve_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    (matrix, rhs), solution = op.inputs, op.outputs[0]
    lower, adjoint = op.attributes["lower"], op.attributes["adjoint"]
    d_rhs = F.MatrixTriangularSolve(matrix, dy, lower=lower, adjoint=not adjoint)
    d_matrix = F.Neg(
        product(solution, d_rhs, adjoint_b=True) if adjoint else product(d_rhs, solution, adjoint_b=True)
    )
    d_matrix = F.MatrixBandPart(d_matrix, *((-1, 0) if lower else (0, -1)))
    if _same_batches(matrix, rhs):
        return d_matrix, d_rhs
    return sum_batches(d_matrix, matrix, rhs), sum_batches(d_rhs, rhs, matrix)


def _same_batches(a: Tensor, b: Tensor) -> bool:
    """Whether the dimensions before the matrices are known to be equal."""
    if a.dims is None or b.dims is None:
        return False
    return a.dims[:-2] == b.dims[:-2] and None not in a.dims[:-2]


# ---- of triangular matrices with few diagonals

_BANDED_TYPES = (*TYPES, dtypes.float16)
_BLOCK = 128  # rows of a triangle that is solved at once

banded_triangular_solve_op = op(
    "BandedTriangularSolve",
    "matrix: T, rhs: T -> output: T",
    _TRIANGLE,
    T=_BANDED_TYPES,
    cost=lambda node: 2.0 * work.count(node.inputs[0]) * work.count(node.inputs[1]) / _columns_of_bands(node),
    capturable=False,
)


def _columns_of_bands(node: Node) -> int:
    dims = node.dims(0)
    return (dims[-1] if dims else None) or work.ASSUMED_SIZE


@banded_triangular_solve_op.infer
def _(node: Node) -> Dims:
    bands, rhs = at_least(2, node.dims(0)), at_least(2, node.dims(1))
    if bands is None or rhs is None:
        return None
    if bands[-2] is not None and bands[-1] is not None and not 1 <= bands[-2] <= bands[-1]:
        raise ValueError(f"Number of bands {bands[-2]} must be from 1 to the number of columns {bands[-1]}")
    outer = broadcast(bands[:-2], rhs[:-2])
    return None if outer is None else (*outer, same_size(bands[-1], rhs[-2]), rhs[-1])


@banded_triangular_solve_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    lower, adjoint = node.attributes["lower"], node.attributes["adjoint"]
    narrow = node.dtype(0).torch if node.dtype(0) in _NARROW else None
    native = None
    if env.device.type == "cpu":
        native = band_solver(node.dtype(0).torch if narrow is None else torch.float32, False)

    def solve(bands: torch.Tensor, rhs: torch.Tensor) -> Any:
        _check_bands(bands, rhs, lower)
        if narrow is not None:
            bands, rhs = bands.float(), rhs.float()
        rows = _rows_of(bands, lower)
        if adjoint:
            rows = _rows_of_adjoint(rows, lower)
        if native is not None and rhs.numel():
            batches = np.broadcast_shapes(rows.shape[:-2], rhs.shape[:-2])
            rows, rhs = rows.expand(*batches, -1, -1), rhs.expand(*batches, -1, -1)
            result = native.substitute(rows, rhs, lower == adjoint)
        else:
            result = _substitute(rows, rhs, lower != adjoint)
        return result if narrow is None else result.to(narrow)

    return solve


def _check_bands(bands: torch.Tensor, rhs: torch.Tensor, lower: bool) -> None:
    if bands.ndim < 2 or rhs.ndim < 2:
        raise invalid(f"Inputs must have rank >= 2, got shapes {list(bands.shape)} and {list(rhs.shape)}")
    count, size = bands.shape[-2:]
    if not 1 <= count <= size:
        raise invalid(f"Number of bands {count} must be from 1 to the number of columns {size}")
    if rhs.shape[-2] != size:
        raise invalid(
            f"The sizes of the matrix and rhs do not fit: {list(bands.shape)} and {list(rhs.shape)}"
        )
    if bool((bands[..., 0 if lower else -1, :] == 0).any()):
        raise invalid(_SINGULAR)


def _rows_of(bands: torch.Tensor, lower: bool) -> torch.Tensor:
    """The bands as [..., n, b]: in each row of the triangle, the distance from the main diagonal counts."""
    rows = bands if lower else bands.flip(-2)
    return rows.mT


def _rows_of_adjoint(rows: torch.Tensor, lower: bool) -> torch.Tensor:
    """The rows of the adjoint triangle: what stands d below the diagonal moves d rows up."""
    moved = torch.zeros_like(rows)
    size = rows.shape[-2]
    for distance in range(rows.shape[-1]):
        kept = size - distance
        into, from_ = (slice(0, kept), slice(distance, size))
        if not lower:
            into, from_ = from_, into
        moved[..., into, distance] = rows[..., from_, distance]
    return moved.conj().resolve_conj()


def _substitute(rows: torch.Tensor, rhs: torch.Tensor, lower: bool) -> Any:
    """The solution, in blocks of rows: each is a small dense triangle, and meets the end of the one before.

    All blocks are solved at once, for their right-hand sides and for what the block before may be; then one
    after another takes the end of the one before.
    """
    if not lower:
        return _substitute(rows.flip(-2), rhs.flip(-2), True).flip(-2)
    size, before = rows.shape[-2], rows.shape[-1] - 1
    batches = np.broadcast_shapes(rows.shape[:-2], rhs.shape[:-2])
    block = min(max(_BLOCK, before), size)
    count = -(-size // block)
    triangles, couplings = _blocks_of(rows.expand(*batches, *rows.shape[-2:]), count, block)
    sides = rhs.new_zeros(*batches, count * block, rhs.shape[-1])
    sides[..., :size, :] = rhs
    sides = sides.reshape(*batches, count, block, rhs.shape[-1])
    if count == 1 or not before:
        solved = torch.linalg.solve_triangular(triangles, sides, upper=False)
        return solved.reshape(*batches, count * block, rhs.shape[-1])[..., :size, :]
    both = torch.linalg.solve_triangular(triangles, torch.cat([couplings, sides], -1), upper=False)
    coupled, solved = both[..., :before], both[..., before:]
    ends = [torch.zeros_like(solved[..., 0, -before:, :])]
    for i in range(count - 1):
        ends.append(solved[..., i, -before:, :] - coupled[..., i, -before:, :] @ ends[-1])
    solved = solved - coupled @ torch.stack(ends, -3)
    return solved.reshape(*batches, count * block, rhs.shape[-1])[..., :size, :]


def _blocks_of(rows: torch.Tensor, count: int, block: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The triangles [..., count, block, block] on the diagonal, the last filled with ones, and what couples
    each block to the last unknowns of the one before.
    """
    batches, (size, bands) = rows.shape[:-2], rows.shape[-2:]
    padded = rows.new_zeros(*batches, count * block, bands)
    padded[..., :size, :] = rows
    padded[..., size:, 0] = 1
    padded = padded.reshape(*batches, count, block, bands)
    triangles = rows.new_zeros(*batches, count, block, block)
    couplings = rows.new_zeros(*batches, count, block, bands - 1)
    for distance in range(bands):
        if distance < block:
            triangles.diagonal(-distance, -2, -1).copy_(padded[..., distance:, distance])
        if distance:
            into = couplings.diagonal(bands - 1 - distance, -2, -1)
            into.copy_(padded[..., : into.shape[-1], distance])
    couplings[..., 0, :, :] = 0
    return triangles, couplings


@banded_triangular_solve_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    (bands, rhs), solution = op.inputs, op.outputs[0]
    lower, adjoint = op.attributes["lower"], op.attributes["adjoint"]
    d_rhs = F.BandedTriangularSolve(bands, dy, lower=lower, adjoint=not adjoint)
    d_matrix = F.Neg(
        product(solution, d_rhs, adjoint_b=True) if adjoint else product(d_rhs, solution, adjoint_b=True)
    )
    d_bands = _bands_of(d_matrix, bands, lower)
    if _same_batches(bands, rhs):
        return d_bands, d_rhs
    return sum_batches(d_bands, bands, rhs), sum_batches(d_rhs, rhs, bands)


def _bands_of(matrix: Tensor, bands: Tensor, lower: bool) -> Tensor:
    """The diagonals of a matrix in the arrangement of bands."""
    shape = F.Shape(bands)
    last = F.Sub(F.StridedSlice(shape, [-2], [-1], [1]), [1])
    zero = [0]
    first, end = (F.Neg(last), zero) if lower else (zero, last)
    limits = F.ConcatV2([first, end], 0)
    parts = F.MatrixDiagPartV3(matrix, limits, matrix.dtype.as_numpy_dtype(0), align="LEFT_RIGHT")
    known = bands.dims
    if known is not None and known[-2] not in (None, 1):
        return parts
    outer = F.StridedSlice(F.Shape(matrix), [0], [-2], [1], begin_mask=1)
    rows = F.ConcatV2([outer, F.StridedSlice(shape, [-2], [0], [1], end_mask=1)], 0)
    return F.Reshape(parts, rows)  # one diagonal alone comes as a vector


# ---- public functions


def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The X [..., n, k] with A X = rhs, or A^H X = rhs if `adjoint`, for square matrices A [..., n, n].

    InvalidArgumentError in the step for a singular matrix.
    """
    return matrix_solve_op(matrix, rhs, adjoint=adjoint, name=name)


def matrix_triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """The X [..., n, k] with A X = rhs, or A^H X = rhs if `adjoint`, for the triangles A of [..., n, n].

    The lower triangle is read, or the upper one if not `lower`; batches broadcast. InvalidArgumentError in
    the step if an element of the diagonal is zero.
    """
    return matrix_triangular_solve_op(matrix, rhs, lower=lower, adjoint=adjoint, name=name)


def banded_triangular_solve(
    bands: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """The X [..., n, k] with A X = rhs, or A^H X = rhs if `adjoint`, for triangles A with few diagonals.

    `bands` [..., b, n]: the main diagonal first and those below it aligned right, if `lower`; else the main
    diagonal last, and those above it aligned left. InvalidArgumentError in the step if an element of the main
    diagonal is zero.
    """
    return banded_triangular_solve_op(bands, rhs, lower=lower, adjoint=adjoint, name=name)
