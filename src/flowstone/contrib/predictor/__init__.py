"""`tf.contrib.predictor`: functions from arrays to arrays, made of SavedModels and Estimators."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.predictor.predictor": "Predictor",
        "flowstone.contrib.predictor.predictor_factories": "from_contrib_estimator from_estimator"
        " from_saved_model",
    },
)
