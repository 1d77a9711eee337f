"""Which of a training's snapshots to keep, by their objectives and constraints (NumPy arrays).

The distribution is that of Cotter, Jiang and Sridharan 2018, section 4.2: a vertex of the linear program has
at most m + 1 snapshots. The single best is that of their experiments: by the worst of its ranks.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

__all__ = ["find_best_candidate_distribution", "find_best_candidate_index"]


def _checked(objective_vector: Any, constraints_matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    objectives = np.asarray(objective_vector, dtype=np.float64)
    constraints = np.asarray(constraints_matrix, dtype=np.float64)
    if objectives.ndim != 1 or constraints.ndim != 2 or len(objectives) != constraints.shape[1]:
        raise ValueError("objective_vector must be [n] and constraints_matrix [m, n]")
    if not len(objectives):
        raise ValueError("there must be at least one candidate")
    return objectives, constraints


def _solve(objectives: np.ndarray, constraints: np.ndarray, bound: float) -> np.ndarray | None:
    try:
        linprog = import_module("scipy.optimize").linprog
    except ImportError as error:
        raise ImportError("find_best_candidate_distribution needs SciPy, which is not installed") from error
    m, n = constraints.shape
    result = linprog(
        objectives,
        A_ub=constraints if m else None,
        b_ub=np.full(m, bound) if m else None,
        A_eq=np.ones((1, n)),
        b_eq=[1.0],
        bounds=(0, None),
    )
    return np.asarray(result.x) if result.status == 0 else None


def find_best_candidate_distribution(
    objective_vector: Any, constraints_matrix: Any, epsilon: float = 0.0
) -> np.ndarray:
    """The distribution over candidates of least objective that violates no constraint on average.

    Where there is none, the least violation that a distribution attains is allowed.

    Args:
        objective_vector: [n] objectives.
        constraints_matrix: [m, n] constraint violations.
        epsilon: how far above the least one the allowed violation may be; at least 0.

    Returns:
        [n] probabilities, of which at most m + 1 are not 0.

    Raises:
        ValueError: other shapes, no candidates, or a negative `epsilon`.
        ImportError: SciPy is not installed.
    """
    objectives, constraints = _checked(objective_vector, constraints_matrix)
    if epsilon < 0.0:
        raise ValueError("epsilon must be nonnegative")
    found = _solve(objectives, constraints, 0.0)
    if found is not None:
        return found
    worst = np.maximum(0.0, constraints).max(axis=0)
    low, high = 0.0, float(worst.min())
    found = _solve(objectives, constraints, high)
    while high - low > epsilon and low < (middle := (low + high) / 2) < high:
        better = _solve(objectives, constraints, middle)
        low, high, found = (middle, high, found) if better is None else (low, middle, better)
    if found is None:
        raise RuntimeError("The linear program of the candidates has no solution")
    return found


def find_best_candidate_index(
    objective_vector: Any, constraints_matrix: Any, rank_objectives: bool = False
) -> int:
    """The index of the candidate whose worst rank among the constraints' violations is best.

    A rank is the number of candidates that are better. Ties are broken by the objective. Violations below 0
    count as 0.

    Args:
        objective_vector: [n] objectives.
        constraints_matrix: [m, n] constraint violations.
        rank_objectives: whether the objective is ranked among them, too.

    Raises ValueError for other shapes or no candidates.
    """
    objectives, constraints = _checked(objective_vector, constraints_matrix)
    rows = [np.maximum(0.0, row) for row in constraints]
    if rank_objectives:
        rows.append(objectives)
    ranks = [np.searchsorted(np.sort(row), row) for row in rows]
    worst = np.max(ranks, axis=0) if ranks else np.zeros(len(objectives), dtype=int)
    return int(np.lexsort((objectives, worst))[0])
