"""What models, heads and state managers refuse, and the densities and matrices of `math_utils`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.contrib.timeseries import series_programs

import flowstone as tf

ts = tf.contrib.timeseries
maths = series_programs.module(tf, "math_utils")
managers = series_programs.module(tf, "state_management")


def run(make: Any) -> Any:
    """What tensors made in a graph of their own are."""
    with tf.Graph().as_default(), tf.Session() as session:
        made = make()
        session.run(tf.global_variables_initializer())
        return session.run(made)


def spec(
    features: dict[str, Any], mode: str = "train", head: Any = ts.OneShotPredictionHead, labels: Any = None
) -> Any:
    """The EstimatorSpec of a head of a small model."""
    model = ts.ARModel(None, 2, 1, 1)
    with tf.Graph().as_default():
        tf.train.get_or_create_global_step()
        tensors = {name: tf.constant(value) for name, value in features.items()}
        made = head(model, managers.FilteringOnlyStateManager(), tf.train.AdamOptimizer())
        return made.create_estimator_spec(tensors, mode, labels)


TIMES, VALUES = [[1, 2, 3]], [[[1.0], [2.0], [3.0]]]


@pytest.mark.parametrize(
    ("features", "mode", "message"),
    [
        ({"times": TIMES}, "train", "needs the feature 'values'"),
        ({"values": VALUES}, "eval", "needs the feature 'times'"),
        ({"times": TIMES, "values": VALUES}, "infer", "needs the feature 'start_tuple'"),
        ({"times": TIMES, "values": [[[1.0]] * 2]}, "train", "does not begin"),
        ({"times": TIMES, "values": [[[1.0, 2.0]] * 3]}, "train", "num_features=1"),
        ({"times": [1, 2, 3], "values": VALUES}, "train", r"\[batch, window\]"),
        ({"times": [[1, 2]], "values": [[[1.0]] * 2]}, "train", "window_size=3"),
        ({"times": [[1, 2]], "values": [[[1.0]] * 2]}, "eval", "at least 3 times"),
        ({"times": TIMES, "values": VALUES, "start_tuple": [1.0]}, "train", "cannot begin in a state"),
        ({"times": TIMES, "values": VALUES}, "other", "the mode is one of"),
    ],
)
def test_features_that_do_not_fit_are_refused(features: Any, mode: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        spec(features, mode)


def test_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="has no labels"):
        spec({"times": TIMES, "values": VALUES}, labels=[1])


def test_a_given_state_is_refused_by_a_manager_without_one() -> None:
    with pytest.raises(ValueError, match="cannot begin in a state"):
        managers.PassthroughStateManager().define_loss(None, {"start_tuple": ()}, "eval")


def test_arguments_of_regressors_are_checked() -> None:
    with pytest.raises(ValueError, match="not anomaly_prior_probability"):
        ts.ARRegressor(1, 1, 1, 1, anomaly_distribution="cauchy")
    with pytest.raises(ValueError, match="normal_likelihood_loss"):
        ts.ARRegressor(1, 1, 1, 1, anomaly_prior_probability=0.1, loss="squared_loss")
    with pytest.raises(AssertionError, match="an input window or a period"):
        ts.ARModel(None, 0, 1, 1)


def test_what_is_not_here_says_what_to_use() -> None:
    with pytest.raises(
        Exception, match=r"StructuralEnsembleRegressor.*use tf\.contrib\.timeseries\.ARRegressor"
    ):
        ts.StructuralEnsembleRegressor(periodicities=3, num_features=1)


def test_an_anomaly_is_gaussian_by_default() -> None:
    regressor = ts.ARRegressor(1, 1, 1, 1, anomaly_prior_probability=0.1)
    assert regressor._model._anomaly_distribution == "gaussian"


def test_matrices_are_raised_each_to_its_own_power() -> None:
    matrices = np.random.default_rng(1).normal(size=(4, 3, 3)) / 2
    powers = [0, 1, 5, 8]
    expected = [np.linalg.matrix_power(m, p) for m, p in zip(matrices, powers)]
    np.testing.assert_allclose(run(lambda: maths.batch_matrix_pow(tf.constant(matrices), powers)), expected)
    expected = [np.linalg.matrix_power(matrices[0], p) for p in powers]
    np.testing.assert_allclose(
        run(lambda: maths.matrix_to_powers(tf.constant(matrices[0]), powers)), expected
    )


def test_sums_of_powers() -> None:
    a, b = np.random.default_rng(2).normal(size=(2, 2, 2))
    terms = [np.linalg.matrix_power(a, k) @ b @ np.linalg.matrix_power(a, k).T for k in range(4)]
    expected = [np.zeros([2, 2]), *np.cumsum(terms, axis=0)]
    np.testing.assert_allclose(
        run(lambda: maths.power_sums_tensor(4, tf.constant(a), tf.constant(b))), expected
    )


def test_products_with_a_batch_of_matrices() -> None:
    rng = np.random.default_rng(3)
    batch, matrix = rng.normal(size=(2, 3, 4)), rng.normal(size=(4, 5))
    np.testing.assert_allclose(run(lambda: maths.batch_times_matrix(batch, matrix)), batch @ matrix)
    found = run(lambda: maths.batch_times_matrix(batch.transpose(0, 2, 1), matrix.T, adj_x=True, adj_y=True))
    np.testing.assert_allclose(found, batch @ matrix)
    found = run(lambda: maths.matrix_times_batch(matrix.T, batch, adj_y=True))
    np.testing.assert_allclose(found, matrix.T @ batch.transpose(0, 2, 1))


def test_matrices_made_of_blocks() -> None:
    found = run(lambda: maths.block_diagonal([[[1.0, 2.0]], [[3.0], [4.0]]]))
    np.testing.assert_array_equal(found, [[1, 2, 0], [0, 0, 3], [0, 0, 4]])
    blocks = np.arange(12.0).reshape(3, 2, 2)
    found = run(lambda: maths.make_toeplitz_matrix(tf.constant(blocks)))
    np.testing.assert_array_equal(found, np.block([[blocks[abs(i - j)] for j in range(3)] for i in range(3)]))


def test_covariance_matrices_are_positive_definite() -> None:
    raw = np.random.default_rng(4).normal(size=(3, 4, 4))
    found = run(lambda: maths.sign_magnitude_positive_definite(raw, off_diagonal_scale=[0.1, 0.2, 0.3]))
    np.testing.assert_allclose(found, found.transpose(0, 2, 1))
    assert (np.linalg.eigvalsh(found) > 0).all()
    made = run(lambda: maths.variable_covariance_matrix(2, "c", tf.float64, np.array([4.0, 9.0])))
    np.testing.assert_allclose(made, np.diag([4.0, 9.0]))
    clipped = run(lambda: maths.clip_covariance(np.diag([8.0, 1e-3]), 4.0, 0.5))
    np.testing.assert_allclose(clipped, np.diag([8.0, 2.0]))


def test_densities() -> None:
    x, factor = np.array([[0.5, -1.0]]), np.array([[[2.0, 0.0], [0.3, 1.5]]])
    covariance = factor[0] @ factor[0].T
    expected = -0.5 * (
        x[0] @ np.linalg.solve(covariance, x[0]) + np.log(np.linalg.det(2 * np.pi * covariance))
    )
    np.testing.assert_allclose(run(lambda: maths.mvn_tril_log_prob(np.zeros([1, 2]), factor, x)), [expected])
    found = run(lambda: maths.cauchy_log_prob(1.0, tf.constant(2.0), tf.constant(4.0)))
    np.testing.assert_allclose(found, -np.log(np.pi * 2.0 * (1 + 1.5**2)), rtol=1e-6)
