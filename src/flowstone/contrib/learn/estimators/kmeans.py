"""`KMeansClustering`: clusters of examples, with the methods of this package's Estimators.

Variables are ``clusters``, ``initialized`` and, with mini-batches, ``Variable``: how many examples each
cluster had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.factorization.clustering_ops import (
    COSINE_DISTANCE,
    KMEANS_PLUS_PLUS_INIT,
    RANDOM_INIT,
    SQUARED_EUCLIDEAN_DISTANCE,
    KMeans,
)
from flowstone.contrib.learn.constants import ModeKeys
from flowstone.contrib.learn.estimators.estimator import Estimator
from flowstone.contrib.learn.estimators.model_fn import ModelFnOps
from flowstone.estimator.canned.kmeans import InitialClustersHook, RelativeToleranceHook

__all__ = ["KMeansClustering", "rows_of"]


def rows_of(features: Any) -> Any:
    """The examples [rows, dimensions] of features: a tensor, or a dict whose values stand side by side, by
    name."""
    if isinstance(features, Mapping):
        return tf.concat([features[name] for name in sorted(features)], 1)
    return features


class KMeansClustering(Estimator):
    """K-means clustering.

    Args:
        num_clusters: how many clusters.
        model_dir: the folder of checkpoints and logs.
        initial_clusters: "random" or "kmeans_plus_plus" examples of the first batches, the centres
            [clusters, dimensions], or a function from inputs and the number of clusters to centres.
        distance_metric: "squared_euclidean" or "cosine".
        random_seed: of the choice.
        use_mini_batch: whether a step has part of the examples, and centres are means of all so far.
        mini_batch_steps_per_iteration: the steps after which the centres that examples see move.
        kmeans_plus_plus_num_retries: how many more candidates k-means++ draws for each centre.
        relative_tolerance: the change of the loss at which training ends.
        config: a RunConfig.

    Features are a matrix [examples, dimensions], float32, or a dict of such. Raises ValueError for an unknown
    metric or choice, when it trains.
    """

    SQUARED_EUCLIDEAN_DISTANCE = SQUARED_EUCLIDEAN_DISTANCE
    COSINE_DISTANCE = COSINE_DISTANCE
    RANDOM_INIT = RANDOM_INIT
    KMEANS_PLUS_PLUS_INIT = KMEANS_PLUS_PLUS_INIT
    SCORES = "scores"
    CLUSTER_IDX = "cluster_idx"
    CLUSTERS = "clusters"
    ALL_SCORES = "all_scores"
    LOSS_OP_NAME = "kmeans_loss"

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
    ) -> None:
        self._arguments = (
            num_clusters, initial_clusters, distance_metric, use_mini_batch, mini_batch_steps_per_iteration,
            random_seed, kmeans_plus_plus_num_retries,
        )  # fmt: skip
        self._tolerance = relative_tolerance
        super().__init__(model_fn=self._build, model_dir=model_dir, config=config)

    def _build(self, features: Any, labels: Any, mode: str, config: Any) -> ModelFnOps:
        """The model; there are no labels."""
        assert labels is None, labels
        distances, index, scores, initialized, init_op, step = KMeans(
            rows_of(features), *self._arguments
        ).training_graph()
        loss = tf.reduce_sum(tf.add_n([tf.reduce_sum(each) for each in scores]), name=self.LOSS_OP_NAME)
        tf.summary.scalar("loss/raw", loss)
        hooks: list[Any] = [InitialClustersHook(init_op, initialized, config.is_chief)]
        if self._tolerance is not None:
            hooks.append(RelativeToleranceHook(loss, self._tolerance))
        train_op = None
        if mode == ModeKeys.TRAIN:
            with tf.control_dependencies([loss, step]):
                train_op = tf.assign_add(tf.train.get_global_step(), 1).op
        return ModelFnOps(
            mode=mode,
            predictions={self.ALL_SCORES: distances[0], self.CLUSTER_IDX: index[0]},
            eval_metric_ops={self.SCORES: loss},
            loss=loss,
            train_op=train_op,
            training_hooks=hooks,
        )

    def predict_cluster_idx(self, input_fn: Callable[[], Any] | None = None) -> Iterable[Any]:
        """Yields the index of each example's nearest cluster."""
        for result in self.predict(input_fn=input_fn, outputs=[self.CLUSTER_IDX], as_iterable=True):
            yield result[self.CLUSTER_IDX]

    def score(self, input_fn: Callable[[], Any] | None = None, steps: int | None = None) -> Any:
        """The sum of the distances of the last batch's examples to their nearest clusters."""
        return self.evaluate(input_fn=input_fn, steps=steps)[self.SCORES]

    def transform(self, input_fn: Callable[[], Any] | None = None, as_iterable: bool = False) -> Any:
        """The distances of the examples to all clusters, squared or one minus the cosine: an array
        [examples, clusters], or an iterable of dicts."""
        found = self.predict(input_fn=input_fn, outputs=[self.ALL_SCORES], as_iterable=as_iterable)
        return found if as_iterable else found[self.ALL_SCORES]

    def clusters(self) -> Any:
        """The centres [clusters, dimensions], an array."""
        return self.get_variable_value(self.CLUSTERS)
