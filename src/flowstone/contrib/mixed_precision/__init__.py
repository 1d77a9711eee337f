"""`tf.contrib.mixed_precision`: a loss is scaled so that its gradients don't vanish in half precision."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.mixed_precision.loss_scale_manager": "ExponentialUpdateLossScaleManager"
        " FixedLossScaleManager LossScaleManager",
        "flowstone.contrib.mixed_precision.loss_scale_optimizer": "LossScaleOptimizer",
    },
    "experimental",
)
