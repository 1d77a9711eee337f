"""K-means and mixtures of Gaussians: TensorFlow 1.15.5's values, and the rules where its own steps race."""

from __future__ import annotations

import importlib
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.contrib.factorization.clustering_programs import CENTERS, POINTS, programs

import flowstone as tf

GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "contrib" / "factorization.npz"
factorization = tf.contrib.factorization


@pytest.fixture(autouse=True)
def _own_graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize("name", programs())
def test_as_tensorflow(name: str) -> None:
    program, arguments = programs()[name]
    with np.load(GOLDEN) as golden:
        expected = {key.split(": ")[1]: golden[key] for key in golden.files if key.startswith(f"{name}: ")}
    found = program(tf, **arguments)
    assert set(found) == set(expected)
    for key, value in expected.items():
        assert np.asarray(found[key]).dtype == value.dtype
        np.testing.assert_allclose(found[key], value, 1e-4, 1e-5, err_msg=key)


def steps_of_mini_batches(batches: list[np.ndarray], cosine: bool, steps: int) -> dict[str, np.ndarray]:
    """Sculley's rule: a centre moves by 1 / n towards each of its examples, n being how many it has had."""

    def unit(x: np.ndarray) -> np.ndarray:
        return x / np.linalg.norm(x, axis=-1, keepdims=True) if cosine else x

    shown = unit(CENTERS)
    moving, left, counts = shown.copy(), steps, np.full(3, int(steps == 1))
    for batch in batches:
        x, seen = unit(batch), unit(moving if steps == 1 else shown)
        index = np.square(x[:, None] - seen).sum(2).argmin(1)
        if steps > 1 and left <= 0:
            left, shown = steps - 1, unit(moving).copy()
            counts[:] = 0
        else:
            left -= 1
        for which in set(index):
            own = x[index == which]
            counts[which] += len(own)
            moving[which] += (own.sum(0) - len(own) * moving[which]) / counts[which]
    return {"clusters": moving if steps == 1 else shown, "clusters_updated": moving, "Variable": counts}


@pytest.mark.parametrize("metric", ["squared_euclidean", "cosine"])
@pytest.mark.parametrize("steps", [1, 2])
def test_mini_batches(metric: str, steps: int) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    model = factorization.KMeans(
        x, 3, initial_clusters=CENTERS, distance_metric=metric, use_mini_batch=True,
        mini_batch_steps_per_iteration=steps,
    )  # fmt: skip
    *_, init_op, train_op = model.training_graph()
    batches = [POINTS[6 * step : 6 * step + 6] for step in range(5)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(init_op, {x: POINTS})
        for batch in batches:
            session.run(train_op, {x: batch})
        values = {v.op.name: session.run(v) for v in tf.global_variables()}
    expected = steps_of_mini_batches(batches, metric == "cosine", steps)
    for name in ["clusters", "Variable"] + ["clusters_updated"] * (steps > 1):
        np.testing.assert_allclose(values[name], expected[name], 1e-5, err_msg=name)


@pytest.mark.parametrize("initial", ["random", "kmc2", "kmeans_plus_plus"])
@pytest.mark.parametrize("metric", ["squared_euclidean", "cosine"])
def test_first_centres_are_examples(initial: str, metric: str) -> None:
    made = factorization.KMeans(
        tf.constant(POINTS), 4, initial, metric, random_seed=3, kmc2_chain_length=6
    ).training_graph()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        while not session.run(made[3]):
            session.run(made[4])
        centers = session.run(tf.global_variables()[0])
        assert session.run(made[4])  # again, which changes nothing
        np.testing.assert_array_equal(session.run(tf.global_variables()[0]), centers)
    examples = POINTS / np.linalg.norm(POINTS, axis=1, keepdims=True) if metric == "cosine" else POINTS
    assert centers.shape == (4, 3)
    assert np.abs(centers[:, None] - examples).sum(2).min(1).max() < 1e-5


def test_centres_come_from_several_runs_if_one_has_too_few_examples() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    made = factorization.KMeans(x, 5).training_graph()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert not session.run(made[4], {x: POINTS[:3]})
        assert session.run(made[4], {x: POINTS[3:9]})
        assert session.run(tf.global_variables()[0]).shape == (5, 3)


def test_k_means_plus_plus_needs_as_many_examples_as_centres() -> None:
    made = factorization.KMeans(tf.constant(POINTS[:2]), 5, "kmeans_plus_plus").training_graph()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(made[4])


def test_a_mixture_of_means_alone_leaves_weights_and_covariances() -> None:
    made = factorization.GmmAlgorithm([tf.constant(POINTS)], 3, CENTERS, params="m")
    variables = [made.clusters(), made.covariances(), made.alphas()]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(made.init_ops())
        assert session.run(made.is_initialized())
        before, likelihood = session.run(variables), session.run(made.log_likelihood_op())
        for _ in range(3):
            session.run(made.training_ops())
        after = session.run(variables)
        assert session.run(made.log_likelihood_op()) != likelihood
        assert [each.shape for each in session.run([made.scores()[0], made.assignments()[0][0]])] == [
            (30, 1),
            (30,),
        ]
    assert np.abs(before[0] - after[0]).max() > 0.01
    np.testing.assert_array_equal(before[1], after[1])
    np.testing.assert_array_equal(before[2], after[2])


def test_a_mixture_begins_with_examples() -> None:
    made = factorization.gmm(tf.constant(POINTS), "random", 4, 9)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(made[4])
        means = session.run(tf.global_variables()[0])[:, 0]
    assert np.abs(means[:, None] - POINTS).sum(2).min(1).max() == 0


def test_the_module_of_the_operations() -> None:
    clustering_ops = importlib.import_module("flowstone.contrib.factorization.clustering_ops")
    index, distances = clustering_ops.nearest_neighbors(POINTS[:4], CENTERS, 2)
    expected = np.square(POINTS[:4, None] - CENTERS).sum(2)
    with tf.Session() as session:
        found, least = session.run([index, distances])
    np.testing.assert_array_equal(found, expected.argsort(1)[:, :2])
    np.testing.assert_allclose(least, np.sort(expected, 1)[:, :2], 1e-4, 1e-6)
    assert (clustering_ops.KMC2_INIT, clustering_ops.CLUSTERS_VAR_NAME) == ("kmc2", "clusters")
    assert factorization.RANDOM_INIT == "random"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: factorization.KMeans([], 2, "nonsense"), "Unsupported initialization algorithm 'nonsense'"),
        (lambda: factorization.KMeans([], 2, distance_metric="far"), "Unsupported distance metric 'far'"),
        (lambda: factorization.gmm(POINTS, "random", 2, 1, "half"), "covariance_type must be"),
        (lambda: factorization.gmm(POINTS, "random", 2, 1, params="x"), "params must be made of"),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
