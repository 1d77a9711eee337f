"""`tf.keras.mixed_precision`: layers that compute in another type than that of their variables.

| file | gives |
| --- | --- |
| `policy` | which types a layer has: `Policy`, the global one |
| `cast_variables` | variables that are read in the type of the layer that is being called |
| `loss_scale_optimizer` | an optimiser whose gradients are those of a scaled loss |
| `experimental` | the public names |
"""

from flowstone.keras.mixed_precision import experimental

__all__ = ["experimental"]
