"""`tf.contrib.learn`: the first Estimators, their data and experiments."""

from __future__ import annotations

from flowstone.contrib.learn import estimator_names
from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        **estimator_names.NAMES,
        "flowstone.contrib.learn.constants": "ModeKeys NotFittedError PredictionKey ProblemType TaskType",
        "flowstone.contrib.learn.evaluable": "Evaluable",
        "flowstone.contrib.learn.graph_actions": "evaluate infer run_feeds run_n train",
        "flowstone.contrib.learn.metric_spec": "MetricSpec",
        "flowstone.contrib.learn.trainable": "Trainable",
        "flowstone.training.hooks.tensor_hooks": "NanLossDuringTrainingError",
    },
    f"graph_actions monitors preprocessing {estimator_names.NAMESPACES}",
)
