"""Gamma, Poisson, binomial, truncated values by seeds: TensorFlow 2.21's numbers, distributions, shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

pytestmark = pytest.mark.usefixtures("graph")

RANDOM = tf.random
GAMMA = [[0.0334768071770668, 1.6680033206939697], [0.3141177296638489, 1.1091402769088745]]
POISSON = [25, 23, 27, 25]
BINOMIAL = [46, 43, 47, 53]


def run(*tensors: Any) -> Any:
    with tf.Session() as session:
        return session.run(list(tensors))


def test_values_are_tensorflows() -> None:
    gamma, poisson, binomial = run(
        RANDOM.stateless_gamma([2, 2], [1, 2], [0.5, 2.0], beta=2.0),
        RANDOM.stateless_poisson([4], [1, 2], 20.0),
        RANDOM.stateless_binomial([4], [1, 2], 100.0, 0.4),
    )
    np.testing.assert_allclose(gamma, GAMMA, rtol=1e-6)
    assert poisson.tolist() == POISSON and poisson.dtype == np.int32
    assert binomial.tolist() == BINOMIAL and binomial.dtype == np.int32


def test_means_and_variances() -> None:
    gamma, poisson, binomial = run(
        RANDOM.stateless_gamma([20000, 2], [3, 4], [0.5, 5.0], dtype=tf.float64),
        RANDOM.stateless_poisson([20000, 2], [3, 4], [3.0, 50.0], dtype=tf.float64),
        RANDOM.stateless_binomial([20000, 2], [3, 4], [10.0, 200.0], [0.2, 0.7], output_dtype=tf.float64),
    )
    for values, means, variances in (
        (gamma, (0.5, 5), (0.5, 5)),
        (poisson, (3, 50), (3, 50)),
        (binomial, (2, 140), (1.6, 42)),
    ):
        np.testing.assert_allclose(values.mean(0), means, rtol=0.03)
        np.testing.assert_allclose(values.var(0), variances, rtol=0.06)


def test_truncated_values_are_within_their_bounds_and_normal_there() -> None:
    values = RANDOM.stateless_parameterized_truncated_normal(
        [20000, 2], [1, 2], [0.0, 10.0], 2.0, [-1.0, 14.0], [3.0, 15.0]
    )
    assert values.shape.as_list() == [20000, 2]
    (got,) = run(values)
    assert (got.min(0) >= [-1.0, 14.0]).all() and (got.max(0) <= [3.0, 15.0]).all()
    # Of a normal distribution of deviation 2, cut at -1 and 3, and at 4 and 5.
    np.testing.assert_allclose(got.mean(0), [0.71255, 14.4089], rtol=0.02)


def test_a_shape_must_end_with_that_of_the_parameters() -> None:
    values = RANDOM.stateless_poisson([3, 2], [1, 2], [1.0, 2.0, 3.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[3, 2\] does not with \[3\]"):
        run(values)


@pytest.mark.parametrize(("rows", "is_there"), [(0, False), (1, False), (2, True)])
def test_one_row_has_one_order(rows: int, is_there: bool) -> None:
    """It is handed on, also from a variable that changes afterwards."""
    with tf.Graph().as_default(), tf.Session() as session:
        value = np.arange(3.0 * rows, dtype=np.float32).reshape(rows, 3)
        variable = tf.Variable(value, use_resource=True)
        key, counter, one = np.ones(1, np.uint64), np.ones(2, np.uint64), np.int32(1)
        shuffled = F.StatelessShuffle(variable.read_value(), key, counter, one)
        with tf.control_dependencies([shuffled]):
            changed = tf.assign(variable, variable + 1)
        session.run(variable.initializer)
        plan = session.explain([shuffled, changed.op])
        assert ("StatelessShuffle(" in plan) == is_there
        found, _ = session.run([shuffled, changed])
        np.testing.assert_array_equal(np.sort(found, 0), value)
