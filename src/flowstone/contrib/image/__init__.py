"""`tf.contrib.image`: images moved, turned and bent."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.image.dense_image_warp": "dense_image_warp",
        "flowstone.contrib.image.image_ops": "angles_to_projective_transforms compose_transforms"
        " flat_transforms_to_matrices matrices_to_flat_transforms rotate transform translate"
        " translations_to_projective_transforms",
    },
)
