"""Multipliers as the stationary distribution of a matrix that is learnt: play of little swap regret.

Cotter, Jiang and Sridharan, "Two-Player Games for Efficient Non-Convex Constrained Optimization", 2018,
algorithm 2. The matrix's columns are distributions over the objective and the constraints, m + 1 in all.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import flowstone as tf
from flowstone.contrib.constrained_optimization.constrained_optimizer import (
    ConstrainedOptimizer,
    flat_constraints,
    make_state,
    step_of_players,
)
from flowstone.contrib.constrained_optimization.external_regret_optimizer import project_to_simplex

__all__ = ["AdditiveSwapRegretOptimizer", "MultiplicativeSwapRegretOptimizer"]

_SQUARINGS = 14


def _stationary(matrix: Any) -> Any:
    """The eigenvector of the greatest eigenvalue, of sum 1, by a high power of the matrix.

    Half a step of rest between steps leaves the eigenvector and makes a periodic matrix converge.
    """
    size = matrix.shape.as_list()[0]
    power = (matrix + tf.eye(size, dtype=matrix.dtype)) / 2.0
    for _ in range(_SQUARINGS):
        power = tf.matmul(power, power)
        power = power / tf.reduce_sum(power) * size
    vector = tf.reduce_sum(power, 1)
    return vector / tf.reduce_sum(vector)


class _SwapRegretOptimizer(ConstrainedOptimizer):
    """The state is the variable `swap_regret_optimizer_state`, [m + 1, m + 1]."""

    def __init__(self, optimizer: Any, constraint_optimizer: Any = None) -> None:
        super().__init__(optimizer)
        self._constraint_optimizer = constraint_optimizer

    @property
    def constraint_optimizer(self) -> Any:
        """The optimiser of the matrix; None: that of the model."""
        return self._constraint_optimizer

    @abstractmethod
    def _initial_state(self, size: int) -> Any:
        """The first state as nested lists."""

    @abstractmethod
    def _matrix(self, state: Any) -> Any:
        """The stochastic matrix of a state."""

    @abstractmethod
    def _project(self, state: Any) -> Any:
        """The nearest state that is allowed."""

    def _minimize_constrained(
        self, minimization_problem: Any, global_step: Any, options: dict[str, Any]
    ) -> Any:
        constraints, proxies = flat_constraints(minimization_problem)
        size = minimization_problem.num_constraints + 1
        state = make_state(self._initial_state(size), constraints.dtype, "swap_regret_optimizer_state")
        weights = tf.stop_gradient(_stationary(self._matrix(state.read_value())))
        objective = minimization_problem.objective
        losses = tf.concat([tf.reshape(objective, [1]), tf.cast(proxies, objective.dtype)], 0)
        loss = tf.tensordot(tf.cast(weights, losses.dtype), losses, 1)
        rewards = tf.concat([tf.zeros([1], constraints.dtype), constraints], 0)
        ascent = rewards[:, None] * weights[None, :]
        players = (self._optimizer, self._constraint_optimizer or self._optimizer)
        return step_of_players(players, loss, state, ascent, self._project, global_step, options)


class AdditiveSwapRegretOptimizer(_SwapRegretOptimizer):
    """The matrix itself ascends, and its columns are projected to the simplex.

    Args:
        optimizer: of the model.
        constraint_optimizer: of the matrix; default: `optimizer`.
    """

    def __init__(self, optimizer: Any, constraint_optimizer: Any = None) -> None:
        super().__init__(optimizer, constraint_optimizer)

    def _initial_state(self, size: int) -> Any:
        return [[1.0] * size] + [[0.0] * size] * (size - 1)

    def _matrix(self, state: Any) -> Any:
        return state

    def _project(self, state: Any) -> Any:
        return project_to_simplex(state, 1.0)


class MultiplicativeSwapRegretOptimizer(_SwapRegretOptimizer):
    """The logarithm of the matrix ascends, and its columns are normalised.

    Args:
        optimizer: of the model.
        constraint_optimizer: of the matrix; default: `optimizer`.
        minimum_multiplier_radius: the least sum of the constraints' weights, of which each element of a
            column has at least an equal part.
        initial_multiplier_radius: the same at first; default: the least.

    Raises ValueError for radii that are not in order in (0, 1].
    """

    def __init__(
        self,
        optimizer: Any,
        constraint_optimizer: Any = None,
        minimum_multiplier_radius: float = 1e-3,
        initial_multiplier_radius: float | None = None,
    ) -> None:
        super().__init__(optimizer, constraint_optimizer)
        if not 0.0 < minimum_multiplier_radius < 1.0:
            raise ValueError("minimum_multiplier_radius must be in the range (0,1)")
        initial = initial_multiplier_radius
        if initial is None:
            initial = minimum_multiplier_radius
        if not minimum_multiplier_radius <= initial <= 1.0:
            raise ValueError("initial_multiplier_radius must be in the range [minimum_multiplier_radius,1]")
        self._minimum_radius = minimum_multiplier_radius
        self._initial_radius = initial

    def _initial_state(self, size: int) -> Any:
        part = self._initial_radius / size
        first = math.log(1.0 - self._initial_radius + part)
        return [[first] * size] + [[math.log(part)] * size] * (size - 1)

    def _matrix(self, state: Any) -> Any:
        return tf.exp(state)

    def _project(self, state: Any) -> Any:
        least = math.log(self._minimum_radius / state.shape.as_list()[0])
        return tf.maximum(state - tf.reduce_logsumexp(state, 0, keepdims=True), least)
