"""How k-means gets its first centres: the operation that chooses them among the inputs.

Centres are chosen at random, by k-means++ (Arthur and Vassilvitskii, 2007), by k-MC2 (Bachem et al., 2016),
by a function of the program's, or they are given. Where there are several inputs, k-means++ and k-MC2 look
at the first alone. A run chooses as many as its inputs have; what is missing is chosen by the next.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["KMC2_INIT", "KMEANS_PLUS_PLUS_INIT", "RANDOM_INIT", "ClusterInitialization"]

RANDOM_INIT = "random"
KMEANS_PLUS_PLUS_INIT = "kmeans_plus_plus"
KMC2_INIT = "kmc2"


class ClusterInitialization:
    """The choice of the first centres.

    Args:
        inputs: a list of matrices [examples, dimensions].
        num_clusters: how many centres, an int or a scalar.
        initial_clusters: "random", "kmeans_plus_plus", "kmc2", a function from the inputs and the number of
            centres that are missing to centres, or the centres.
        cosine: whether centres have the length 1.
        random_seed: of the choice.
        retries: how many more candidates k-means++ draws for each centre.
        chain_length: how many examples k-MC2 looks at for each centre.
        centers: the variable, without rows at first.
        updated: a second variable that gets the same, or None.
        initialized: the variable that says whether all centres are there.
    """

    def __init__(
        self,
        inputs: list[Any],
        num_clusters: Any,
        initial_clusters: Any,
        cosine: bool,
        random_seed: int | None,
        retries: int,
        chain_length: int,
        centers: Any,
        updated: Any,
        initialized: Any,
    ) -> None:
        self._inputs, self._count, self._initial, self._cosine = (
            inputs,
            num_clusters,
            initial_clusters,
            cosine,
        )
        self._seed, self._retries, self._chain = random_seed, retries, chain_length
        self._centers, self._updated, self._initialized = centers, updated, initialized
        self._selected = tf.shape(centers)[0]
        self._remaining = num_clusters - self._selected
        self._examples = tf.add_n([tf.shape(each)[0] for each in inputs])

    def op(self) -> Any:
        """A bool tensor: running it chooses the centres that are missing, if any.

        InvalidArgumentError comes from a run whose inputs have fewer examples than k-means++ needs.
        """
        return tf.cond(tf.equal(self._remaining, 0), self._check, self._choose)

    def _check(self) -> Any:
        with tf.control_dependencies([tf.assert_equal(self._initialized, True)]):
            return tf.identity(self._initialized)

    def _choose(self) -> Any:
        with tf.control_dependencies([tf.assert_positive(self._remaining)]):
            if isinstance(self._initial, str) and self._initial == KMC2_INIT:
                missing = self._chain_centers()
            else:
                missing = self._count - tf.shape(self._added(self._normalized(self._new())))[0]

        def done() -> Any:
            return tf.identity(tf.assign(self._initialized, True))

        return tf.cond(tf.equal(missing, 0), done, lambda: tf.constant(False))

    def _normalized(self, value: Any) -> Any:
        return tf.nn.l2_normalize(value, 1) if self._cosine else value

    def _added(self, new: Any) -> Any:
        """The centres with the new ones below."""
        now = tf.cond(
            tf.equal(self._selected, 0), lambda: new, lambda: tf.concat([self._centers.read_value(), new], 0)
        )
        return self._assigned(now)

    def _assigned(self, value: Any) -> Any:
        now = tf.assign(self._centers, value, validate_shape=False)
        return now if self._updated is None else tf.assign(self._updated, now, validate_shape=False)

    def _new(self) -> Any:
        initial = self._initial
        if callable(initial):
            return initial(self._inputs, self._remaining)
        if not isinstance(initial, str):
            return tf.convert_to_tensor(initial)
        return self._random() if initial == RANDOM_INIT else self._plus_plus()

    def _random(self) -> Any:
        inputs = tf.concat(self._inputs, 0)

        def drawn() -> Any:
            rows = tf.random_uniform(
                tf.reshape(self._remaining, [-1]), 0, tf.to_int64(self._examples), tf.int64, seed=self._seed
            )
            return tf.gather(inputs, rows)

        return tf.cond(tf.less_equal(self._examples, self._remaining), lambda: inputs, drawn)

    def _plus_plus(self) -> Any:
        with tf.control_dependencies([tf.assert_greater_equal(self._examples, self._remaining)]):
            inputs = self._normalized(self._inputs[0])
            seed = tf.constant(self._seed or 0, tf.int64)
            retries = tf.constant(self._retries, tf.int64)
            return tf.raw_ops.KmeansPlusPlusInitialization(
                points=inputs,
                num_to_sample=tf.to_int64(self._remaining),
                seed=seed,
                num_retries_per_sample=retries,
            )

    def _chain_centers(self) -> Any:
        """Adds centres by k-MC2, one of every so many examples; gives the number that is still missing."""
        inputs, length, seed = self._inputs[0], self._chain, self._seed or 0
        examples = tf.shape(inputs)[0]
        rounds = tf.maximum(tf.minimum(self._remaining, examples // length), 1)

        def first() -> Any:
            row = tf.random_uniform([], 0, examples, tf.int32, seed=self._seed)
            return self._normalized(inputs[row][None])

        def further(turn: Any, centers: Any) -> Any:
            block = inputs[turn * length : (turn + 1) * length]
            near = tf.raw_ops.NearestNeighbors(points=block, centers=centers, k=tf.constant(1, tf.int64))
            index = tf.raw_ops.KMC2ChainInitialization(
                distances=near[1][:, 0], seed=tf.constant(seed, tf.int64)
            )
            return tf.concat([centers, self._normalized(block[index][None])], 0)

        def body(turn: Any, centers: Any) -> Any:
            is_first = tf.equal(tf.shape(centers)[0], 0)
            now = tf.cond(is_first, first, lambda: further(turn, centers))
            now.set_shape(centers.shape)
            return turn + 1, now

        width = inputs.shape.as_list()[1]
        begin = tf.reshape(self._centers.read_value(), [-1, tf.shape(inputs)[1]])
        begin.set_shape([None, width])
        shapes = [tf.TensorShape([]), tf.TensorShape([None, width])]
        chosen = tf.while_loop(
            lambda turn, _: tf.less(turn, rounds), body, [tf.constant(0), begin], shape_invariants=shapes
        )[1]
        return self._count - tf.shape(self._assigned(chosen))[0]
