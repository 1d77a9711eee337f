"""Estimators of `tf.contrib.learn` that are not here, and what to use instead."""

from __future__ import annotations

from flowstone.framework.refusals import refused_class

__all__ = ["SVM", "KMeansClustering"]

KMeansClustering = refused_class(
    "tf.contrib.learn.KMeansClustering",
    "tf.estimator.experimental.KMeans",
)
SVM = refused_class(
    "tf.contrib.learn.SVM",
    "tf.contrib.learn.LinearEstimator with tf.contrib.learn.binary_svm_head()",
)
