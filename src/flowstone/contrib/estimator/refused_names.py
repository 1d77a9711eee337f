"""Names of `tf.contrib.estimator` that are refused, each with what to use."""

from __future__ import annotations

from flowstone.framework.names.refusals import refused_class

__all__ = ["RNNClassifier", "RNNEstimator", "SavedModelEstimator"]

_RECURRENT = (
    "tf.estimator.Estimator with tf.nn.dynamic_rnn over tf.contrib.feature_column.sequence_input_layer"
)

RNNClassifier = refused_class("tf.contrib.estimator.RNNClassifier", _RECURRENT)
RNNEstimator = refused_class("tf.contrib.estimator.RNNEstimator", _RECURRENT)
SavedModelEstimator = refused_class(
    "tf.contrib.estimator.SavedModelEstimator",
    "tf.estimator.Estimator(..., warm_start_from=the SavedModel's folder)",
)
