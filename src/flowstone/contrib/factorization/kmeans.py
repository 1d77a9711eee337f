"""`KMeansClustering`: the Estimator of k-means, with the arguments that it had in contrib."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from flowstone.contrib.factorization.clustering_ops import (
    RANDOM_INIT,
    SQUARED_EUCLIDEAN_DISTANCE,
)
from flowstone.estimator.canned.kmeans import KMeansClustering as _KMeansOfEstimator

__all__ = ["KMeansClustering"]


class KMeansClustering(_KMeansOfEstimator):
    """K-means clustering.

    Args:
        num_clusters: how many clusters.
        model_dir: the folder of checkpoints and logs.
        initial_clusters: "random", "kmeans_plus_plus" or "kmc2" examples of the first batches, the centres
            [clusters, dimensions], or a function from the list of inputs and the number of missing
            centres to centres.
        distance_metric: "squared_euclidean" or "cosine".
        random_seed: of the choice.
        use_mini_batch: whether a step has part of the examples, and centres are means of all so far.
        mini_batch_steps_per_iteration: the steps after which the centres that examples see move.
        kmeans_plus_plus_num_retries: how many more candidates k-means++ draws for each centre.
        relative_tolerance: the change of the loss at which training ends.
        config: a RunConfig.
        feature_columns: the columns that make inputs of features; all features side by side if None.

    Raises ValueError for an unknown metric or choice.
    """

    CLUSTERS = "clusters"  # the centres' name in TensorFlow 1.4

    def __init__(
        self,
        num_clusters: int,
        model_dir: Any = None,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        random_seed: int = 0,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None,
        config: Any = None,
        feature_columns: Iterable[Any] | None = None,
    ) -> None:
        super().__init__(
            num_clusters, model_dir, initial_clusters, distance_metric, random_seed, use_mini_batch,
            mini_batch_steps_per_iteration, kmeans_plus_plus_num_retries, relative_tolerance, config,
            feature_columns,
        )  # fmt: skip

    def transform(self, input_fn: Callable[..., Any]) -> Iterator[Any]:
        """Yields each example's distances to all clusters: squared, or one minus the cosine."""
        for result in self.predict(input_fn, predict_keys=[self.ALL_DISTANCES]):
            yield result[self.ALL_DISTANCES]
