"""Several diagonals of matrices at a time: MatrixDiag, MatrixDiagPart and MatrixSetDiag, versions 2 and 3.

The diagonal k has the elements [i, i + k]. Of the diagonals k0 to k1 the highest comes first: they are
[..., k1 - k0 + 1, longest], or [..., length] where there is one. A shorter one is padded at its end, or at
its start if aligned right; version 3 says which for those above and below the main diagonal ("RIGHT_LEFT"),
version 2 aligns all left.

>>> length_of(1, 3, 4), longest_of(-1, 1, 3, 4)
(3, 3)
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims, merge
from flowstone.ops.algebra.matrix_shapes import at_least, exactly, invalid
from flowstone.ops.arrays.arrays import whole_copy
from flowstone.ops.arrays.columns import picked_columns, word_places

_ALIGN = "align: string in ['LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'] = 'RIGHT_LEFT'"


class Places(NamedTuple):
    """Where the elements of diagonals are in matrices of a size.

    `inside` [rows, columns] says what belongs to a diagonal, `sources` which element of the flat diagonals;
    `targets` [diagonals, longest] says which element of the flat matrix, `unused` where flat diagonals have
    padding.
    """

    inside: torch.Tensor
    sources: torch.Tensor
    unused: torch.Tensor
    targets: torch.Tensor


def length_of(k: int, rows: int, columns: int) -> int:
    """The number of elements of the diagonal k."""
    return min(rows + min(k, 0), columns - max(k, 0))


def longest_of(lower: int, upper: int, rows: int, columns: int) -> int:
    """The number of elements of the longest of these diagonals."""
    return min(rows + min(upper, 0), columns - max(lower, 0))


@lru_cache(maxsize=64)
def places(rows: int, columns: int, lower: int, upper: int, align: str, device: str) -> Places:
    """The places of the diagonals `lower` to `upper`."""
    longest, count = longest_of(lower, upper, rows, columns), upper - lower + 1
    above, below = (word == "RIGHT" for word in align.split("_"))
    diagonals = np.arange(upper, lower - 1, -1)
    lengths = np.minimum(rows + np.minimum(diagonals, 0), columns - np.maximum(diagonals, 0))
    starts = np.where(np.where(diagonals >= 0, above, below), longest - lengths, 0)
    k = np.arange(columns) - np.arange(rows)[:, None]
    inside = (k >= lower) & (k <= upper)
    which = np.clip(upper - k, 0, count - 1)
    sources = which * longest + starts[which] + np.minimum(np.arange(columns), np.arange(rows)[:, None])
    at = np.arange(longest) - starts[:, None]
    unused = (at < 0) | (at >= lengths[:, None])
    row, column = at - np.minimum(diagonals, 0)[:, None], at + np.maximum(diagonals, 0)[:, None]
    targets = np.where(unused, 0, row * columns + column)
    arrays = inside, np.where(inside, sources, 0), np.flatnonzero(unused), targets
    return Places(*[torch.from_numpy(np.ascontiguousarray(each)).to(device) for each in arrays])


# ---- which diagonals


def _limits(k: Any) -> tuple[int, int]:
    """The lowest and the highest diagonal. ValueError for a wrong number of them, or a wrong order."""
    values = [int(each) for each in np.asarray(k).reshape(-1)]
    if len(values) not in (1, 2):
        raise ValueError(f"diag_index must have one or two elements, received {len(values)}")
    if values[0] > values[-1]:
        raise ValueError(f"lower_diag_index is greater than upper_diag_index: {values[0]} > {values[-1]}")
    return values[0], values[-1]


def _check_bounds(limits: tuple[int, int], rows: int | None, columns: int | None) -> None:
    """ValueError where matrices of this size have no such diagonal."""
    for which, diagonal in zip(("lower", "upper"), limits, strict=True):
        too_low = rows is not None and diagonal <= -rows
        too_high = columns is not None and diagonal >= columns
        if (too_low or too_high) and diagonal:
            raise ValueError(
                f"{which}_diag_index {diagonal} is out of bounds of matrices [{rows}, {columns}]"
            )


def _limits_in_step(k: torch.Tensor | tuple[int, int], rows: int, columns: int) -> tuple[int, int]:
    """The limits, checked. InvalidArgumentError where the matrices have no such diagonal."""
    try:
        limits = k if isinstance(k, tuple) else _limits(k.numpy())
        _check_bounds(limits, rows, columns)
    except ValueError as error:
        raise invalid(str(error)) from None
    return limits


def _known_limits(node: Node, index: int) -> tuple[int, int] | None:
    dims = node.dims(index)
    if dims is not None and len(dims) > 1:
        raise ValueError(f"diag_index must be a scalar or vector, received rank {len(dims)}")
    value = node.constant(index)
    return None if value is None else _limits(value)


# ---- matrices of diagonals

_DIAG = "diagonal: T, k: int32, num_rows: int32[], num_cols: int32[], padding_value: T[] -> output: T"
matrix_diag_v2_op = op("MatrixDiagV2", _DIAG, T=None, host=["k", "num_rows", "num_cols"])
matrix_diag_v3_op = op("MatrixDiagV3", _DIAG, _ALIGN, T=None, host=["k", "num_rows", "num_cols"])


def sizes_for(limits: tuple[int, int], longest: int, rows: int, columns: int) -> tuple[int, int]:
    """The size of matrices that have these diagonals; a given size is -1 where it is to be found.

    ValueError where the diagonals do not fit.
    """
    lower, upper = limits
    least_rows, least_columns = longest - min(upper, 0), longest + max(lower, 0)
    if rows == -1 and columns == -1:
        return max(least_rows, least_columns), max(least_rows, least_columns)
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    if rows < least_rows or columns < least_columns:
        raise ValueError(
            f"The number of rows or columns [{rows}, {columns}] is too small for diagonals of {longest}"
        )
    if rows != least_rows and columns != least_columns:
        raise ValueError(
            f"The number of rows or columns [{rows}, {columns}] does not fit diagonals of {longest}"
        )
    return rows, columns


def _check_count(limits: tuple[int, int], dims: Dims) -> None:
    """ValueError if a shape of diagonals has not as many as the limits say."""
    lower, upper = limits
    if lower == upper or dims is None:
        return
    at_least(2, dims)
    if dims[-2] is not None and dims[-2] != upper - lower + 1:
        raise ValueError(f"the diagonals {lower} to {upper} are not {dims[-2]}, as the input has")


@matrix_diag_v2_op.infer
@matrix_diag_v3_op.infer
def _(node: Node) -> Dims:
    for scalar in (2, 3, 4):
        exactly(0, node.dims(scalar))
    dims, limits = at_least(1, node.dims(0)), _known_limits(node, 1)
    if dims is None or limits is None:
        return None
    _check_count(limits, dims)
    outer = dims[:-2] if limits[0] < limits[1] else dims[:-1]
    sides = [node.constant(2), node.constant(3)]
    known = [None if side is None else int(side) for side in sides]
    if dims[-1] is None or known[0] is None or known[1] is None:
        return (*outer, *[None if side == -1 else side for side in known])
    return (*outer, *sizes_for(limits, dims[-1], known[0], known[1]))


@matrix_diag_v2_op.kernel(CPU, GPU)
@matrix_diag_v3_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    align = node.attributes.get("align", "LEFT_LEFT")

    def place(
        diagonal: torch.Tensor,
        k: torch.Tensor,
        num_rows: torch.Tensor,
        num_cols: torch.Tensor,
        padding: torch.Tensor,
    ) -> torch.Tensor:
        try:
            at_least(1, tuple(diagonal.shape))
            limits = _limits(k.numpy())
            _check_count(limits, tuple(diagonal.shape))
            rows, columns = sizes_for(limits, diagonal.shape[-1], int(num_rows), int(num_cols))
        except ValueError as error:
            raise invalid(str(error)) from None
        if limits[0] == limits[1]:
            out = padding.expand(*diagonal.shape[:-1], rows, columns).clone(
                memory_format=torch.contiguous_format
            )
            out.diagonal(limits[0], -2, -1).copy_(diagonal)
            return out
        if limits[1] - limits[0] < _FEW:
            outer = diagonal.shape[:-2]
            out = padding.expand(*outer, rows, columns).clone(memory_format=torch.contiguous_format)
            for into, of in _pairs(out, diagonal, limits, align):
                into.copy_(of)
            return out
        at = places(rows, columns, *limits, align, str(diagonal.device))
        return torch.where(at.inside, _taken(diagonal, at.sources), padding)

    return place


_FEW = 16  # diagonals that are copied one by one


def _pairs(x: torch.Tensor, diagonals: torch.Tensor, limits: tuple[int, int], align: str) -> Any:
    """For each diagonal of x its place there and in `diagonals`, both as views."""
    above, below = (word == "RIGHT" for word in align.split("_"))
    longest = diagonals.shape[-1]
    for row, k in enumerate(range(limits[1], limits[0] - 1, -1)):
        in_matrix = x.diagonal(k, -2, -1)
        length = in_matrix.shape[-1]
        start = longest - length if (above if k >= 0 else below) else 0
        yield in_matrix, diagonals[..., row, start : start + length]


def _taken(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """For every matrix of x, its elements at these flat places."""
    outer = x.shape[:-2]
    if not x.shape[-1] or not x.shape[-2]:
        return x.new_zeros(*outer, *at.shape)
    return picked_columns(x.flatten(-2), _flat(at), _kept_words).reshape(*outer, *at.shape)


_kept_words = lru_cache(128)(word_places)  # of places, which are kept as well


@lru_cache(128)
def _flat(at: torch.Tensor) -> torch.Tensor:
    return at.reshape(-1)


# ---- diagonals of matrices

_PART = "input: T, k: int32, padding_value: T -> diagonal: T"
matrix_diag_part_v2_op = op("MatrixDiagPartV2", _PART, T=None, host=["k"], capturable=False)
matrix_diag_part_v3_op = op("MatrixDiagPartV3", _PART, _ALIGN, T=None, host=["k"], capturable=False)


@matrix_diag_part_v2_op.infer
@matrix_diag_part_v3_op.infer
def _(node: Node) -> Dims:
    exactly(0, node.dims(2))
    dims, limits = at_least(2, node.dims(0)), _known_limits(node, 1)
    if dims is None or limits is None:
        return None
    rows, columns = dims[-2:]
    _check_bounds(limits, rows, columns)
    longest = None if rows is None or columns is None else longest_of(*limits, rows, columns)
    return (*dims[:-2], *_count(limits), longest)


def _count(limits: tuple[int, int]) -> tuple[int, ...]:
    """The dimension of the diagonals, which one alone has not."""
    return (limits[1] - limits[0] + 1,) if limits[0] < limits[1] else ()


@matrix_diag_part_v2_op.kernel(CPU, GPU)
@matrix_diag_part_v3_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    align, known = node.attributes.get("align", "LEFT_LEFT"), _known_limits(node, 1)

    def take(x: torch.Tensor, k: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        if x.ndim < 2:
            raise invalid(f"input must be at least 2-dim, received shape: {list(x.shape)}")
        rows, columns = x.shape[-2:]
        limits = _limits_in_step(known or k, rows, columns)
        if limits[0] == limits[1]:
            return x.diagonal(limits[0], -2, -1).clone(memory_format=torch.contiguous_format)
        at = places(rows, columns, *limits, align, str(x.device))
        found = _taken(x, at.targets)
        if at.unused.shape[0]:
            found.flatten(-2).index_fill_(-1, at.unused, padding)
        return found

    return take


# ---- diagonals replaced

_SET = "input: T, diagonal: T, k: int32 -> output: T"
matrix_set_diag_v2_op = op("MatrixSetDiagV2", _SET, T=None, host=["k"])
matrix_set_diag_v3_op = op("MatrixSetDiagV3", _SET, _ALIGN, T=None, host=["k"])


@matrix_set_diag_v2_op.infer
@matrix_set_diag_v3_op.infer
def _(node: Node) -> Dims:
    dims, diagonal = at_least(2, node.dims(0)), at_least(1, node.dims(1))
    limits = _known_limits(node, 2)
    if dims is None and diagonal is not None and (limits is not None or node.dims(2) == ()):
        return (*diagonal[: -1 - len(_count(limits or (0, 0)))], None, None)
    if dims is None or diagonal is None:
        return dims
    if limits is None:  # of one number, one diagonal
        outer = merge(dims[:-2], diagonal[:-1]) if node.dims(2) == () else dims[:-2]
        return (*(outer or ()), *dims[-2:])
    _check_bounds(limits, *dims[-2:])
    _check_count(limits, diagonal)
    before = diagonal[: -1 - len(_count(limits))]
    if len(before) != len(dims) - 2:
        raise ValueError(f"Shapes must be equal rank, but are {len(dims)} and {len(before) + 2}")
    outer = merge(dims[:-2], before)
    return (*(outer or ()), *dims[-2:])


@matrix_set_diag_v2_op.kernel(CPU, GPU)
@matrix_set_diag_v3_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    align = node.attributes.get("align", "LEFT_LEFT")

    def replace(x: torch.Tensor, diagonal: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        if x.ndim < 2:
            raise invalid(f"input must be at least 2-dim, received shape: {list(x.shape)}")
        rows, columns = x.shape[-2:]
        limits = _limits_in_step(k, rows, columns)
        expected = [*x.shape[:-2], *_count(limits), longest_of(*limits, rows, columns)]
        if list(diagonal.shape) != expected:
            raise invalid(
                f"diagonals {limits[0]} to {limits[1]} of {list(x.shape)} have the shape {expected}, "
                f"not {list(diagonal.shape)}"
            )
        if limits[0] == limits[1]:
            out = whole_copy(x)
            out.diagonal(limits[0], -2, -1).copy_(diagonal)
            return out
        if limits[1] - limits[0] < _FEW:
            out = whole_copy(x)
            for into, of in _pairs(out, diagonal, limits, align):
                into.copy_(of)
            return out
        at = places(rows, columns, *limits, align, str(x.device))
        return torch.where(at.inside, _taken(diagonal, at.sources), x)

    return replace


# ---- gradients


def _zero(x: Tensor) -> Any:
    return np.zeros((), x.dtype.as_numpy_dtype)


def _aligned(op: Operation) -> dict[str, str]:
    """The attribute that says how the op aligns, for ops of version 3."""
    return {"align": op.attributes.get("align", "LEFT_LEFT")}


@matrix_diag_v2_op.gradient
@matrix_diag_v3_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    k = op.inputs[1]
    d_diagonal = F.MatrixDiagPartV3(dy, k, _zero(dy), **_aligned(op))
    return d_diagonal, None, None, None, None


@matrix_diag_part_v2_op.gradient
@matrix_diag_part_v3_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x, k = op.inputs[:2]
    rows, columns = (None, None) if x.dims is None else x.dims[-2:]
    if rows is not None and columns is not None:
        return F.MatrixDiagV3(dy, k, rows, columns, _zero(dy), **_aligned(op)), None, None
    return F.MatrixSetDiagV3(F.ZerosLike(x), dy, k, **_aligned(op)), None, None


@matrix_set_diag_v2_op.gradient
@matrix_set_diag_v3_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    k = op.inputs[2]
    d_diagonal = F.MatrixDiagPartV3(dy, k, _zero(dy), **_aligned(op))
    return F.MatrixSetDiagV3(dy, F.ZerosLike(d_diagonal), k, **_aligned(op)), d_diagonal, None
