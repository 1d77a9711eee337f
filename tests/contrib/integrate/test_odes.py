"""Solutions of differential equations; the numbers are TensorFlow 1.15.5's where none is derived."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowstone as tf

integrate = tf.contrib.integrate


@pytest.fixture(autouse=True)
def own_graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(tensors: Any) -> Any:
    with tf.Session() as session:
        return session.run(tensors)


def decay(y: Any, t: Any) -> Any:
    return -y


def test_steps_that_adapt() -> None:
    times = np.linspace(0, 2, 5)
    y, info = integrate.odeint(decay, tf.constant([1.0, 2.0], tf.float64), times, full_output=True)
    assert y.op.name.startswith("odeint") and y.shape.as_list() == [5, 2]
    found, info = run([y, info])
    np.testing.assert_allclose(found, np.exp(-times)[:, None] * [1, 2], rtol=1e-6)
    assert info["num_func_evals"] == 61
    ends = [
        1.0,
        0.23738498,
        0.48845493,
        0.73925843,
        0.99006713,
        1.24087574,
        1.49168437,
        1.74249304,
        1.99330174,
    ]
    np.testing.assert_allclose(info["integrate_points"], [*ends, 2.24411049], rtol=1e-6)
    np.testing.assert_allclose(info["error_ratio"][:3], [783.332746, 0.446174922, 0.593633202], rtol=1e-5)


def test_solutions_of_other_types_and_equations() -> None:
    turned = integrate.odeint(lambda y, t: 1j * y, tf.constant([1.0 + 0j, 2.0], tf.complex128), [0.0, 1.0])
    np.testing.assert_allclose(run(turned)[1], np.exp(1j) * np.array([1, 2]), rtol=1e-5)
    single = integrate.odeint(decay, tf.constant([[1.0], [2.0]]), [0.0, 1.0, 3.0])
    assert single.shape.as_list() == [3, 2, 1]
    np.testing.assert_allclose(run(single)[:, 0, 0], np.exp([0.0, -1.0, -3.0]), rtol=1e-4)
    timed = integrate.odeint(lambda y, t: tf.cos(t) * y, tf.constant(1.0, tf.float64), np.linspace(0, 3, 4))
    np.testing.assert_allclose(run(timed), np.exp(np.sin(np.linspace(0, 3, 4))), rtol=1e-5)


def test_gradients_reach_the_start() -> None:
    start = tf.constant(1.5, tf.float64)
    end = integrate.odeint_fixed(lambda y, t: -y * y, start, np.linspace(0, 1, 11))[-1]
    np.testing.assert_allclose(run(tf.gradients(end, start)[0]), 1 / (1 + 1.5) ** 2, rtol=1e-4)


def test_options() -> None:
    options = {"first_step": 0.01, "safety": 0.8, "ifactor": 5.0, "dfactor": 0.3, "max_num_steps": 100}
    y = integrate.odeint(decay, tf.constant(1.0), [0.0, 1.0], method="dopri5", options=options)
    np.testing.assert_allclose(run(y), [1, np.exp(-1)], rtol=1e-5)
    few = integrate.odeint(decay, tf.constant(1.0), [0.0, 1.0], method="dopri5", options={"max_num_steps": 2})
    with pytest.raises(tf.errors.InvalidArgumentError, match="max_num_steps"):
        run(few)


# The last of five times from 0 to 2 for dy/dt = -y t, from TensorFlow 1.15.5.
@pytest.mark.parametrize(
    ("method", "dt", "last"),
    [
        ("midpoint", 0.3, [0.13697358, 0.27394716]),
        ("midpoint", None, [0.14151859, 0.28303719]),
        ("rk4", 0.3, [0.13539583, 0.27079165]),
        ("rk4", None, [0.13649169, 0.27298338]),
    ],
)
def test_steps_of_a_given_length(method: str, dt: Any, last: list[float]) -> None:
    start = tf.constant([1.0, 2.0], tf.float64)
    y = integrate.odeint_fixed(lambda y, t: -y * t, start, np.linspace(0, 2, 5), dt=dt, method=method)
    np.testing.assert_allclose(run(y)[-1], last, rtol=1e-6)
    assert y.shape.as_list() == [5, 2]


def test_bad_input() -> None:
    y = tf.constant([1.0, 2.0])
    with pytest.raises(TypeError, match="floating"):
        integrate.odeint(decay, tf.constant([1, 2]), [0.0, 1.0])
    with pytest.raises(ValueError, match="invalid method"):
        integrate.odeint(decay, y, [0.0, 1.0], method="euler")
    with pytest.raises(ValueError, match="without specifying"):
        integrate.odeint(decay, y, [0.0, 1.0], options={"first_step": 1.0})
    with pytest.raises(TypeError):
        integrate.odeint(decay, y, [0.0, 1.0], method="dopri5", options={"first": 1.0})
    with pytest.raises(tf.errors.InvalidArgumentError, match="monotonic"):
        run(integrate.odeint(decay, y, [1.0, 0.0]))
    with pytest.raises(ValueError, match="not supported"):
        integrate.odeint_fixed(decay, y, [0.0, 1.0], method="euler")
    with pytest.raises(ValueError, match="incompatible lengths"):
        integrate.odeint_fixed(decay, y, [0.0, 1.0], dt=[0.1, 0.2])
    with pytest.raises(ValueError, match="1D"):
        integrate.odeint_fixed(decay, y, [[0.0, 1.0]])
