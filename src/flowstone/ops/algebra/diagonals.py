"""Diagonals and bands of matrices: taken, placed, replaced, kept.

Diag and DiagPart work on a whole tensor (the diagonal of rank k makes a tensor of rank 2k), the Matrix*
operations on the last two dimensions of a batch.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine import machine
from flowstone.framework.machine.array_code import framed_rows
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, merge
from flowstone.ops.arrays.arrays import whole_copy
from flowstone.ops.arrays.constants import zeros, zeros_like
from flowstone.ops.numbers.elementwise import FLOATS_AND_COMPLEX

__all__ = [
    "diag",
    "diag_part",
    "matrix_band_part",
    "matrix_diag",
    "matrix_diag_part",
    "matrix_set_diag",
    "trace",
]

_TYPES = (*FLOATS_AND_COMPLEX, dtypes.int32, dtypes.int64)


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def _at_least(rank: int, dims: Dims) -> Dims:
    if dims is not None and len(dims) < rank:
        raise ValueError(f"Shape must be at least rank {rank} but is rank {len(dims)}")
    return dims


def _smaller(a: int | None, b: int | None) -> int | None:
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None else min(a, b)


# ---- of a whole tensor

diag_op = op("Diag", "diagonal: T -> output: T", T=_TYPES)
diag_op.gradient(lambda op, dy: (F.DiagPart(dy),))


@diag_op.infer
def _(node: Node) -> Shapes:
    dims = _at_least(1, node.dims(0))
    return None if dims is None else dims + dims


@diag_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def place(diagonal: torch.Tensor) -> torch.Tensor:
        if not diagonal.ndim:
            raise _invalid("Input must be at least rank 1, got 0")
        return torch.diag(diagonal.reshape(-1)).reshape(*diagonal.shape, *diagonal.shape)

    return place


diag_part_op = op("DiagPart", "input: T -> diagonal: T", T=_TYPES, aliases=[0], snapshot=True)
diag_part_op.gradient(lambda op, dy: (F.Diag(dy),))


@diag_part_op.infer
def _(node: Node) -> Shapes:
    dims = node.dims(0)
    if dims is None:
        return None
    if len(dims) % 2 or not dims:
        raise ValueError(f"Input must have even and non-zero rank, input rank is {len(dims)}")
    half = len(dims) // 2
    return merge(dims[:half], dims[half:])


@diag_part_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def take(x: torch.Tensor) -> torch.Tensor:
        half = x.ndim // 2
        if x.ndim == 2 and x.shape[0] == x.shape[1]:
            return x.diagonal()
        if x.ndim % 2 or not x.ndim:
            raise _invalid(f"The rank of the tensor should be even and positive, got shape {list(x.shape)}")
        if x.shape[:half] != x.shape[half:]:
            raise _invalid(f"Invalid shape {list(x.shape)}: its two halves do not match")
        size = math.prod(x.shape[:half])
        return x.reshape(size, size).diagonal().reshape(x.shape[:half])

    return take


# ---- of the last two dimensions

matrix_diag_op = op("MatrixDiag", "diagonal: T -> output: T", T=None)
matrix_diag_op.gradient(lambda op, dy: (F.MatrixDiagPart(dy, name="diag_part"),))


@matrix_diag_op.infer
def _(node: Node) -> Shapes:
    dims = _at_least(1, node.dims(0))
    return None if dims is None else (*dims, dims[-1])


@matrix_diag_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    if not node.dims(0):
        return lambda x: torch.diag_embed(x) if x.ndim else _refuse_scalar()
    return Call(torch.diag_embed, X0)


def _refuse_scalar() -> NoReturn:
    raise _invalid("diagonal must be at least 1-dim, received shape: []")


matrix_diag_part_op = op("MatrixDiagPart", "input: T -> diagonal: T", T=None, aliases=[0], snapshot=True)


@matrix_diag_part_op.infer
def _(node: Node) -> Shapes:
    dims = _at_least(2, node.dims(0))
    return None if dims is None else (*dims[:-2], _smaller(dims[-2], dims[-1]))


@matrix_diag_part_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    if node.dims(0) is not None:
        return Call(torch.diagonal, X0, 0, -2, -1)

    def take(x: torch.Tensor) -> torch.Tensor:
        if x.ndim < 2:
            raise _invalid(f"input must be at least 2-dim, received shape: {list(x.shape)}")
        return x.diagonal(0, -2, -1)

    return take


@matrix_diag_part_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x = op.inputs[0]
    if x.dims is not None and x.dims[-1] is not None and x.dims[-1] == x.dims[-2]:
        return (F.MatrixDiag(dy, name="diag"),)
    return (F.MatrixSetDiag(zeros_like(x), dy, name="set_diag"),)


matrix_set_diag_op = op("MatrixSetDiag", "input: T, diagonal: T -> output: T", T=None)


@matrix_set_diag_op.infer
def _(node: Node) -> Shapes:
    dims, diagonal = _at_least(2, node.dims(0)), _at_least(1, node.dims(1))
    if dims is None:
        return None if diagonal is None else (*diagonal[:-1], None, None)
    if diagonal is not None:
        outer, (rows, columns) = merge(dims[:-2], diagonal[:-1]), dims[-2:]
        if rows is not None and columns is not None:
            merge(diagonal[-1:], (min(rows, columns),))
        return (*(outer or ()), rows, columns)
    return dims


@matrix_set_diag_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def replace(x: torch.Tensor, diagonal: torch.Tensor) -> torch.Tensor:
        expected = (*x.shape[:-2], min(x.shape[-2:]))
        if tuple(diagonal.shape) != expected:
            raise _invalid(
                "must have diagonal.shape == input.shape[:-2] + min(input.shape[-2:]), but input is "
                f"{list(x.shape)} and the diagonal {list(diagonal.shape)}"
            )
        out = whole_copy(x)
        out.diagonal(0, -2, -1).copy_(diagonal)
        return out

    return replace


@matrix_set_diag_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x = op.inputs[0] if op.inputs[0].dims is not None else dy
    shape = x.static_shape
    if shape is not None:
        nothing = zeros([*shape[:-2], min(shape[-2:])], dy.dtype)
    else:
        nothing = F.ZerosLike(F.MatrixDiagPart(dy))
    return F.MatrixSetDiag(dy, nothing, name="set_diag"), F.MatrixDiagPart(dy, name="diag_part")


# ---- bands

matrix_band_part_op = op(
    "MatrixBandPart",
    "input: T, num_lower: Tindex[?], num_upper: Tindex[?] -> band: T",
    "Tindex: type in [int32, int64] = int64",
    T=None,
    host=["num_lower", "num_upper"],
)


matrix_band_part_op.infer(lambda node: node.dims(0))


@matrix_band_part_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def keep(x: torch.Tensor, num_lower: torch.Tensor, num_upper: torch.Tensor) -> torch.Tensor:
        if x.ndim < 2:
            raise _invalid(f"input must be at least 2-dim, received shape: {list(x.shape)}")
        lower, upper = int(num_lower), int(num_upper)
        rows, columns = x.shape[-2:]
        if lower > rows:
            raise _invalid(
                f"num_lower must be negative or less or equal to number of rows ({rows}) got: {lower}"
            )
        if upper > columns:
            raise _invalid(
                f"num_upper must be negative or less or equal to number of columns ({columns}) got: {upper}"
            )
        return _kept(x, rows, columns, lower, upper)

    return keep


_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes an element


def _kept(x: torch.Tensor, rows: int, columns: int, lower: int, upper: int) -> torch.Tensor:
    """The band, in new memory: by triangles if rows are long, or else by a mask of bits."""
    if lower < 0 and upper < 0:
        return x.clone()
    is_large = x.numel() >= machine.current().profile.native_framed
    code = framed_rows(x.itemsize) if is_large and x.is_cpu else None
    if code is not None:
        found = code.band(x, rows if lower < 0 else lower, columns if upper < 0 else upper)
        if found is not None:
            return found
    if x.is_complex() or x.dtype is torch.bool or x.dtype.itemsize > 8:
        band = _band(rows, columns, lower, upper, x.device)
        return torch.where(band, x, torch.zeros((), dtype=x.dtype, device=x.device))
    word = _WORDS[x.dtype.itemsize]
    bits = x.view(word)
    if columns < 64 and x.numel() > 4 * rows * columns:
        mask = _band(rows, columns, lower, upper, x.device).to(word).neg_()
        return torch.bitwise_and(bits, mask).view(x.dtype)
    if lower < 0:
        return bits.tril(upper).view(x.dtype)
    below = bits.triu(-lower)
    return (below if upper < 0 else below.tril_(upper)).view(x.dtype)


def _band(rows: int, columns: int, lower: int, upper: int, device: torch.device) -> torch.Tensor:
    offset = torch.arange(columns, device=device) - torch.arange(rows, device=device)[:, None]
    inside = torch.ones_like(offset, dtype=torch.bool)
    if lower >= 0:
        inside &= offset >= -lower
    if upper >= 0:
        inside &= offset <= upper
    return inside


@matrix_band_part_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return F.MatrixBandPart(dy, op.inputs[1], op.inputs[2]), None, None


# ---- public functions


def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """A tensor of shape s + s, zero but for `diagonal` [s] where both halves of the index agree."""
    return diag_op(diagonal, name=name)


def diag_part(input: Any, name: str | None = None) -> Tensor:
    """The elements [s] of a tensor of shape s + s where both halves of the index agree."""
    return diag_part_op(input, name=name)


# Several diagonals, and others than the main one, are arranged as `many_diagonals` says.


def matrix_diag(
    diagonal: Any,
    name: str | None = None,
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Matrices with these diagonals, square [..., n, n] with the main ones [..., n] unless more is said.

    Args:
        diagonal: [..., n], or [..., count, n] for several diagonals, the highest first.
        name: a name for the operation.
        k: which diagonal is given, above the main one if positive; or the lowest and the highest.
        num_rows: the number of rows, -1 for the least.
        num_cols: the number of columns, -1 for the least.
        padding_value: what the other elements are.
        align: at which side the diagonals above and below the main one end that are shorter than others.
    """
    plain = _is_zero(k) and _is(num_rows, -1) and _is(num_cols, -1) and _is_zero(padding_value)
    if plain:
        return matrix_diag_op(diagonal, name=name or "diag")
    x = convert_to_tensor(diagonal, name="diagonal")
    padding = convert_to_tensor(padding_value, x.dtype)
    return F.MatrixDiagV3(x, k, num_rows, num_cols, padding, align=align, name=name or "diag")


def matrix_diag_part(
    input: Any, name: str | None = None, k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """The main diagonals [..., min(m, n)] of matrices [..., m, n], or those that `k` says (`matrix_diag`)."""
    if _is_zero(k) and _is_zero(padding_value):
        return matrix_diag_part_op(input, name=name or "diag_part")
    x = convert_to_tensor(input, name="input")
    padding = convert_to_tensor(padding_value, x.dtype)
    return F.MatrixDiagPartV3(x, k, padding, align=align, name=name or "diag_part")


def matrix_set_diag(
    input: Any, diagonal: Any, name: str | None = None, k: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """The matrices [..., m, n] with their main diagonals replaced by `diagonal` [..., min(m, n)], or those
    that `k` says (`matrix_diag`)."""
    if _is_zero(k):
        return matrix_set_diag_op(input, diagonal, name=name or "set_diag")
    return F.MatrixSetDiagV3(input, diagonal, k, align=align, name=name or "set_diag")


def _is(value: Any, number: int) -> bool:
    return isinstance(value, (int, float)) and value == number


def _is_zero(value: Any) -> bool:
    return _is(value, 0)


def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """The matrices [..., m, n] with zeros outside the central band.

    `num_lower`, `num_upper`: how many diagonals to keep below and above the main one, all if negative.
    """
    return matrix_band_part_op(input, num_lower, num_upper, name=name)


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sums of the main diagonals of matrices [..., m, n]."""
    x = convert_to_tensor(x, name="x")
    with x.graph.name_scope(name or "Trace") as scope:
        diagonal = matrix_diag_part(x)
        return F.Sum(
            diagonal, convert_to_tensor(np.array([-1], np.int32), name="reduction_indices"), name=scope
        )
