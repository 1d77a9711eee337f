"""Names of `tf.contrib.estimator` that are refused, each with what to use."""

from __future__ import annotations

from flowstone.framework.refusals import refused_class, refused_function

__all__ = ["RNNClassifier", "RNNEstimator", "SavedModelEstimator", "TowerOptimizer", "replicate_model_fn"]

_RECURRENT = (
    "tf.estimator.Estimator with tf.nn.dynamic_rnn over tf.contrib.feature_column.sequence_input_layer"
)
_ONE_DEVICE = "the model function and optimiser themselves: one device computes a step"

RNNClassifier = refused_class("tf.contrib.estimator.RNNClassifier", _RECURRENT)
RNNEstimator = refused_class("tf.contrib.estimator.RNNEstimator", _RECURRENT)
SavedModelEstimator = refused_class(
    "tf.contrib.estimator.SavedModelEstimator",
    "tf.estimator.Estimator(..., warm_start_from=the SavedModel's folder)",
)
TowerOptimizer = refused_class("tf.contrib.estimator.TowerOptimizer", _ONE_DEVICE)
replicate_model_fn = refused_function("tf.contrib.estimator.replicate_model_fn", _ONE_DEVICE)
