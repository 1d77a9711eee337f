"""Images moved and bent, for TensorFlow 1.15 and flowstone alike."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["answers"]


def _splines(image):
    draw = np.random.RandomState(0)
    points, values, queries = (draw.rand(2, n, k).astype(np.float32) for n, k in ((5, 2), (5, 3), (4, 2)))
    picture = draw.rand(1, 6, 7, 2).astype(np.float32)
    source = np.array([[[1.0, 1.0], [4.0, 2.0], [2.0, 5.0]]], np.float32)
    goal = source + np.array([[[0.5, 0.0], [0.0, 1.0], [-1.0, 0.3]]], np.float32)
    asked = {}
    for order in (1, 2, 3, 4):
        asked[f"spline_{order}"] = image.interpolate_spline(points, values, queries, order)
        asked[f"smooth_spline_{order}"] = image.interpolate_spline(points, values, queries, order, 0.1)
    for boundary in (0, 1, 3):
        bent, flow = image.sparse_image_warp(picture, source, goal, num_boundary_points=boundary)
        asked.update({f"bent_{boundary}": bent, f"flow_{boundary}": flow})
    asked["bent_smoothly"], _ = image.sparse_image_warp(picture, source, goal, 1, 0.1, 2)
    return asked


def _components(tf, image):
    draw = np.random.RandomState(1)
    pixels = draw.randint(0, 3, (3, 9, 11))
    distances = draw.rand(4, 6).astype(np.float32)
    asked = {
        "components": image.connected_components(tf.constant(pixels)),
        "components_of_one": image.connected_components(tf.constant(pixels[0] > 0)),
        "components_of_floats": image.connected_components(tf.constant(pixels[1] * 0.5)),
        "components_of_words": image.connected_components(tf.constant(np.array(["", "a", "b"])[pixels[2]])),
    }
    for valid, most in ((4.0, -1), (2.0, -1), (-1.0, 3), (0.0, -1)):
        match = image.bipartite_match(distances, valid, most)
        asked[f"columns_{valid}_{most}"] = match.row_to_col_match_indices
        asked[f"rows_{valid}_{most}"] = match.col_to_row_match_indices
    return asked


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
            **_splines(image),
            **_components(tf, image),
        }
        return session.run(asked)
