"""Projective transforms of images: [a0, a1, a2, b0, b1, b2, c0, c1] maps an output's point to an input's.

The output's point (x, y) takes the input's ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), with
k = c0 x + c1 y + 1. Images are [height, width], [height, width, channels] or [batch, height, width, channels]
of uint8, int32, int64, float16, float32 or float64; transforms [8] or [batch, 8] of float32.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = [
    "angles_to_projective_transforms",
    "compose_transforms",
    "flat_transforms_to_matrices",
    "matrices_to_flat_transforms",
    "rotate",
    "transform",
    "translate",
    "translations_to_projective_transforms",
]

_TYPES = (tf.uint8, tf.int32, tf.int64, tf.float16, tf.float32, tf.float64)


def _with_batch(images: Any) -> tuple[Any, int]:
    """The images as [batch, height, width, channels], and their own rank."""
    images = tf.convert_to_tensor(images, name="images")
    if images.dtype.base_dtype not in _TYPES:
        raise TypeError(f"Invalid dtype {images.dtype!r}.")
    rank = images.shape.ndims
    if rank is None:
        raise TypeError("Images must have a known rank.")
    if rank == 2:
        return images[None, :, :, None], rank
    if rank == 3:
        return images[None], rank
    if rank == 4:
        return images, rank
    raise TypeError("Images should have rank between 2 and 4.")


def _of_rank(images: Any, rank: int) -> Any:
    if rank == 2:
        return images[0, :, :, 0]
    return images[0] if rank == 3 else images


def _rows(values: Any, what: str) -> Any:
    """One row for each image of what is given for one or for each."""
    values = tf.convert_to_tensor(values, dtype=tf.float32, name=what)
    rank = values.shape.ndims
    if rank is None:
        raise TypeError(f"{what} rank must be statically known")
    if rank not in (1, 2):
        raise TypeError(f"{what} should have rank 1 or 2.")
    return values[None] if rank == 1 else values


def rotate(images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None) -> Any:
    """Images turned about their middle, against the clock; what comes from outside is 0.

    Args:
        images: see the module. angles: in radians, a scalar or one for each image.
        interpolation: "NEAREST" or "BILINEAR". name: of the operation.

    Raises TypeError for other types and ranks.
    """
    with tf.name_scope(name, "rotate"):
        batch, rank = _with_batch(images)
        shape = tf.cast(tf.shape(batch), tf.float32)
        transforms = angles_to_projective_transforms(angles, shape[1], shape[2])
        return _of_rank(transform(batch, transforms, interpolation), rank)


def translate(images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None) -> Any:
    """Images moved by [dx, dy], one pair for all or one for each; what comes from outside is 0."""
    with tf.name_scope(name, "translate"):
        return transform(images, translations_to_projective_transforms(translations), interpolation)


def angles_to_projective_transforms(
    angles: Any, image_height: Any, image_width: Any, name: str | None = None
) -> Any:
    """The transforms [images, 8] that turn images of this height and width by the angles, in radians."""
    with tf.name_scope(name, "angles_to_projective_transforms"):
        angles = tf.convert_to_tensor(angles, dtype=tf.float32, name="angles")
        if angles.shape.ndims not in (0, 1):
            raise TypeError("Angles should have rank 0 or 1.")
        angles = angles[None] if angles.shape.ndims == 0 else angles
        cos, sin = tf.cos(angles), tf.sin(angles)
        across, down = image_width - 1, image_height - 1
        x_offset = (across - (cos * across - sin * down)) / 2.0
        y_offset = (down - (sin * across + cos * down)) / 2.0
        zeros = tf.zeros_like(angles)
        return tf.stack([cos, -sin, x_offset, sin, cos, y_offset, zeros, zeros], axis=1)


def translations_to_projective_transforms(translations: Any, name: str | None = None) -> Any:
    """The transforms [images, 8] that move images by [dx, dy]."""
    with tf.name_scope(name, "translations_to_projective_transforms"):
        moves = _rows(translations, "translations")
        dx, dy = moves[:, 0], moves[:, 1]
        ones, zeros = tf.ones_like(dx), tf.zeros_like(dx)
        return tf.stack([ones, zeros, -dx, zeros, ones, -dy, zeros, zeros], axis=1)


def transform(
    images: Any,
    transforms: Any,
    interpolation: str = "NEAREST",
    output_shape: Any = None,
    name: str | None = None,
) -> Any:
    """Images under transforms; what comes from outside is 0.

    Args:
        images, transforms: see the module. interpolation: "NEAREST" or "BILINEAR".
        output_shape: [height, width] of the result; None for that of the images. name: of the operation.
    """
    with tf.name_scope(name, "transform"):
        batch, rank = _with_batch(images)
        rows = _rows(transforms, "transforms")
        size = tf.shape(batch)[1:3] if output_shape is None else tf.convert_to_tensor(output_shape, tf.int32)
        moved = tf.raw_ops.ImageProjectiveTransformV2(
            images=batch, transforms=rows, output_shape=size, interpolation=interpolation.upper()
        )
        known = tf.get_static_value(size)
        height, width = (None, None) if known is None else known
        moved.set_shape([batch.shape[0], height, width, batch.shape[3]])
        return _of_rank(moved, rank)


def compose_transforms(*transforms: Any) -> Any:
    """One transform in place of several; the last one is applied to the output's points first."""
    if not transforms:
        raise ValueError("transforms cannot be empty")
    with tf.name_scope("compose_transforms"):
        composed = flat_transforms_to_matrices(transforms[0])
        for each in transforms[1:]:
            composed = tf.matmul(composed, flat_transforms_to_matrices(each))
        return matrices_to_flat_transforms(composed)


def flat_transforms_to_matrices(transforms: Any) -> Any:
    """Transforms [8] or [images, 8] as matrices [images, 3, 3] whose last element is 1."""
    with tf.name_scope("flat_transforms_to_matrices"):
        rows = _rows(transforms, "transforms")
        return tf.reshape(tf.concat([rows, tf.ones([tf.shape(rows)[0], 1])], axis=1), [-1, 3, 3])


def matrices_to_flat_transforms(transform_matrices: Any) -> Any:
    """Matrices [3, 3] or [images, 3, 3] as transforms [images, 8]: divided by their last element."""
    with tf.name_scope("matrices_to_flat_transforms"):
        matrices = tf.convert_to_tensor(transform_matrices, dtype=tf.float32, name="matrices")
        if matrices.shape.ndims not in (2, 3):
            raise ValueError(f"Matrices should be 2D or 3D, got: {matrices}")
        rows = tf.reshape(matrices, [-1, 9])
        return (rows / rows[:, 8:9])[:, :8]
