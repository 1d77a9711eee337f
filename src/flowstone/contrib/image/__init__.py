"""`tf.contrib.image`: images moved, turned, bent and recoloured, and what in them is connected."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.image.components": "bipartite_match connected_components",
        "flowstone.contrib.image.dense_warps": "dense_image_warp",
        "flowstone.contrib.image.distort_image_ops": "adjust_hsv_in_yiq random_hsv_in_yiq",
        "flowstone.contrib.image.image_ops": "angles_to_projective_transforms compose_transforms"
        " flat_transforms_to_matrices matrices_to_flat_transforms rotate transform translate"
        " translations_to_projective_transforms",
        "flowstone.contrib.image.polyharmonic_splines": "interpolate_spline",
        "flowstone.contrib.image.sparse_warps": "sparse_image_warp",
    },
)
