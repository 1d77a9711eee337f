"""`tf.contrib.learn`'s Estimators: a model function with a head, the canned ones, and what they run with."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.learn.constants": "ModeKeys NotFittedError PredictionKey ProblemType TaskType",
        "flowstone.contrib.learn.estimators.metric_key": "MetricKey",
        "flowstone.contrib.learn.estimators.model_fn": "ModelFnOps",
        "flowstone.contrib.learn.estimators.run_config": "ClusterConfig Environment RunConfig",
    },
    "head metric_key model_fn prediction_key run_config",
)
