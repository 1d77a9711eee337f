"""Lagrange multipliers that ascend while the model descends: play of little external regret.

Cotter, Jiang and Sridharan, "Two-Player Games for Efficient Non-Convex Constrained Optimization", 2018,
algorithm 1 with proxy constraints in the model's gradients.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.constrained_optimization.constrained_optimizer import (
    ConstrainedOptimizer,
    flat_constraints,
    make_state,
    step_of_players,
)

__all__ = ["AdditiveExternalRegretOptimizer"]


def project_to_simplex(columns: Any, radius: float) -> Any:
    """Each column's nearest point of elements of at least 0 that sum to `radius` (Duchi et al. 2008)."""
    size = columns.shape.as_list()[0]
    ordered = tf.transpose(tf.nn.top_k(tf.transpose(columns), k=size)[0])
    counts = tf.reshape(tf.range(1, size + 1, dtype=columns.dtype), [size, 1])
    shifts = (tf.cumsum(ordered) - radius) / counts
    positive = tf.cast(ordered > shifts, columns.dtype)
    last = tf.reduce_sum(positive, 0, keepdims=True)
    shift = tf.reduce_sum(shifts * tf.cast(tf.equal(counts, last), columns.dtype), 0, keepdims=True)
    return tf.maximum(columns - shift, 0.0)


class AdditiveExternalRegretOptimizer(ConstrainedOptimizer):
    """Gradient ascent of the multipliers, which are the variable `external_regret_optimizer_state`.

    Args:
        optimizer: of the model.
        constraint_optimizer: of the multipliers; default: `optimizer`.
        maximum_multiplier_radius: the greatest sum of the multipliers; None: no bound.

    Raises ValueError for a radius that is not positive.
    """

    def __init__(
        self, optimizer: Any, constraint_optimizer: Any = None, maximum_multiplier_radius: float | None = None
    ) -> None:
        super().__init__(optimizer)
        if maximum_multiplier_radius is not None and maximum_multiplier_radius <= 0.0:
            raise ValueError("maximum_multiplier_radius must be strictly positive")
        self._constraint_optimizer = constraint_optimizer
        self._radius = maximum_multiplier_radius

    @property
    def constraint_optimizer(self) -> Any:
        """The optimiser of the multipliers."""
        return self._constraint_optimizer

    def _project(self, multipliers: Any) -> Any:
        positive = tf.maximum(multipliers, 0.0)
        if self._radius is None:
            return positive
        on_bound = project_to_simplex(multipliers[:, None], self._radius)[:, 0]
        return tf.where(tf.reduce_sum(positive) <= self._radius, positive, on_bound)

    def _minimize_constrained(
        self, minimization_problem: Any, global_step: Any, options: dict[str, Any]
    ) -> Any:
        constraints, proxies = flat_constraints(minimization_problem)
        zeros = [0.0] * minimization_problem.num_constraints
        state = make_state(zeros, constraints.dtype, "external_regret_optimizer_state")
        multipliers = tf.stop_gradient(state.read_value())
        objective = minimization_problem.objective
        loss = objective + tf.tensordot(tf.cast(multipliers, proxies.dtype), proxies, 1)
        players = (self._optimizer, self._constraint_optimizer or self._optimizer)
        return step_of_players(players, loss, state, constraints, self._project, global_step, options)
