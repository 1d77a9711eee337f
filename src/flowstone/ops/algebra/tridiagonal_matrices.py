"""Tridiagonal matrices: solutions and products.

The diagonals come as [..., 3, n]: above (its last element is not used), main, below (its first is not used).
TridiagonalMatMul takes each as [..., 1, n].

The solution without pivots is by cyclic reduction: every second unknown is eliminated from its neighbours,
all at once, until one is left. With pivots, that is tried first, in double precision unless the main
diagonal dominates, and kept where it solves a system as near as rounding allows to the one that is given.
Where it does not, a block of rows is taken at a time: zeros are
made below the diagonal of the row that is left of the block before and the block's own rows, by a QR
factorisation, which is stable for every regular matrix; what is left over is the row for the next block.
On a host, machine code eliminates row after row instead, where there is the native tier.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine.machine_code import band_solver
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, merge
from flowstone.ops.algebra.matrix_gradients import columns_of, transposed
from flowstone.ops.algebra.matrix_shapes import at_least, check_matrix, invalid, same_size
from flowstone.ops.numbers.elementwise import conjugate

TYPES = (dtypes.float64, dtypes.float32, *dtypes.COMPLEX)

# ---- solutions

tridiagonal_solve_op = op(
    "TridiagonalSolve",
    "diagonals: T, rhs: T -> output: T",
    "partial_pivoting: bool = true ; perturb_singular: bool = false",
    T=TYPES,
    cost=10.0,
    capturable=False,
)


@tridiagonal_solve_op.infer
def _(node: Node) -> Dims:
    diagonals, rhs = at_least(2, node.dims(0)), at_least(2, node.dims(1))
    if diagonals is None:
        return rhs
    same_size(diagonals[-2], 3)
    if rhs is None:
        return (*diagonals[:-2], diagonals[-1], None)
    outer = merge(diagonals[:-2], rhs[:-2])
    return (*(outer or ()), same_size(diagonals[-1], rhs[-2]), rhs[-1])


@tridiagonal_solve_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    has_pivots = node.attributes["partial_pivoting"]
    native = band_solver(node.dtype(0).torch, has_pivots) if env.device.type == "cpu" else None

    def solve(diagonals: torch.Tensor, rhs: torch.Tensor) -> Any:
        _check(diagonals, rhs)
        if not rhs.numel():
            return rhs.clone()
        if native is not None:
            return native.eliminate(diagonals, rhs)
        above, main, below = diagonals.unbind(-2)
        if not has_pivots:
            return _reduced(above, main, below, rhs)
        return _pivoted(above, main, below, rhs)

    return solve


def _check(diagonals: torch.Tensor, rhs: torch.Tensor) -> None:
    check_matrix(diagonals)
    check_matrix(rhs)
    if diagonals.shape[-2] != 3:
        raise invalid(f"Expected diagonals to have 3 rows, got shape {list(diagonals.shape)}")
    if diagonals.shape[:-2] != rhs.shape[:-2] or diagonals.shape[-1] != rhs.shape[-2]:
        raise invalid(
            f"The diagonals and rhs do not fit: their shapes are {list(diagonals.shape)}, {list(rhs.shape)}"
        )


_BLOCK = 64  # rows that are eliminated at once
_SMALL = 32  # up to which a dense matrix is as fast,
_FEW = 2**13  # unless there are many: elements of diagonals
_WIDE = {
    torch.float32: torch.float64,
    torch.float64: torch.float64,
    torch.complex64: torch.complex128,
    torch.complex128: torch.complex128,
}
_ROUNDINGS = 32  # how many a row of an exact enough solution may be off


def _pivoted(above: torch.Tensor, main: torch.Tensor, below: torch.Tensor, rhs: torch.Tensor) -> Any:
    """The solution by the fastest way that is exact. Where the main diagonal does not dominate, single
    precision is computed in double, which has digits to spare, and of double the rest is solved once more."""
    if main.shape[-1] <= _SMALL and main.numel() <= _FEW:
        return _eliminated(above, main, below, rhs)
    dominates = bool((main.abs() >= above.abs() + below.abs()).all())
    kind = rhs.dtype if dominates else _WIDE[rhs.dtype]
    upper, middle, lower, side = (each.to(kind) for each in (above, main, below, rhs))
    allowed = _ROUNDINGS * torch.finfo(rhs.dtype).eps
    found = _reduced(upper, middle, lower, side, has_pivots=True)
    for attempt in range(1 if kind is not rhs.dtype else 2):
        if attempt:
            found = found + _reduced(
                upper, middle, lower, side - _multiplied(upper, middle, lower, found), has_pivots=True
            )
        sizes = _multiplied(upper.abs(), middle.abs(), lower.abs(), found.abs()) + side.abs()
        wrong = (_multiplied(upper, middle, lower, found) - side).abs()
        if bool((wrong <= allowed * sizes).all()):  # not if there is a NaN
            return found.to(rhs.dtype)
    return _eliminated(above, main, below, rhs)


def _multiplied(
    above: torch.Tensor, main: torch.Tensor, below: torch.Tensor, rhs: torch.Tensor
) -> torch.Tensor:
    """The product of the matrices of these diagonals [..., n] with [..., n, k]."""
    out = main[..., None] * rhs
    out[..., :-1, :].addcmul_(above[..., :-1, None], rhs[..., 1:, :])
    out[..., 1:, :].addcmul_(below[..., 1:, None], rhs[..., :-1, :])
    return out


def _eliminated(above: torch.Tensor, main: torch.Tensor, below: torch.Tensor, rhs: torch.Tensor) -> Any:
    """The solution by blocks of rows, with pivots."""
    size = main.shape[-1]
    if size <= 2 * _BLOCK:
        dense = torch.diag_embed(main) + torch.diag_embed(above[..., :-1], 1)
        dense = dense + torch.diag_embed(below[..., 1:], -1)
        return torch.linalg.solve_ex(dense, rhs).result
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []
    left, left_side = main.new_empty(*main.shape[:-1], 0, 2), rhs[..., :0, :]
    for start in range(0, size, _BLOCK):
        end = min(start + _BLOCK, size)
        rows = _rows(above, main, below, start, end)
        side = torch.cat([left_side, rhs[..., start:end, :]], -2)
        first = torch.cat([left, left.new_zeros(*left.shape[:-1], rows.shape[-1] - 2)], -1)
        triangle, side = _triangular(torch.cat([first, rows], -2), side)
        done = triangle.shape[-2] - (end < size)
        kept.append((triangle[..., :done, :], side[..., :done, :]))
        left, left_side = triangle[..., done:, done : done + 2], side[..., done:, :]
    return _substituted(kept)


def _rows(above: torch.Tensor, main: torch.Tensor, below: torch.Tensor, start: int, end: int) -> torch.Tensor:
    """Rows of the matrix, in the columns from the one before `start`, if any, to the one after `end`."""
    height, before = end - start, int(start > 0)
    rows = main.new_zeros(*main.shape[:-1], height, before + height + 1)
    rows.diagonal(before, -2, -1).copy_(main[..., start:end])
    rows.diagonal(before + 1, -2, -1).copy_(above[..., start:end])
    if before:
        rows.diagonal(0, -2, -1).copy_(below[..., start:end])
    else:
        rows.diagonal(-1, -2, -1).copy_(below[..., start + 1 : end])
    return rows


def _triangular(rows: torch.Tensor, side: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    q, r = torch.linalg.qr(rows[..., : rows.shape[-2]], "complete")
    rest = q.mH @ torch.cat([rows[..., rows.shape[-2] :], side], -1)
    extra = rows.shape[-1] - rows.shape[-2]
    return torch.cat([r, rest[..., :extra]], -1), rest[..., extra:]


def _substituted(kept: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    """The solution, from the last block of rows to the first. A row reaches two unknowns past its block."""
    parts: list[torch.Tensor] = []
    for triangle, side in reversed(kept):
        height = triangle.shape[-2]
        if parts:
            side = side - triangle[..., height:] @ parts[-1][..., :2, :]
        parts.append(torch.linalg.solve_triangular(triangle[..., :height], side, upper=True))
    return torch.cat(parts[::-1], -2)


def _reduced(
    above: torch.Tensor, main: torch.Tensor, below: torch.Tensor, rhs: torch.Tensor, has_pivots: bool = False
) -> torch.Tensor:
    """The solution by cyclic reduction, without pivots or, if asked, with those of the last few equations."""
    size = main.shape[-1]
    if has_pivots and size <= _SMALL and main.numel() <= _FEW:
        return _eliminated(above, main, below, rhs)  # type: ignore[no-any-return]
    if size == 1:
        return rhs / main[..., None]
    below, above = below.clone(), above.clone()
    below[..., 0] = 0
    above[..., -1] = 0
    odd_main, odd_rhs = main[..., 1::2], rhs[..., 1::2, :]
    odd_below, odd_above = below[..., 1::2], above[..., 1::2]
    half, count = (size + 1) // 2, size // 2
    down = above[..., 0::2][..., :count] / odd_main  # of even rows, what takes the odd row after away
    up = below[..., 0::2][..., 1:half] / odd_main[..., : half - 1]  # ... and the odd row before
    new_main, new_rhs = main[..., 0::2].clone(), rhs[..., 0::2, :].clone()
    new_above, new_below = torch.zeros_like(new_main), torch.zeros_like(new_main)
    new_main[..., :count] -= down * odd_below
    new_main[..., 1:half] -= up * odd_above[..., : half - 1]
    new_rhs[..., :count, :] -= down[..., None] * odd_rhs
    new_rhs[..., 1:half, :] -= up[..., None] * odd_rhs[..., : half - 1, :]
    new_above[..., :count] = -down * odd_above
    new_below[..., 1:half] = -up * odd_below[..., : half - 1]
    even = _reduced(new_above, new_main, new_below, new_rhs, has_pivots)
    after = torch.cat([even[..., 1:, :], even.new_zeros(*even.shape[:-2], 1, even.shape[-1])], -2)
    odd = odd_rhs - odd_below[..., None] * even[..., :count, :] - odd_above[..., None] * after[..., :count, :]
    out = torch.empty_like(rhs)
    out[..., 0::2, :], out[..., 1::2, :] = even, odd / odd_main[..., None]
    return out


@tridiagonal_solve_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    diagonals, solution = op.inputs[0], op.outputs[0]
    pivots = {name: op.attributes[name] for name in ("partial_pivoting", "perturb_singular")}
    d_rhs = F.TridiagonalSolve(transposed_diagonals(diagonals), dy, **pivots)
    parts = []
    for moved in (_rows_after(solution), solution, _rows_before(solution)):
        total = F.Sum(F.Mul(d_rhs, moved), -1)
        parts.append(F.Neg(F.ExpandDims(total, -2)))
    return F.ConcatV2(parts, -2), d_rhs


def adjoint_diagonals(diagonals: Tensor) -> Tensor:
    """The diagonals [..., 3, n] of the conjugate transposes."""
    return transposed_diagonals(conjugate(diagonals))


def transposed_diagonals(diagonals: Tensor) -> Tensor:
    """The diagonals [..., 3, n] of the transposes."""
    above, main, below = (_row(diagonals, i) for i in range(3))
    return F.ConcatV2([_after(below), main, _before(above)], -2)


def _row(x: Tensor, i: int) -> Tensor:
    """One row of matrices, as a matrix of one row."""
    return F.StridedSlice(x, [0, i, 0], [0, i + 1, 0], [1, 1, 1], ellipsis_mask=1, begin_mask=4, end_mask=4)


# A mask says of which dimensions the bounds are open: of the first one given after the ellipsis it is 2.


def _after(x: Tensor) -> Tensor:
    """The elements that follow each, and a zero at the end."""
    rest = F.StridedSlice(x, [0, 1], [0, 0], [1, 1], ellipsis_mask=1, end_mask=2)
    return F.ConcatV2([rest, F.ZerosLike(columns_of(x, 0, 1))], -1)


def _before(x: Tensor) -> Tensor:
    """The elements that precede each, and a zero at the start."""
    return F.ConcatV2([F.ZerosLike(columns_of(x, 0, 1)), columns_of(x, 0, -1)], -1)


def _rows_after(x: Tensor) -> Tensor:
    """The rows that follow each, and zeros at the end."""
    rest = F.StridedSlice(x, [0, 1, 0], [0, 0, 0], [1, 1, 1], ellipsis_mask=1, end_mask=6, begin_mask=4)
    return F.ConcatV2([rest, F.ZerosLike(_rows_to(x, 1))], -2)


def _rows_before(x: Tensor) -> Tensor:
    """The rows that precede each, and zeros at the start."""
    return F.ConcatV2([F.ZerosLike(_rows_to(x, 1)), _rows_to(x, -1)], -2)


def _rows_to(x: Tensor, end: int) -> Tensor:
    return F.StridedSlice(x, [0, 0, 0], [0, end, 0], [1, 1, 1], ellipsis_mask=1, end_mask=4, begin_mask=4)


# ---- products

tridiagonal_matmul_op = op(
    "TridiagonalMatMul", "superdiag: T, maindiag: T, subdiag: T, rhs: T -> output: T", T=TYPES, cost=5.0
)


@tridiagonal_matmul_op.infer
def _(node: Node) -> Dims:
    rhs = at_least(2, node.dims(3))
    for i in range(3):
        diagonal = at_least(2, node.dims(i))
        if diagonal is not None and rhs is not None:
            same_size(diagonal[-2], 1)
            size = same_size(diagonal[-1], rhs[-2])
            rhs = (*(merge(diagonal[:-2], rhs[:-2]) or ()), size, rhs[-1])
    return rhs


@tridiagonal_matmul_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def multiply(
        above: torch.Tensor, main: torch.Tensor, below: torch.Tensor, rhs: torch.Tensor
    ) -> torch.Tensor:
        check_matrix(rhs)
        for diagonal in (above, main, below):
            if diagonal.shape != (*rhs.shape[:-2], 1, rhs.shape[-2]):
                raise invalid(f"A diagonal {list(diagonal.shape)} does not fit rhs {list(rhs.shape)}")
        return _multiplied(above[..., 0, :], main[..., 0, :], below[..., 0, :], rhs)

    return multiply


@tridiagonal_matmul_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    above, main, below, rhs = (conjugate(each) for each in op.inputs)
    of_above, of_main, of_below = (
        F.ExpandDims(F.Sum(F.Mul(moved, dy), -1), -2) for moved in (_rows_after(rhs), rhs, _rows_before(rhs))
    )
    d_rhs = F.TridiagonalMatMul(_after(below), main, _before(above), dy)
    return of_above, of_main, of_below, d_rhs


# ---- public functions

_FORMATS = ("compact", "matrix", "sequence")


def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Tensor:
    """The X with T X = rhs for tridiagonal matrices T.

    Args:
        diagonals: "compact", [..., 3, n]: above the main one (its last element is not used), main, below (its
            first is not used). "sequence": a tuple of these three [..., n]; those above and below may have
            n - 1 elements. "matrix": the matrices [..., n, n], of which nothing else is read.
        rhs: [..., n], or [..., n, k].
        diagonals_format: "compact", "sequence" or "matrix".
        transpose_rhs: whether rhs is [..., k, n]; the result is [..., n, k] all the same.
        conjugate_rhs: whether rhs is conjugated.
        partial_pivoting: whether rows change places for stability; without, it is faster.
        perturb_singular: accepted; singular matrices give NaN or infinities.
    """
    with get_default_graph().name_scope(name or "tridiagonal_solve"):
        compact = as_compact(diagonals, diagonals_format)
        b = convert_to_tensor(rhs, compact.dtype, name="rhs")
        if b.dims is None or compact.dims is None:
            raise ValueError("the ranks of diagonals and rhs must be known")
        is_vector = len(b.dims) == len(compact.dims) - 1
        if is_vector:
            b = F.ExpandDims(b, -1)
        elif transpose_rhs:
            b = transposed(b)
        if conjugate_rhs:
            b = conjugate(b)
        x = tridiagonal_solve_op(
            compact, b, partial_pivoting=partial_pivoting, perturb_singular=perturb_singular
        )
        return F.Squeeze(x, squeeze_dims=[-1]) if is_vector else x


def tridiagonal_matmul(
    diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """The products [..., n, k] of tridiagonal matrices with rhs [..., n, k]; see `tridiagonal_solve`."""
    with get_default_graph().name_scope(name or "tridiagonal_matmul"):
        compact = as_compact(diagonals, diagonals_format)
        return tridiagonal_matmul_op(*[_row(compact, i) for i in range(3)], rhs)


def as_compact(diagonals: Any, diagonals_format: str) -> Tensor:
    """The diagonals as [..., 3, n]. ValueError for an unknown format."""
    if diagonals_format not in _FORMATS:
        raise ValueError(f"Unrecognized diagonals_format {diagonals_format!r}: expected one of {_FORMATS}")
    if diagonals_format == "compact":
        return convert_to_tensor(diagonals, name="diagonals")
    if diagonals_format == "matrix":
        matrix = convert_to_tensor(diagonals, name="diagonals")
        return F.MatrixDiagPartV3(matrix, [-1, 1], matrix.dtype.as_numpy_dtype(0), align="LEFT_RIGHT")
    if not isinstance(diagonals, (tuple, list)) or len(diagonals) != 3:
        raise ValueError("Expected diagonals to be a sequence of length 3.")
    above, main, below = (convert_to_tensor(each) for each in diagonals)
    size = _last_size(main)
    zero = F.ZerosLike(columns_of(main, 0, 1))
    if size is None or _last_size(above) == size - 1:
        above = F.ConcatV2([above, zero], -1)
    if size is None or _last_size(below) == size - 1:
        below = F.ConcatV2([zero, below], -1)
    return F.ConcatV2([F.ExpandDims(each, -2) for each in (above, main, below)], -2)


def _last_size(x: Tensor) -> int | None:
    return x.dims[-1] if x.dims else None
