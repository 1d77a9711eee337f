"""`tf.contrib.learn`: the first Estimators, their data and experiments."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.learn.constants": "ModeKeys NotFittedError PredictionKey ProblemType TaskType",
        "flowstone.training.tensor_hooks": "NanLossDuringTrainingError",
    },
    "preprocessing",
)
