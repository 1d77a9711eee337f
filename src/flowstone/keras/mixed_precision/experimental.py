"""`tf.keras.mixed_precision.experimental`: the names of TensorFlow 1.15."""

from flowstone.keras.mixed_precision.loss_scale_optimizer import LossScaleOptimizer
from flowstone.keras.mixed_precision.policy import Policy, global_policy, set_policy

__all__ = ["LossScaleOptimizer", "Policy", "global_policy", "set_policy"]
