"""The Estimator of k-means with contrib's arguments."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import flowstone as tf

POINTS = np.array([[0.0, 0.0], [0.0, 0.2], [5.0, 5.0], [5.0, 5.2]], np.float32)


def test_an_estimator(tmp_path: Path) -> None:
    kmeans = tf.contrib.factorization.KMeansClustering(
        2, str(tmp_path), POINTS[[0, 2]], mini_batch_steps_per_iteration=2
    )

    def read() -> object:
        return tf.train.limit_epochs(tf.constant(POINTS), num_epochs=1)

    kmeans.train(lambda: tf.constant(POINTS), steps=6)
    np.testing.assert_allclose(kmeans.cluster_centers(), [[0.0, 0.1], [5.0, 5.1]], atol=1e-5)
    assert list(kmeans.predict_cluster_index(read)) == [0, 0, 1, 1]
    np.testing.assert_allclose(next(kmeans.transform(read)), [0.01, 51.01], rtol=1e-4)  # squares
    np.testing.assert_allclose(kmeans.score(read), 0.04, rtol=1e-3)
    names = ["Variable", "clusters", "clusters_updated", "global_step", "initialized", "update_in_steps"]
    assert sorted(kmeans.get_variable_names()) == names
    assert (kmeans.CLUSTERS, kmeans.CLUSTER_CENTERS_VAR_NAME) == ("clusters", "clusters")
