"""Names of `tf.contrib.timeseries` that are refused, each with what to use."""

from __future__ import annotations

from flowstone.framework.names.refusals import refused_class

__all__ = ["StateSpaceRegressor", "StructuralEnsembleRegressor"]

_NEAREST = "tf.contrib.timeseries.ARRegressor, or TimeSeriesRegressor with a model of your own"

StateSpaceRegressor = refused_class("tf.contrib.timeseries.StateSpaceRegressor", _NEAREST)
StructuralEnsembleRegressor = refused_class("tf.contrib.timeseries.StructuralEnsembleRegressor", _NEAREST)
