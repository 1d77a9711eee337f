"""`KMeans`: clusters of examples.

The centres are the variable `clusters`. The first step chooses them among its examples, at random or by
k-means++ (Arthur and Vassilvitskii, 2007). Every step then moves them to the means of the examples nearest to
them: to the mean of this batch (Lloyd, 1982) or, by mini-batches, of all examples so far (Sculley, 2010).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import flowstone as tf
from flowstone.estimator.estimator import Estimator
from flowstone.estimator.export.export_output import PredictOutput
from flowstone.estimator.mode_keys import ModeKeys
from flowstone.estimator.model_fn import EstimatorSpec
from flowstone.training.session_run_hook import SessionRunHook

__all__ = ["KMeansClustering"]

_SMALL = 1e-6  # added to counts, so that a cluster without examples has a mean


class _RelativeToleranceHook(SessionRunHook):
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
        initial_clusters: "random" or "kmeans_plus_plus" examples of the first batch, the centres [clusters,
            dimensions], or a function from the inputs and the number of clusters to the centres.
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
            self.RANDOM_INIT, self.KMEANS_PLUS_PLUS_INIT,
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
        shape = [self._num_clusters, inputs.shape[1].value]
        centers = tf.get_variable(self.CLUSTER_CENTERS_VAR_NAME, shape, initializer=tf.zeros_initializer())
        initialized = tf.get_variable(
            "initialized", [], tf.bool, tf.constant_initializer(False), trainable=False
        )
        unit = tf.nn.l2_normalize(inputs, 1) if self._cosine else inputs
        with tf.control_dependencies(self._beginning(mode, initialized, centers, inputs, unit)):
            now = tf.identity(centers)
        distances = self._distances(unit, now)
        index = tf.argmin(distances, 1)
        score = tf.reduce_sum(tf.reduce_min(distances, 1))
        hooks: list[Any] = []
        train_op = None
        if mode == ModeKeys.TRAIN:
            tf.summary.scalar("loss/raw", score)
            if self._tolerance is not None and not self._mini_batch:
                hooks.append(_RelativeToleranceHook(score, self._tolerance))
            with tf.control_dependencies([score, self._moved(unit, index, centers, score)]):
                train_op = tf.assign_add(tf.train.get_global_step(), 1).op
        predictions = {self.ALL_DISTANCES: distances, self.CLUSTER_INDEX: index}
        exports = {
            "all_distances": PredictOutput(distances),
            "cluster_index": PredictOutput(index),
            "serving_default": PredictOutput(index),
        }
        return EstimatorSpec(
            mode=mode,
            predictions=predictions,
            loss=score,
            train_op=train_op,
            eval_metric_ops={self.SCORE: tf.metrics.mean(score)},
            export_outputs=exports,
            training_hooks=hooks,
        )

    def _beginning(self, mode: str, initialized: Any, centers: Any, inputs: Any, unit: Any) -> list[Any]:
        """The operation that chooses the centres, if no step has done so."""
        if mode != ModeKeys.TRAIN:
            return []

        def choose() -> Any:
            with tf.control_dependencies([tf.assign(centers, self._chosen(inputs, unit))]):
                return tf.group(tf.assign(initialized, True))

        return [tf.cond(initialized, tf.no_op, choose)]

    def _inputs(self, features: Any) -> Any:
        """The examples [batch, dimensions]; ValueError for sparse features."""
        if self._columns is not None:
            return tf.feature_column.input_layer(features, list(self._columns))
        parts = [features[name] for name in sorted(features)] if isinstance(features, dict) else [features]
        if any(isinstance(part, tf.SparseTensor) for part in parts):
            raise ValueError("sparse features are not supported: give feature_columns that make them dense")
        parts = [tf.to_float(part) for part in parts]
        return parts[0] if len(parts) == 1 else tf.concat(parts, 1)

    def _distances(self, inputs: Any, centers: Any) -> Any:
        """[batch, clusters]: squared, or one minus the cosine, of inputs of length 1."""
        if self._cosine:
            return 1 - tf.matmul(inputs, tf.nn.l2_normalize(centers, 1), transpose_b=True)
        squares = tf.reduce_sum(tf.square(inputs), 1, keepdims=True)
        products = tf.matmul(inputs, centers, transpose_b=True)
        return tf.maximum(squares - 2 * products + tf.reduce_sum(tf.square(centers), 1), 0.0)

    def _chosen(self, inputs: Any, unit: Any) -> Any:
        """The first centres."""
        given = self._initial_clusters
        if callable(given):
            return given(inputs, self._num_clusters)
        if not isinstance(given, str):
            return tf.to_float(tf.convert_to_tensor(given))
        count = tf.shape(unit)[0]
        enough = tf.assert_greater_equal(
            count, self._num_clusters, message="the first batch has fewer examples than there are clusters"
        )
        with tf.control_dependencies([enough]):
            if given == self.RANDOM_INIT:
                rows = tf.random_shuffle(tf.range(count), seed=self._seed)[: self._num_clusters]
                return tf.gather(unit, rows)
            return self._plus_plus(unit, count)

    def _plus_plus(self, unit: Any, count: Any) -> Any:
        """Each further centre is drawn by the distances to those before, the best of some candidates."""
        chosen = tf.gather(unit, tf.random_uniform([1], 0, count, tf.int32, seed=self._seed))
        for _ in range(1, self._num_clusters):
            nearest = tf.reduce_min(self._distances(unit, chosen), 1)
            drawn = tf.multinomial(tf.log(nearest + 1e-30)[None], self._retries, seed=self._seed)[0]
            candidates = tf.gather(unit, drawn)
            left = tf.minimum(nearest[:, None], self._distances(unit, candidates))
            best = tf.argmin(tf.reduce_sum(left, 0))
            chosen = tf.concat([chosen, candidates[best][None]], 0)
        return chosen

    def _moved(self, inputs: Any, index: Any, centers: Any, score: Any) -> Any:
        """The operation that moves the centres."""
        sums = tf.unsorted_segment_sum(inputs, index, self._num_clusters)
        counts = tf.unsorted_segment_sum(tf.ones_like(inputs[:, :1]), index, self._num_clusters)
        with tf.control_dependencies([score]):
            if not self._mini_batch:
                return tf.assign(centers, sums / (counts + _SMALL))
            total = tf.get_variable(  # TensorFlow's name of the counts
                "Variable", [self._num_clusters], initializer=tf.zeros_initializer(), trainable=False
            )
            if self._steps == 1:
                now = tf.assign_add(total, counts[:, 0])[:, None]
                return tf.assign_add(centers, (sums - counts * centers) / tf.maximum(now, 1.0))
            return self._moved_later(sums, counts, total, centers)

    def _moved_later(self, sums: Any, counts: Any, total: Any, centers: Any) -> Any:
        """The operation that gathers sums, and moves the centres every so many steps."""
        shape = centers.shape.as_list()
        made: dict[str, Any] = {"initializer": tf.zeros_initializer(), "trainable": False}
        all_sums = tf.get_variable("gathered_sums", shape, **made)
        all_counts = tf.get_variable("gathered_counts", [shape[0], 1], **made)
        gathered = [tf.assign_add(all_sums, sums), tf.assign_add(all_counts, counts)]

        def move() -> Any:
            now = tf.assign_add(total, gathered[1][:, 0])[:, None]
            step = (gathered[0] - gathered[1] * centers) / tf.maximum(now, 1.0)
            with tf.control_dependencies([tf.assign_add(centers, step)]):
                return tf.group(
                    tf.assign(all_sums, tf.zeros_like(sums)), tf.assign(all_counts, tf.zeros_like(counts))
                )

        with tf.control_dependencies(gathered):
            last = tf.equal(tf.train.get_global_step() % self._steps, self._steps - 1)
            return tf.cond(last, lambda: tf.group(move()), tf.no_op)
