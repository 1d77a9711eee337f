"""Boosted trees, which are refused: the operations that grow them are not there."""

from __future__ import annotations

from flowstone.framework.refusals import refused_class, refused_function

__all__ = [
    "BoostedTreesClassifier",
    "BoostedTreesEstimator",
    "BoostedTreesRegressor",
    "boosted_trees_classifier_train_in_memory",
    "boosted_trees_regressor_train_in_memory",
]

_INSTEAD = "tf.estimator.{} over the same feature columns (no operations that grow trees are there)"

BoostedTreesClassifier = refused_class(
    "tf.estimator.BoostedTreesClassifier", _INSTEAD.format("DNNLinearCombinedClassifier")
)
BoostedTreesRegressor = refused_class(
    "tf.estimator.BoostedTreesRegressor", _INSTEAD.format("DNNLinearCombinedRegressor")
)
BoostedTreesEstimator = refused_class(
    "tf.estimator.BoostedTreesEstimator", _INSTEAD.format("DNNLinearCombinedEstimator")
)
boosted_trees_classifier_train_in_memory = refused_function(
    "tf.contrib.estimator.boosted_trees_classifier_train_in_memory",
    _INSTEAD.format("DNNLinearCombinedClassifier"),
)
boosted_trees_regressor_train_in_memory = refused_function(
    "tf.contrib.estimator.boosted_trees_regressor_train_in_memory",
    _INSTEAD.format("DNNLinearCombinedRegressor"),
)
