"""Shapes of matrices [..., rows, columns]: what inference knows of them, and what a step refuses.

Inference raises ValueError, a kernel InvalidArgumentError. Work on n x n matrices is counted here too.

>>> square((2, None, 3)), leading((2, 3, 3)), smaller(2, None)
((2, 3, 3), (2,), None)
"""

from __future__ import annotations

import cmath
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import Environment
from flowstone.framework.machine.machine_code import small_matrices
from flowstone.framework.machine.matrix_kernels import SmallMatrices
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims, format_dims, merge

# ---- before the step


def at_least(rank: int, dims: Dims) -> Dims:
    """The shape itself. ValueError if it has fewer dimensions."""
    if dims is not None and len(dims) < rank:
        raise ValueError(f"Shape must be at least rank {rank} but is rank {len(dims)}: {format_dims(dims)}")
    return dims


def exactly(rank: int, dims: Dims) -> Dims:
    """The shape itself. ValueError if it has more or fewer dimensions."""
    if dims is not None and len(dims) != rank:
        raise ValueError(f"Shape must be rank {rank} but is rank {len(dims)}: {format_dims(dims)}")
    return dims


def leading(dims: Dims, last: int = 2) -> Dims:
    """The dimensions before the last ones."""
    return None if dims is None else dims[:-last]


def square(dims: Dims) -> Dims:
    """The shape of square matrices, both sides known if either is. ValueError if they differ."""
    if at_least(2, dims) is None or dims is None:
        return None
    size = same_size(dims[-1], dims[-2])
    return (*dims[:-2], size, size)


def same_size(a: int | None, b: int | None) -> int | None:
    """The size that both are. ValueError if they differ."""
    if a is not None and b is not None and a != b:
        raise ValueError(f"Dimensions must be equal, but are {a} and {b}")
    return b if a is None else a


def smaller(a: int | None, b: int | None) -> int | None:
    """The smaller of two sizes, as far as it is known."""
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None else min(a, b)


def square_shape(node: Node) -> Dims:
    """Infers square matrices of the input's shape."""
    return square(node.dims(0))


def square_dims_of(node: Node) -> tuple[Dims, Dims]:
    """The shape of the square matrices of input 0, and that before the matrices."""
    dims = square(node.dims(0))
    return dims, leading(dims)


def solution_shape(node: Node) -> Dims:
    """Infers [..., n, k] for square matrices [..., n, n] and right-hand sides [..., n, k]."""
    matrix, rhs = square(node.dims(0)), at_least(2, node.dims(1))
    if matrix is None or rhs is None:
        return rhs if matrix is None else (*matrix[:-1], None)
    outer = merge(matrix[:-2], rhs[:-2])
    return (*(outer or ()), same_size(matrix[-1], rhs[-2]), rhs[-1])


# ---- in the step


def invalid(message: str) -> errors.InvalidArgumentError:
    """The error of bad values; the step adds the node."""
    return errors.InvalidArgumentError(None, None, message)


def check_matrix(x: torch.Tensor) -> None:
    """InvalidArgumentError if x has fewer than two dimensions."""
    if x.ndim < 2:
        raise invalid(f"Input tensor 0 must have rank >= 2, got shape {list(x.shape)}")


def are_finite(x: torch.Tensor) -> bool:
    """Whether no element is NaN or infinite."""
    return cmath.isfinite(x.sum().item()) or bool(torch.isfinite(x).all())  # a sum may overflow


def check_square(x: torch.Tensor) -> None:
    """InvalidArgumentError if x is not made of square matrices."""
    check_matrix(x)
    if x.shape[-1] != x.shape[-2]:
        raise invalid(f"Input matrix must be square, got shape {list(x.shape)}")


def check_sides(matrix: torch.Tensor, rhs: torch.Tensor, broadcasts: bool = False) -> None:
    """InvalidArgumentError if the right-hand sides do not suit the matrices."""
    check_matrix(matrix)
    check_matrix(rhs)
    fits = matrix.shape[-2] == rhs.shape[-2] and (broadcasts or matrix.shape[:-2] == rhs.shape[:-2])
    if not fits:
        raise invalid(f"Input matrix and rhs are incompatible: {list(matrix.shape)} and {list(rhs.shape)}")


# ---- kernels


def code_for_small(dtype: DType, env: Environment) -> SmallMatrices | None:
    """What computes with small matrices of a type on this device by machine code, if anything does."""
    return small_matrices(dtype.torch) if env.device.type == "cpu" else None


# ---- work


def cubic(each: float) -> work.Cost:
    """The cost of `each` n³ operations for every square matrix, m n² or m² n for others (the less)."""

    def cost(node: Node) -> float:
        dims: Any = node.dims(0)
        if dims is None or len(dims) < 2:
            return each * work.ASSUMED_SIZE * work.ASSUMED_ELEMENTS
        sides = [work.ASSUMED_SIZE if size is None else size for size in dims[-2:]]
        return each * min(sides) * work.count(node.inputs[0])

    return cost


def solving(node: Node) -> float:
    """n² operations twice for every column of the right-hand sides, and n³ for the factors."""
    sides = work.element_count(node.dims(0)), work.count(node.inputs[1])
    return 2.0 * sides[1] * _side(node) + 2 / 3 * sides[0] * _side(node)


def substituting(node: Node) -> float:
    """n² operations for every column of the right-hand sides."""
    return 1.0 * work.count(node.inputs[1]) * _side(node)


def _side(node: Node) -> int:
    dims = node.dims(0)
    return (dims[-1] if dims else None) or work.ASSUMED_SIZE
