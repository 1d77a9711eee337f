"""`tf.contrib.constrained_optimization`: steps as TensorFlow 1.15.5 takes them.

The expected numbers were printed by TensorFlow 1.15.5 for the same program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf

constrained = tf.contrib.constrained_optimization
Descent = tf.train.GradientDescentOptimizer


class _Problem(constrained.ConstrainedMinimizationProblem):  # type: ignore[misc]
    def __init__(self) -> None:
        self.weights = tf.get_variable("w", initializer=[1.0, -0.5, 2.0])
        self.count = tf.get_variable("c", initializer=0.0, trainable=False)

    @property
    def objective(self) -> Any:
        return tf.reduce_sum(tf.square(self.weights - 3.0))

    @property
    def constraints(self) -> Any:
        w = self.weights
        return tf.stack([w[0] - 1.0, w[1] - w[2] + 0.5, tf.reduce_sum(w) - 4.0])

    @property
    def proxy_constraints(self) -> Any:
        return 2 * tf.tanh(self.constraints)

    @property
    def pre_train_ops(self) -> list[Any]:
        return [tf.assign_add(self.count, 1.0)]


_CASES: dict[str, tuple[Callable[[], Any], list[float], Any]] = {
    "external": (
        lambda: constrained.AdditiveExternalRegretOptimizer(Descent(0.1)),
        [2.16477, 1.56417, 2.58817],
        [0.2091, 0.0, 0.2507],
    ),
    "bounded": (
        lambda: constrained.AdditiveExternalRegretOptimizer(Descent(0.1), Descent(1.0), 0.5),
        [2.10142, 1.56322, 2.58722],
        [0.042, 0.0, 0.458],
    ),
    "swap": (
        lambda: constrained.AdditiveSwapRegretOptimizer(Descent(0.1), Descent(1.0)),
        [2.01535, 1.35131, 2.5246],
        [
            [0.0, 0.72929, 1.0, 0.8608],
            [0.36995, 0.05706, 0.0, 0.01795],
            [0.0, 0.0, 0.0, 0.0],
            [0.63005, 0.21365, 0.0, 0.12126],
        ],
    ),
    "multiplicative": (
        lambda: constrained.MultiplicativeSwapRegretOptimizer(Descent(0.1), Descent(1.0), 0.01, 0.2),
        [2.04425, 1.38538, 2.53686],
        [
            [-0.30371, -0.16049, -0.15371, -0.15432],
            [-1.53046, -2.83652, -2.97228, -2.95557],
            [-5.99146, -3.36197, -3.12143, -3.15011],
            [-3.11243, -2.90086, -3.05341, -3.03442],
        ],
    ),
}


@pytest.mark.parametrize("name", _CASES)
def test_four_constrained_steps(name: str) -> None:
    make, weights, state = _CASES[name]
    with tf.Graph().as_default(), tf.Session() as session:
        problem, step = _Problem(), tf.train.get_or_create_global_step()
        optimizer = make()
        train = optimizer.minimize_constrained(problem, global_step=step)
        kind = "external" if name in ("external", "bounded") else "swap"
        assert tf.global_variables()[-1].name == f"{kind}_regret_optimizer_state:0"
        assert tf.trainable_variables() == [problem.weights]
        assert problem.num_constraints == 3
        session.run(tf.global_variables_initializer())
        for _ in range(4):
            session.run(train)
        assert session.run([step, problem.count]) == [4, 4.0]
        np.testing.assert_allclose(session.run(problem.weights), weights, atol=2e-4)
        np.testing.assert_allclose(session.run(tf.global_variables()[-1]), state, atol=1e-3)
        assert isinstance(optimizer.optimizer, Descent)
        assert (optimizer.constraint_optimizer is None) == (name == "external")


def test_the_first_steps_may_be_unconstrained() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        problem, step = _Problem(), tf.train.get_or_create_global_step()
        optimizer = constrained.AdditiveExternalRegretOptimizer(Descent(0.1), Descent(1.0))
        free = optimizer.minimize_unconstrained(problem)
        train = optimizer.minimize(problem, unconstrained_steps=2, global_step=step)
        session.run(tf.global_variables_initializer())
        session.run(free)
        np.testing.assert_allclose(session.run(problem.weights), [1.4, 0.2, 2.2], rtol=1e-6)
        state = tf.global_variables()[-1]
        for count in (1, 2):
            session.run(train)
            assert session.run(step) == count
            assert not session.run(state).any()
        session.run(train)
        assert session.run(state)[0] > 0
        with pytest.raises(ValueError, match="global_step cannot be None"):
            optimizer.minimize(problem, unconstrained_steps=2)
        optimizer.minimize(problem)


def test_bad_arguments_are_refused() -> None:
    swap = constrained.MultiplicativeSwapRegretOptimizer
    with pytest.raises(ValueError, match="strictly positive"):
        constrained.AdditiveExternalRegretOptimizer(Descent(0.1), maximum_multiplier_radius=-1)
    for radius in (0, 1.5):
        with pytest.raises(ValueError, match="minimum_multiplier_radius must be"):
            swap(Descent(0.1), minimum_multiplier_radius=radius)
    with pytest.raises(ValueError, match="initial_multiplier_radius must be"):
        swap(Descent(0.1), minimum_multiplier_radius=0.5, initial_multiplier_radius=0.2)
    for abstract in (constrained.ConstrainedMinimizationProblem, constrained.ConstrainedOptimizer):
        with pytest.raises(TypeError, match="abstract"):
            abstract()


_SEVEN = np.random.RandomState(0)
_OBJECTIVES, _CONSTRAINTS = _SEVEN.randn(7), _SEVEN.randn(3, 7)


def test_best_candidate() -> None:
    """TensorFlow 1.15.5 gave these."""
    best = constrained.find_best_candidate_index
    objectives = np.array([1.0, 2.0, 0.5, 3.0, 0.7])
    constraints = np.array([[0.1, -0.2, 0.3, -0.5, 0.2], [-0.1, 0.2, 0.4, -0.1, -0.05]])
    assert best(objectives, constraints) == 3
    assert best(objectives, constraints, rank_objectives=True) == 0
    assert best(_OBJECTIVES, _CONSTRAINTS) == 6
    with pytest.raises(ValueError, match="must be"):
        best(objectives, constraints.T)


def test_best_mixture_of_candidates() -> None:
    """TensorFlow 1.15.5 gave these."""
    pytest.importorskip("scipy", reason="the linear programs are SciPy's")
    best = constrained.find_best_candidate_distribution
    for epsilon, expected in {
        0.0: [0.27729, 0, 0, 0, 0, 0, 0.72271],
        0.05: [0.08364, 0.16898, 0, 0, 0, 0, 0.74739],
        0.3: [0, 0.27247, 0, 0, 0, 0.09584, 0.63169],
    }.items():
        found = best(_OBJECTIVES, _CONSTRAINTS, epsilon)
        np.testing.assert_allclose(found, expected, atol=1e-4)
    with pytest.raises(ValueError, match="nonnegative"):
        best(_OBJECTIVES, _CONSTRAINTS, -1.0)
