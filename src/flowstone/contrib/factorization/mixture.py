"""`GMM`: a mixture of Gaussians as an Estimator of `tf.contrib.learn`.

Variables are ``clusters``, ``clusters_covs``, ``alphas`` and ``initialized``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.factorization.gmm_ops import FULL_COVARIANCE, GmmAlgorithm, gmm
from flowstone.contrib.learn.constants import ModeKeys
from flowstone.contrib.learn.estimators.estimator import Estimator
from flowstone.contrib.learn.estimators.kmeans import rows_of
from flowstone.contrib.learn.estimators.model_fn import ModelFnOps
from flowstone.estimator.canned.kmeans import InitialClustersHook

__all__ = ["GMM"]


class GMM(Estimator):
    """A mixture of Gaussians, trained by expectation and maximization.

    Args:
        num_clusters: how many Gaussians.
        model_dir: the folder of checkpoints and logs.
        random_seed: of the first means.
        params: what training changes, letters of "w" (weights), "m" (means) and "c" (covariances).
        initial_clusters: the first means [clusters, dimensions], or "random" for examples.
        covariance_type: "full" or "diag".
        config: a RunConfig.

    Features are a matrix [examples, dimensions], float32, or a dict of such. Raises ValueError for other
    letters and types, when it trains.
    """

    SCORES = "scores"
    LOG_LIKELIHOOD = "loss"
    ASSIGNMENTS = "assignments"

    def __init__(
        self,
        num_clusters: int,
        model_dir: Any = None,
        random_seed: int = 0,
        params: str = "wmc",
        initial_clusters: Any = "random",
        covariance_type: str = FULL_COVARIANCE,
        config: Any = None,
    ) -> None:
        self._arguments = (initial_clusters, num_clusters, random_seed, covariance_type, params)
        super().__init__(model_fn=self._build, model_dir=model_dir, config=config)

    def _build(self, features: Any, labels: Any, mode: str, config: Any) -> ModelFnOps:
        """The model; there are no labels."""
        assert labels is None, labels
        likelihood, scores, assignments, step, init_op, initialized = gmm(rows_of(features), *self._arguments)
        total = tf.Variable(0.0, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES])
        train_op = None
        if mode == ModeKeys.TRAIN:
            with tf.control_dependencies([likelihood, step]):
                train_op = tf.assign_add(tf.train.get_global_step(), 1).op
        return ModelFnOps(
            mode=mode,
            predictions={self.ASSIGNMENTS: assignments[0][0]},
            eval_metric_ops={
                self.SCORES: scores,
                self.LOG_LIKELIHOOD: (total, tf.assign_add(total, likelihood)),
            },
            loss=likelihood,
            train_op=train_op,
            training_hooks=[InitialClustersHook(init_op, initialized, config.is_chief)],
        )

    def predict_assignments(
        self,
        input_fn: Callable[[], Any] | None = None,
        batch_size: int | None = None,
        outputs: Any = None,
    ) -> Iterable[Any]:
        """Yields the most probable Gaussian of each example; `outputs` is not used."""
        del outputs
        found = self.predict(
            input_fn=input_fn, batch_size=batch_size, outputs=[self.ASSIGNMENTS], as_iterable=True
        )
        for result in found:
            yield result[self.ASSIGNMENTS]

    def score(
        self,
        input_fn: Callable[[], Any] | None = None,
        batch_size: int | None = None,
        steps: int | None = None,
    ) -> Any:
        """The logarithm of the sum of the densities of the last batch's examples."""
        results = self.evaluate(input_fn=input_fn, batch_size=batch_size, steps=steps)
        return np.log(np.sum(np.exp(results[self.SCORES])))

    def weights(self) -> Any:
        """The weights of the Gaussians [clusters], an array."""
        return self.get_variable_value(GmmAlgorithm.CLUSTERS_WEIGHT)

    def clusters(self) -> Any:
        """Their means [clusters, dimensions], an array."""
        found = self.get_variable_value(GmmAlgorithm.CLUSTERS_VARIABLE)
        return np.squeeze(found, 1)

    def covariances(self) -> Any:
        """Their covariances [clusters, dimensions, dimensions]; [clusters, dimensions] if diagonal."""
        return self.get_variable_value(GmmAlgorithm.CLUSTERS_COVS_VARIABLE)
