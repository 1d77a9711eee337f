"""KMeans; the centres and scores are TensorFlow 1.15.5's where it has the same start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf

KMeans = tf.estimator.experimental.KMeans
POINTS = np.array([[0.0, 0.0], [0.0, 0.2], [5.0, 5.0], [5.0, 5.2]], np.float32)
CENTERS = [[0.0, 0.1], [5.0, 5.1]]


def points() -> Any:
    return tf.train.limit_epochs(tf.convert_to_tensor(POINTS), num_epochs=1)


@pytest.mark.parametrize(
    "arguments",
    [
        {"use_mini_batch": False, "initial_clusters": POINTS[[0, 2]]},
        {"use_mini_batch": False, "initial_clusters": lambda inputs, count: inputs[0][1 : 1 + count]},
        {"use_mini_batch": True, "initial_clusters": POINTS[[0, 2]]},
        {"initial_clusters": POINTS[[0, 2]], "mini_batch_steps_per_iteration": 2},
        {"use_mini_batch": False, "initial_clusters": "kmeans_plus_plus", "seed": 1},
    ],
)
def test_clusters_are_found(arguments: Any, tmp_path: Path) -> None:
    model = KMeans(2, str(tmp_path), **arguments)
    for _ in range(4):
        model.train(lambda: tf.constant(POINTS), steps=1)
    centers = model.cluster_centers()
    is_pulled = arguments.get("use_mini_batch") and "mini_batch_steps_per_iteration" not in arguments
    expected = (
        [[0.0, 0.8 / 9], [5.0, 5.0 + 0.8 / 9]] if is_pulled else CENTERS
    )  # a start counts as an example
    np.testing.assert_allclose(centers[np.argsort(centers[:, 0])], expected, atol=1e-5)
    np.testing.assert_allclose(model.score(points), 0.04, atol=1e-3)
    first, second, third, fourth = model.predict_cluster_index(points)
    assert first == second != third == fourth
    np.testing.assert_allclose(sorted(next(model.transform(points))), [0.1, 7.142125], atol=2e-2)


def test_random_clusters_are_examples(tmp_path: Path) -> None:
    model = KMeans(4, str(tmp_path), seed=3, use_mini_batch=False)
    model.train(lambda: tf.constant(POINTS), steps=1)
    np.testing.assert_allclose(sorted(model.cluster_centers().tolist()), POINTS.tolist(), atol=1e-4)


def test_training_ends_when_the_loss_stays(tmp_path: Path) -> None:
    model = KMeans(
        2, str(tmp_path), POINTS[[0, 2]], use_mini_batch=False, relative_tolerance=0.01,
        feature_columns=[tf.feature_column.numeric_column("x", [2])],
    )  # fmt: skip
    model.train(lambda: {"x": tf.constant(POINTS)})
    assert model.get_variable_value("global_step") < 10


def test_cosine_distances(tmp_path: Path) -> None:
    model = KMeans(2, str(tmp_path), [[1.0, 0.1], [0.1, 1.0]], "cosine", use_mini_batch=False)
    data = np.array([[1.0, 0.0], [9.0, 0.0], [0.0, 2.0]], np.float32)
    model.train(lambda: tf.constant(data), steps=2)
    np.testing.assert_allclose(model.cluster_centers(), [[1.0, 0.0], [0.0, 1.0]], atol=1e-4)
    assert model.score(lambda: tf.constant(data)) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"distance_metric": "z"}, "Unsupported distance metric 'z'"),
        ({"initial_clusters": "z"}, "Unsupported initialization algorithm 'z'"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KMeans(2, **arguments)
