"""Mixtures of Gaussians by expectation maximisation (Dempster, Laird and Rubin, 1977).

A step computes each example's probabilities of having come from each of the Gaussians; weights, means and
covariances then become those of the examples, counted by their probabilities. To each variance is added
0.001, so that a Gaussian of one example has a density.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf

__all__ = ["DIAG_COVARIANCE", "FULL_COVARIANCE", "MEPS", "GmmAlgorithm", "gmm"]

FULL_COVARIANCE = "full"
DIAG_COVARIANCE = "diag"
MEPS = np.finfo(float).eps
_LEAST_VARIANCE = 1e-3
_LOG_2PI = float(np.log(2 * np.pi))


def _covariance(x: Any, diag: bool) -> Any:
    """The covariance matrix of the rows [examples, dimensions], or its diagonal."""
    centered = x - tf.reduce_mean(x, 0, keepdims=True)
    others = tf.to_float(tf.shape(x)[0]) - 1.0
    if diag:
        return tf.reduce_sum(tf.square(centered), 0) / others
    return tf.matmul(centered, centered, transpose_a=True) / others


def _init_clusters_random(data: Any, num_clusters: int, random_seed: int | None) -> Any:
    """Rows of the matrices, drawn with replacement: [clusters, dimensions].

    InvalidArgumentError comes from a run with fewer rows than clusters.
    """
    rows = tf.concat(data, 0) if isinstance(data, (list, tuple)) else data
    count = tf.shape(rows)[0]
    with tf.control_dependencies([tf.assert_less_equal(num_clusters, count)]):
        indices = tf.random_uniform([num_clusters], 0, tf.to_int64(count), tf.int64, seed=random_seed)
    return tf.gather(rows, indices % tf.to_int64(count))


class GmmAlgorithm:
    """The graph of a mixture.

    Args:
        data: a list of float32 matrices [examples, dimensions].
        num_classes: how many Gaussians.
        initial_means: their first means [classes, dimensions]; examples drawn at random if None.
        params: what training changes: a text of the letters "w" (weights), "m" (means), "c" (covariances).
        covariance_type: "full" or "diag".
        random_seed: of the first means.

    Raises ValueError for another `covariance_type`, or a letter in `params` that says nothing.
    """

    CLUSTERS_WEIGHT = "alphas"
    CLUSTERS_VARIABLE = "clusters"
    CLUSTERS_COVS_VARIABLE = "clusters_covs"

    def __init__(
        self,
        data: Any,
        num_classes: int,
        initial_means: Any = None,
        params: str = "wmc",
        covariance_type: str = FULL_COVARIANCE,
        random_seed: int | None = 0,
    ) -> None:
        if covariance_type not in (FULL_COVARIANCE, DIAG_COVARIANCE):
            raise ValueError(f"covariance_type must be 'full' or 'diag', got {covariance_type!r}")
        if not set(params) <= set("wmc"):
            raise ValueError(f"params must be made of the letters w, m and c, got {params!r}")
        self._diag, self._params, self._count = covariance_type == DIAG_COVARIANCE, params, num_classes
        self._data = [tf.convert_to_tensor(each) for each in data]
        self._dimensions = tf.shape(self._data[0])[1]
        self._least = _LEAST_VARIANCE * tf.diag(tf.ones([self._dimensions]))
        self._make_variables()
        self._init_ops = self._make_init_ops(initial_means, random_seed)
        mean = self._means.read_value() + 0  # a copy: the step changes the variable
        self._now = mean, self._covariances.read_value() + 0, self._alphas.read_value() + 0
        joint = [self._log_joint(x) for x in self._data]
        self._scores = [tf.reduce_logsumexp(each, 1, keepdims=True) for each in joint]
        shares = [tf.exp(each - score) for each, score in zip(joint, self._scores)]
        self._assignments = [[tf.argmax(each, 1)] for each in shares]
        self._training_ops = self._make_training_ops(shares)
        self._log_likelihood = tf.reduce_logsumexp(
            tf.stack([tf.reduce_logsumexp(each) for each in self._scores])
        )

    def _make_variables(self) -> None:
        none = tf.constant([], tf.float32)
        self._means = tf.Variable(none, name=self.CLUSTERS_VARIABLE, validate_shape=False)
        self._covariances = tf.Variable(none, name=self.CLUSTERS_COVS_VARIABLE, validate_shape=False)
        self._alphas = tf.Variable(tf.tile([1.0 / self._count], [self._count]), name=self.CLUSTERS_WEIGHT)
        self._initialized = tf.Variable(False, dtype=tf.bool, name="initialized")

    def _make_init_ops(self, means: Any, random_seed: int | None) -> list[Any]:
        """Two bool tensors: a run of both sets means and covariances, unless that has been done."""
        if means is None:
            means = _init_clusters_random(self._data, self._count, random_seed)
        means = tf.expand_dims(tf.convert_to_tensor(means), 1)
        first = self._data[0]
        covariance = _covariance(first, self._diag) + (_LEAST_VARIANCE if self._diag else self._least)
        covariances = tf.tile(covariance[None], [self._count, *[1] * (1 if self._diag else 2)])
        with tf.control_dependencies([means, covariances]):
            done = tf.identity(self._initialized.read_value())

        def setting(variable: Any, value: Any) -> Any:
            def assign() -> Any:
                with tf.control_dependencies([tf.assign(variable, value, validate_shape=False)]):
                    return tf.identity(tf.assign(self._initialized, True))

            return tf.cond(done, lambda: tf.constant(True), assign)

        return [setting(self._means, means), setting(self._covariances, covariances)]

    # ---- the expectation

    def _log_joint(self, x: Any) -> Any:
        """The logarithms of each Gaussian's densities at the rows, times its weight: [rows, classes]."""
        means, covariances, alphas = self._now
        if self._diag:
            variances = covariances + _LEAST_VARIANCE
            determinants = tf.reduce_sum(tf.log(variances), 1)
            centered = tf.square(x[None] - means)
            squares = tf.squeeze(tf.matmul(centered, (1.0 / variances)[:, :, None]), [2])
        else:
            factors = tf.cholesky(covariances + self._least)
            determinants = 2.0 * tf.reduce_sum(tf.log(tf.matrix_diag_part(factors)), 1)
            centered = tf.transpose(x[None] - means, [0, 2, 1])
            solved = tf.matrix_triangular_solve(factors, centered)
            squares = tf.reduce_sum(tf.square(solved), 1)
        constant = tf.to_float(self._dimensions) * _LOG_2PI
        return -0.5 * (constant + determinants + tf.transpose(squares)) + tf.log(alphas)

    # ---- the maximisation

    def _make_training_ops(self, shares: list[Any]) -> list[Any]:
        pairs = list(zip(shares, self._data))
        counts = tf.add_n([tf.reduce_sum(share, 0) for share in shares])[:, None, None]
        sums = tf.add_n([tf.matmul(share, x, transpose_a=True) for share, x in pairs])[:, None]
        ops = []
        if "w" in self._params:
            weights = counts[:, 0, 0] / float(len(pairs))
            ops.append(tf.assign(self._alphas, weights / (tf.reduce_sum(weights) + MEPS)).op)
        means = self._now[0]
        if "m" in self._params:
            means = sums / (counts + MEPS)
            ops.append(tf.assign(self._means, means, validate_shape=False).op)
        if "c" in self._params:
            value = self._moved_covariances(pairs, counts, means)
            ops.append(tf.assign(self._covariances, value, validate_shape=False).op)
        return ops

    def _moved_covariances(self, pairs: list[Any], counts: Any, means: Any) -> Any:
        if self._diag:
            squares = tf.add_n([tf.matmul(share, tf.square(x), transpose_a=True) for share, x in pairs])
            return squares / (counts[:, 0] + MEPS) - tf.square(means[:, 0]) + _LEAST_VARIANCE
        products = [
            tf.matmul(
                tf.transpose(share)[:, :, None] * x, tf.tile(x[None], [self._count, 1, 1]), transpose_a=True
            )
            for share, x in pairs
        ]
        return tf.add_n(products) / (counts + MEPS) - tf.matmul(means, means, transpose_a=True) + self._least

    # ---- what it gives

    def init_ops(self) -> list[Any]:
        """The tensors whose run sets the first means and covariances."""
        return self._init_ops

    def training_ops(self) -> list[Any]:
        """The operations of a step."""
        return self._training_ops

    def is_initialized(self) -> Any:
        """The bool variable that says whether the first means are set."""
        return self._initialized

    def alphas(self) -> Any:
        """The variable of the weights [classes]."""
        return self._alphas

    def clusters(self) -> Any:
        """The variable of the means [classes, 1, dimensions]."""
        return self._means

    def covariances(self) -> Any:
        """The variable of the covariances [classes, dimensions, dimensions], or [classes, dimensions]."""
        return self._covariances

    def assignments(self) -> list[list[Any]]:
        """For each matrix, the most probable Gaussian of each row."""
        return self._assignments

    def scores(self) -> list[Any]:
        """For each matrix, the logarithms of the rows' densities [rows, 1]."""
        return self._scores

    def log_likelihood_op(self) -> Any:
        """The logarithm of the sum of all rows' densities, a scalar."""
        return self._log_likelihood


def gmm(
    inp: Any,
    initial_clusters: Any,
    num_clusters: int,
    random_seed: int | None,
    covariance_type: str = FULL_COVARIANCE,
    params: str = "wmc",
) -> tuple[Any, ...]:
    """Adds the graph of a mixture of Gaussians, and gives what a program runs of it.

    Args:
        inp: a float32 matrix [examples, dimensions].
        initial_clusters: the first means [clusters, dimensions], or "random" for examples drawn at random.
        num_clusters: how many Gaussians.
        random_seed: of the first means.
        covariance_type: "full" or "diag".
        params: what training changes, letters of "w", "m" and "c".

    Returns:
        The logarithm of the sum of the examples' densities, a scalar; that of each example's density
        [examples, 1];
        a list of a list with each example's most probable Gaussian; the operation of a step; the operation
        that sets the first means; the variable that says whether they are set.
    """
    means = None if isinstance(initial_clusters, str) and initial_clusters == "random" else initial_clusters
    tool = GmmAlgorithm([inp], num_clusters, means, params, covariance_type, random_seed)
    return (
        tool.log_likelihood_op(),
        tool.scores()[0],
        [tool.assignments()[0]],
        tf.group(*tool.training_ops()),
        tf.group(*tool.init_ops()),
        tool.is_initialized(),
    )
