"""`KMeans`: clusters of examples.

The centres are the variable `clusters`. They are chosen among the examples before the first step; every step
moves them to the means of the examples nearest to them. The graph is `tf.contrib.factorization.KMeans`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import flowstone as tf
from flowstone.contrib.factorization.clustering_ops import KMeans
from flowstone.estimator.estimator import Estimator
from flowstone.estimator.export.export_output import PredictOutput
from flowstone.estimator.mode_keys import ModeKeys
from flowstone.estimator.model_fn import EstimatorSpec
from flowstone.training.hooks.session_run_hook import SessionRunHook

__all__ = ["InitialClustersHook", "KMeansClustering", "RelativeToleranceHook"]


class InitialClustersHook(SessionRunHook):
    """Chooses the first centres before the first step: the chief does, the others wait for it."""

    def __init__(self, init_op: Any, initialized: Any, is_chief: bool) -> None:
        self._init_op, self._initialized, self._is_chief = init_op, initialized, is_chief

    def after_create_session(self, session: Any, coord: Any) -> None:
        del coord
        while not session.run(self._initialized):
            if self._is_chief:
                session.run(self._init_op)
            else:
                time.sleep(1)


class RelativeToleranceHook(SessionRunHook):
    """Ends training when the loss changes by less than a share of it."""

    def __init__(self, loss: Any, tolerance: float) -> None:
        self._loss, self._tolerance = loss, tolerance
        self._last: float | None = None

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return tf.train.SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        loss = run_values.results
        if self._last is not None:
            change = 0.0 if self._last == 0 and loss == 0 else abs(loss - self._last) / (1 + self._last)
            if change <= self._tolerance:
                run_context.request_stop()
        self._last = loss


class KMeansClustering(Estimator):
    """K-means clustering.

    Args:
        num_clusters: how many clusters.
        model_dir: the folder of checkpoints and logs.
        initial_clusters: "random", "kmeans_plus_plus" or "kmc2" examples of the first batches, the centres
            [clusters, dimensions], or a function from the list of inputs and the number of missing centres.
        distance_metric: "squared_euclidean" or "cosine".
        seed: of the choice.
        use_mini_batch: whether a step has part of the examples, and centres are means of all so far.
        mini_batch_steps_per_iteration: the steps after which the centres move.
        kmeans_plus_plus_num_retries: how many candidates k-means++ draws for each further centre.
        relative_tolerance: the change of the loss at which training ends; not with mini-batches.
        config: a RunConfig.
        feature_columns: the columns that make inputs of features; all features side by side if None.

    Raises ValueError for an unknown metric or choice.
    """

    SQUARED_EUCLIDEAN_DISTANCE = "squared_euclidean"
    COSINE_DISTANCE = "cosine"
    RANDOM_INIT = "random"
    KMEANS_PLUS_PLUS_INIT = "kmeans_plus_plus"
    SCORE = "score"
    CLUSTER_INDEX = "cluster_index"
    ALL_DISTANCES = "all_distances"
    CLUSTER_CENTERS_VAR_NAME = "clusters"

    def __init__(
        self,
        num_clusters: int,
        model_dir: Any = None,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        seed: int | None = None,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None,
        config: Any = None,
        feature_columns: Iterable[Any] | None = None,
    ) -> None:
        if isinstance(initial_clusters, str) and initial_clusters not in (
            self.RANDOM_INIT, self.KMEANS_PLUS_PLUS_INIT, "kmc2",
        ):  # fmt: skip
            raise ValueError(f"Unsupported initialization algorithm {initial_clusters!r}")
        if distance_metric not in (self.SQUARED_EUCLIDEAN_DISTANCE, self.COSINE_DISTANCE):
            raise ValueError(f"Unsupported distance metric {distance_metric!r}")
        self._num_clusters, self._initial_clusters, self._seed = num_clusters, initial_clusters, seed
        self._cosine = distance_metric == self.COSINE_DISTANCE
        self._retries, self._tolerance = kmeans_plus_plus_num_retries, relative_tolerance
        self._mini_batch, self._steps = use_mini_batch, mini_batch_steps_per_iteration
        self._columns = feature_columns
        super().__init__(self._build, model_dir, config)

    # ---- what it answers

    def predict_cluster_index(self, input_fn: Callable[..., Any]) -> Iterator[Any]:
        """Yields the index of each example's nearest cluster."""
        for result in self.predict(input_fn, predict_keys=[self.CLUSTER_INDEX]):
            yield result[self.CLUSTER_INDEX]

    def score(self, input_fn: Callable[..., Any]) -> Any:
        """The sum of the distances of a batch's examples to their nearest clusters."""
        return self.evaluate(input_fn, steps=1)[self.SCORE]

    def transform(self, input_fn: Callable[..., Any]) -> Iterator[Any]:
        """Yields each example's distances to all clusters (not squared)."""
        for result in self.predict(input_fn, predict_keys=[self.ALL_DISTANCES]):
            distances = result[self.ALL_DISTANCES]
            yield distances if self._cosine else distances**0.5

    def cluster_centers(self) -> Any:
        """The centres [clusters, dimensions], an array."""
        return self.get_variable_value(self.CLUSTER_CENTERS_VAR_NAME)

    # ---- the model

    def _build(self, features: Any, mode: str, config: Any) -> EstimatorSpec:
        inputs = self._inputs(features)
        distances, index, scores, initialized, init_op, step = KMeans(
            inputs, self._num_clusters, self._initial_clusters,
            self.COSINE_DISTANCE if self._cosine else self.SQUARED_EUCLIDEAN_DISTANCE,
            self._mini_batch, self._steps, self._seed, self._retries,
        ).training_graph()  # fmt: skip
        score = tf.reduce_sum(tf.add_n([tf.reduce_sum(each) for each in scores]))
        tf.summary.scalar("loss/raw", score)
        hooks: list[Any] = [InitialClustersHook(init_op, initialized, config.is_chief)]
        if self._tolerance is not None:
            hooks.append(RelativeToleranceHook(score, self._tolerance))
        with tf.control_dependencies([score, step]):
            train_op = tf.assign_add(tf.train.get_or_create_global_step(), 1).op
        predictions = {self.ALL_DISTANCES: distances[0], self.CLUSTER_INDEX: index[0]}
        exports = {
            "all_distances": PredictOutput(distances[0]),
            "cluster_index": PredictOutput(index[0]),
            "serving_default": PredictOutput(index[0]),
        }
        return EstimatorSpec(
            mode=mode,
            predictions=predictions,
            loss=score,
            train_op=train_op if mode == ModeKeys.TRAIN else None,
            eval_metric_ops={self.SCORE: tf.metrics.mean(score)},
            export_outputs=exports,
            training_hooks=hooks,
        )

    def _inputs(self, features: Any) -> Any:
        """The examples [batch, dimensions]; ValueError for sparse features."""
        if self._columns is not None:
            return tf.feature_column.input_layer(features, list(self._columns))
        parts = [features[name] for name in sorted(features)] if isinstance(features, dict) else [features]
        if any(isinstance(part, tf.SparseTensor) for part in parts):
            raise ValueError("sparse features are not supported: give feature_columns that make them dense")
        parts = [tf.to_float(part) for part in parts]
        return parts[0] if len(parts) == 1 else tf.concat(parts, 1)
