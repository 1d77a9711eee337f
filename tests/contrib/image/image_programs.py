"""Images moved and bent, for TensorFlow 1.15 and flowstone alike."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["answers"]


def answers(tf: Any) -> dict[str, Any]:
    """What `tf.contrib.image` gives, by the name of the question."""
    image = tf.contrib.image
    one = np.arange(24, dtype=np.float32).reshape(1, 4, 6, 1)
    two = np.concatenate([one, one * 2], 0)
    bent = [1.0, 0.1, -1.0, 0.0, 1.0, 0.5, 0.0, 0.0]
    many = [[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.01, 0.0]]
    matrix = [[[2.0, 4.0, 6.0], [8.0, 10.0, 12.0], [14.0, 16.0, 2.0]]]
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(one)
        gradient = tf.gradients(tf.reduce_sum(image.transform(x, bent, "BILINEAR") * one), x)[0]
        flow = np.linspace(-1.5, 1.5, 48, dtype=np.float32).reshape(1, 4, 6, 2)
        asked = {
            "rotate": image.rotate(one, 0.5),
            "rotate_bilinear": image.rotate(two, [0.3, -1.0], "BILINEAR"),
            "rotate_2d": image.rotate(one[0, :, :, 0], 1.0),
            "rotate_3d": image.rotate(one[0], 1.0),
            "transform": image.transform(one, bent, "BILINEAR"),
            "transform_shape": image.transform(two, many, output_shape=[3, 5]),
            "translate": image.translate(one, [1.0, -1.0]),
            "translate_many": image.translate(two, [[1.5, 0.0], [0.0, -1.0]], "BILINEAR"),
            "angles": image.angles_to_projective_transforms([0.2, 0.7], 4.0, 6.0),
            "angle": image.angles_to_projective_transforms(0.2, 4.0, 6.0),
            "translations": image.translations_to_projective_transforms([[1.0, 2.0], [3.0, 4.0]]),
            "translation": image.translations_to_projective_transforms([1.0, 2.0]),
            "matrices": image.flat_transforms_to_matrices([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]]),
            "flat": image.matrices_to_flat_transforms(matrix),
            "composed": image.compose_transforms(
                [1.0, 0.0, 1.0, 0.0, 1.0, 2.0, 0.0, 0.0], [[2.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0]]
            ),
            "gradient": gradient,
            "warp": image.dense_image_warp(one, flow),
        }
        return session.run(asked)
