"""`tf.contrib.gan.features`: conditions of generators, clipped weights, virtual batch normalisation."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.gan.features.clip_weights": "clip_discriminator_weights clip_variables",
        "flowstone.contrib.gan.features.conditioning_utils": "condition_tensor condition_tensor_from_onehot",
        "flowstone.contrib.gan.features.virtual_batchnorm": "VBN",
    },
)
