"""`LinearSDCA`, which is refused as an optimiser of linear Estimators."""

from __future__ import annotations

from flowstone.framework.refusals import refused_class

__all__ = ["LinearSDCA"]

LinearSDCA = refused_class(
    "tf.estimator.experimental.LinearSDCA",
    "tf.train.FtrlOptimizer with l1 and l2 regularisation, or the operation tf.train.sdca_optimizer",
)
