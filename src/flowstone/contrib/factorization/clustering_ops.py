"""K-means as a graph: distances to the centres, and the operation that moves them.

A step moves centres to the means of the examples nearest to them: of this step's (Lloyd, 1982) or,
by mini-batches, of all examples so far (Sculley, 2010).
"""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.factorization.cluster_initialization import (
    KMC2_INIT,
    KMEANS_PLUS_PLUS_INIT,
    RANDOM_INIT,
    ClusterInitialization,
)

__all__ = [
    "CLUSTERS_VAR_NAME",
    "COSINE_DISTANCE",
    "KMC2_INIT",
    "KMEANS_PLUS_PLUS_INIT",
    "RANDOM_INIT",
    "SQUARED_EUCLIDEAN_DISTANCE",
    "KMeans",
    "nearest_neighbors",
]

SQUARED_EUCLIDEAN_DISTANCE = "squared_euclidean"
COSINE_DISTANCE = "cosine"
CLUSTERS_VAR_NAME = "clusters"
_SMALL = 1e-6  # added to counts, so that a cluster without examples has a mean


def nearest_neighbors(points: Any, centers: Any, k: Any, name: str | None = None) -> Any:
    """The `k` centres nearest to each point: indices and squared distances, both [points, k].

    Points and centres are the rows of float32 matrices. The nearest comes first; there are as many as
    centres if `k` is greater. InvalidArgumentError comes from matrices that do not fit.
    """
    return tf.raw_ops.NearestNeighbors(points=points, centers=centers, k=tf.to_int64(k), name=name)


class KMeans:
    """K-means clustering of float32 inputs.

    Args:
        inputs: a matrix [examples, dimensions], or a list of such.
        num_clusters: how many clusters, an int or a scalar.
        initial_clusters: "random", "kmeans_plus_plus", "kmc2", the centres [clusters, dimensions], or a
            function from the list of inputs and the number of missing centres to centres.
        distance_metric: "squared_euclidean" or "cosine".
        use_mini_batch: whether a step has part of the examples, and centres are means of all so far.
        mini_batch_steps_per_iteration: the steps after which the centres that examples see move.
        random_seed: of the choice.
        kmeans_plus_plus_num_retries: how many more candidates k-means++ draws for each centre.
        kmc2_chain_length: how many examples k-MC2 looks at for each centre.

    Raises ValueError for an unknown choice or metric.
    """

    def __init__(
        self,
        inputs: Any,
        num_clusters: Any,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        use_mini_batch: bool = False,
        mini_batch_steps_per_iteration: int = 1,
        random_seed: int | None = 0,
        kmeans_plus_plus_num_retries: int = 2,
        kmc2_chain_length: int = 200,
    ) -> None:
        if isinstance(initial_clusters, str) and initial_clusters not in (
            RANDOM_INIT, KMEANS_PLUS_PLUS_INIT, KMC2_INIT,
        ):  # fmt: skip
            raise ValueError(f"Unsupported initialization algorithm {initial_clusters!r}")
        if distance_metric not in (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE):
            raise ValueError(f"Unsupported distance metric {distance_metric!r}")
        self._inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        self._num_clusters, self._initial_clusters = num_clusters, initial_clusters
        self._cosine = distance_metric == COSINE_DISTANCE
        self._mini_batch, self._steps = use_mini_batch, int(mini_batch_steps_per_iteration)
        self._seed, self._retries = random_seed, kmeans_plus_plus_num_retries
        self._chain_length = kmc2_chain_length

    def training_graph(self) -> tuple[Any, ...]:
        """Adds the graph, and gives what a program runs of it.

        Returns:
            For each input, the distances to all centres [examples, clusters]; for each, the index of the
            nearest centre [examples]; for each, the distance to it [examples]; the variable that says whether
            the centres are there; the operation that chooses them, a bool tensor; the operation of a step.
        """
        initial = self._initial_clusters
        count = self._num_clusters
        if not isinstance(initial, str) and not callable(initial):
            self._initial_clusters = initial = tf.convert_to_tensor(initial)
            count = tf.shape(initial)[0]
        else:
            count = tf.convert_to_tensor(count)
        centers, initialized, updated, left, counts = self._variables(count)
        init_op = ClusterInitialization(
            self._inputs, count, initial, self._cosine, self._seed, self._retries, self._chain_length,
            centers, updated, initialized,
        ).op()  # fmt: skip
        inputs = [tf.nn.l2_normalize(x, 1) for x in self._inputs] if self._cosine else self._inputs
        distances = tuple(self._distances(x, centers) for x in inputs)
        nearest = [self._nearest(x, centers) for x in inputs]
        index = tuple(each[0] for each in nearest)
        if self._mini_batch:
            step = self._mini_batch_step(inputs, index, centers, updated, left, counts)
        else:
            step = self._full_step(inputs, index, centers, count)
        return distances, index, tuple(each[1] for each in nearest), initialized, init_op, step

    def _variables(self, count: Any) -> tuple[Any, ...]:
        """Centres, whether they are there, centres that move, steps till they are seen, examples of each."""
        none = tf.constant([], tf.float32)
        centers = tf.Variable(none, name=CLUSTERS_VAR_NAME, validate_shape=False)
        initialized = tf.Variable(False, name="initialized")
        if not self._mini_batch:
            return centers, initialized, None, None, None
        if self._steps == 1:
            return centers, initialized, None, None, tf.Variable(tf.ones([count], tf.int64))
        updated = tf.Variable(none, name="clusters_updated", validate_shape=False)
        left = tf.Variable(self._steps, dtype=tf.int64, name="update_in_steps")
        return centers, initialized, updated, left, tf.Variable(tf.zeros([count], tf.int64))

    def _are_unit(self) -> bool:
        """Whether the variable's centres have the length 1 where the metric needs it."""
        return not self._cosine or not self._mini_batch or self._steps > 1

    def _distances(self, x: Any, centers: Any) -> Any:
        """[examples, clusters]: squared, or one minus the cosine, of inputs of length 1."""
        if self._cosine:
            unit = centers if self._are_unit() else tf.nn.l2_normalize(centers, 1)
            return 1 - tf.matmul(x, unit, transpose_b=True)
        squares = tf.reduce_sum(tf.square(x), 1, keepdims=True)
        products = 2 * tf.matmul(x, centers, transpose_b=True)
        return squares - products + tf.transpose(tf.reduce_sum(tf.square(centers), 1, keepdims=True))

    def _nearest(self, x: Any, centers: Any) -> tuple[Any, Any]:
        unit = centers if self._are_unit() else tf.nn.l2_normalize(centers, 1)
        index, distance = nearest_neighbors(x, unit, 1)
        if self._cosine:
            distance = distance * 0.5  # |x - c|² = 2 - 2 cos
        return tf.squeeze(index, [-1]), tf.squeeze(distance, [-1])

    def _full_step(self, inputs: list[Any], index: tuple[Any, ...], centers: Any, count: Any) -> Any:
        """Moves the centres to the means of the inputs."""
        sums = [tf.unsorted_segment_sum(x, i, count) for x, i in zip(inputs, index)]
        ones = [tf.reshape(tf.ones(tf.reshape(tf.shape(x)[0], [-1])), [-1, 1]) for x in inputs]
        counts = [tf.unsorted_segment_sum(one, i, count) for one, i in zip(ones, index)]
        means = tf.add_n(sums) / (tf.add_n(counts) + tf.constant(_SMALL))
        if self._cosine:
            means = tf.nn.l2_normalize(means, 1)
        return tf.assign(centers, means)

    def _mini_batch_step(
        self, inputs: list[Any], index: tuple[Any, ...], centers: Any, updated: Any, left: Any, counts: Any
    ) -> Any:
        """Moves the centres towards the inputs, by the share of these among all examples so far."""
        steps = [] if updated is None else [self._shown(centers, updated, left, counts)]
        moving = centers if updated is None else updated
        with tf.control_dependencies(steps):
            rows = tf.concat([tf.reshape(each, [-1]) for each in index], 0)
            examples = tf.concat(inputs, 0)
            which, places = tf.unique(rows)
            size = tf.size(which)
            before, old = tf.gather(counts, which), tf.gather(moving, which)
            added = tf.unsorted_segment_sum(tf.ones_like(places, tf.int64), places, size)
            sums = tf.unsorted_segment_sum(examples, places, size)
            rate = 1 / tf.cast(before + added, tf.float32)
            change = (sums - tf.cast(added, tf.float32)[:, None] * old) * rate[:, None]
            moved = [tf.scatter_add(counts, which, added).op, tf.scatter_add(moving, which, change).op]
        return tf.group(*moved, *steps)

    def _shown(self, centers: Any, updated: Any, left: Any, counts: Any) -> Any:
        """Every so many steps, the centres that examples see become those that have moved."""

        def show() -> Any:
            with tf.control_dependencies([tf.assign(left, self._steps - 1)]):
                now = updated.read_value()
                shown = tf.assign(centers, tf.nn.l2_normalize(now, 1) if self._cosine else now)
            with (
                tf.control_dependencies([shown]),
                tf.control_dependencies([tf.assign(counts, tf.zeros_like(counts))]),
            ):
                return tf.identity(left)

        return tf.cond(tf.less_equal(left, 0), show, lambda: tf.identity(tf.assign_sub(left, 1)))
