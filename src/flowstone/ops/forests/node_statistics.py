"""What the gradients and Hessians of the examples at a node say: the node's best leaf, and what it gains.

The loss near where it is, g w + w H w / 2 + l2 w² / 2, is least at w = -g / (H + l2), which gains g² / (H +
l2). Of several outputs H is a matrix (full Hessian), or its diagonal. A node of no more weight than the
least, which is the norm of H, stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from flowstone.ops.arrays.arrays import invalid

__all__ = ["DIAGONAL_HESSIAN", "FULL_HESSIAN", "TREE_PER_CLASS", "Leaves", "Penalties"]

Array = np.ndarray[Any, Any]
TREE_PER_CLASS, FULL_HESSIAN, DIAGONAL_HESSIAN = 1, 2, 3


class Leaves(NamedTuple):
    """The best leaves of some nodes: `weights` is float32 [nodes, outputs], `heavy` is false for those that
    stay as they are.
    """

    weights: Array
    gains: Array
    heavy: Array


class Penalties(NamedTuple):
    """What a leaf and a split cost, and which of the strategies for several outputs is asked for."""

    l1: float
    l2: float
    complexity: float
    least_weight: float
    strategy: int

    def leaves(self, gradients: Array, hessians: Array) -> Leaves:
        """The best leaves of nodes with these sums.

        Args:
            gradients: float32 [nodes] or [nodes, outputs].
            hessians: float32 [nodes], [nodes, outputs], or [nodes, outputs, outputs].
        """
        return _STRATEGIES[self.strategy](self, gradients, hessians)

    def check(self) -> None:
        """InvalidArgumentError for a strategy that is none."""
        if self.strategy not in _STRATEGIES:
            raise invalid(f"multiclass_strategy is {self.strategy}, not 1, 2 or 3")


def _scalars(penalties: Penalties, gradients: Array, hessians: Array) -> Leaves:
    g, h = gradients.reshape(len(gradients)), hessians.reshape(len(hessians))
    l1 = np.float32(penalties.l1)
    heavy = h > np.float32(penalties.least_weight)
    shrunk = np.where(g > l1, g - l1, np.where(g < -l1, g + l1, np.float32(0))) if l1 > 0 else g
    curvature = np.where(heavy, h + np.float32(penalties.l2), np.float32(1))
    settled = heavy & (np.abs(g) > l1) if l1 > 0 else heavy
    weights = np.where(settled, -shrunk / curvature, np.float32(0))
    gains = np.where(settled, shrunk * shrunk / curvature, np.float32(0))
    return Leaves(weights[:, None], gains, np.ones(len(g), bool))


def _diagonals(penalties: Penalties, gradients: Array, hessians: Array) -> Leaves:
    heavy = np.sqrt(np.sum(hessians * hessians, 1)) > np.float32(penalties.least_weight)
    curvature = hessians + np.float32(penalties.l2)
    solvable = curvature != 0
    weights = np.where(solvable, -gradients / np.where(solvable, curvature, 1), np.float32(-0.0))
    return Leaves(weights, np.where(heavy, -np.sum(gradients * weights, 1), np.float32(0)), heavy)


def _matrices(penalties: Penalties, gradients: Array, hessians: Array) -> Leaves:
    outputs = gradients.shape[1]
    heavy = np.sqrt(np.sum(hessians * hessians, (1, 2))) > np.float32(penalties.least_weight)
    matrices = hessians + np.float32(penalties.l2) * np.eye(outputs, dtype=np.float32)
    weights = np.zeros_like(gradients)
    if heavy.any():
        weights[heavy] = -_solved(matrices[heavy], gradients[heavy])
    return Leaves(weights, np.where(heavy, -np.sum(gradients * weights, 1), np.float32(0)), heavy)


def _solved(matrices: Array, vectors: Array) -> Array:
    """x of A x = b; of a singular A the solution with as many zeros as the rank leaves."""
    singular = np.linalg.matrix_rank(matrices) < matrices.shape[1]
    found = np.empty_like(vectors)
    if not singular.all():
        found[~singular] = np.linalg.solve(matrices[~singular], vectors[~singular][..., None])[..., 0]
    for at in np.flatnonzero(singular):
        found[at] = _basic_solution(matrices[at], vectors[at])
    return found


def _basic_solution(matrix: Array, vector: Array) -> Array:
    """The least squares solution by the columns that a QR decomposition takes first."""
    rest, columns = matrix.astype(np.float64), list[int]()
    for _ in range(int(np.linalg.matrix_rank(matrix))):
        norms = np.sum(rest * rest, 0)
        norms[columns] = -1
        column = int(norms.argmax())
        columns.append(column)
        direction = rest[:, column] / np.linalg.norm(rest[:, column])
        rest = rest - np.outer(direction, direction @ rest)
    found = np.zeros(len(vector), np.float32)
    if columns:
        found[columns] = np.linalg.lstsq(matrix[:, columns], vector, rcond=None)[0]
    return found


_STRATEGIES: dict[int, Callable[[Penalties, Array, Array], Leaves]] = {
    TREE_PER_CLASS: _scalars,
    FULL_HESSIAN: _matrices,
    DIAGONAL_HESSIAN: _diagonals,
}
