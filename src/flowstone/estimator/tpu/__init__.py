"""`tf.estimator.tpu`: Estimators for TPUs, as far as they mean one machine: models run on its own devices."""

from __future__ import annotations

from flowstone.framework.names.late_names import late_names

__getattr__, __dir__ = late_names(
    globals(),
    {
        "flowstone.estimator.tpu.tpu_config": "InputPipelineConfig RunConfig TPUConfig",
        "flowstone.estimator.tpu.tpu_estimator": "TPUEstimator TPUEstimatorSpec",
    },
    "experimental",
)
