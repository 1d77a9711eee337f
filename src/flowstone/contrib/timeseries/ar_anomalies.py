"""`AnomalyMixtureARModel`: an autoregressive model in which some values are anomalies of another spread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.timeseries.ar_model import ARModel
from flowstone.contrib.timeseries.math_utils import cauchy_log_prob, normal_log_prob
from flowstone.contrib.timeseries.prediction_models import FlatPredictionModel

__all__ = ["AnomalyMixtureARModel"]


class AnomalyMixtureARModel(ARModel):
    """A value is an anomaly with the probability `anomaly_prior_probability`.

    The arguments are those of `ARModel`, and `anomaly_distribution`: GAUSSIAN_ANOMALY or CAUCHY_ANOMALY about
    the predicted mean, whose spread is trained.
    """

    GAUSSIAN_ANOMALY = "gaussian"
    CAUCHY_ANOMALY = "cauchy"

    def __init__(
        self,
        periodicities: Any,
        anomaly_prior_probability: float,
        input_window_size: int,
        output_window_size: int,
        num_features: int,
        prediction_model_factory: Callable[..., Any] = FlatPredictionModel,
        anomaly_distribution: str = GAUSSIAN_ANOMALY,
        num_time_buckets: int = 10,
        exogenous_feature_columns: Sequence[Any] | None = None,
    ) -> None:
        assert 0.0 < anomaly_prior_probability < 1.0, anomaly_prior_probability
        assert anomaly_distribution in (self.GAUSSIAN_ANOMALY, self.CAUCHY_ANOMALY), anomaly_distribution
        self._anomaly_prior_probability = anomaly_prior_probability
        self._anomaly_distribution = anomaly_distribution
        super().__init__(
            periodicities,
            input_window_size,
            output_window_size,
            num_features,
            prediction_model_factory,
            num_time_buckets,
            self.NORMAL_LIKELIHOOD_LOSS,
            exogenous_feature_columns,
        )

    def prediction_ops(self, times: Any, values: Any, exogenous_regressors: Any) -> dict[str, Any]:
        """The outputs of `ARModel`, and "anomaly_params": the variance or scale of anomalies."""
        found = super().prediction_ops(times, values, exogenous_regressors)
        log_spread = tf.get_variable("anomaly_log_param", [], self.dtype, tf.zeros_initializer())
        return {**found, "anomaly_params": tf.exp(log_spread)}

    def loss_op(self, targets: Any, prediction_ops: dict[str, Any]) -> Any:
        """The mean negative log likelihood of scaled values under the mixture."""
        mean, spread = prediction_ops["mean"], prediction_ops["anomaly_params"]
        usual = normal_log_prob(targets, tf.sqrt(tf.maximum(prediction_ops["covariance"], 1e-5)), mean)
        if self._anomaly_distribution == self.GAUSSIAN_ANOMALY:
            anomalous = normal_log_prob(targets, tf.sqrt(tf.maximum(spread, 1e-5)), mean)
        else:
            anomalous = cauchy_log_prob(targets, spread, mean)
        usual += tf.log(1 - self._anomaly_prior_probability)
        anomalous += tf.log(self._anomaly_prior_probability)
        larger = tf.maximum(usual, anomalous)
        mixed = larger + tf.log(1 + tf.exp(tf.minimum(usual, anomalous) - larger))
        return -tf.reduce_sum(mixed) / tf.cast(tf.reduce_prod(tf.shape(targets)), self.dtype)
