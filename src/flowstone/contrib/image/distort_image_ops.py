"""Colours of images changed in hue, saturation and value by one linear map in the space YIQ."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf

__all__ = ["adjust_hsv_in_yiq", "random_hsv_in_yiq"]

# The FCC's NTSC standard of 1953: luma and two axes of chrominance of red, green and blue.
_TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]], np.float32)
_TO_RGB = np.linalg.inv(_TO_YIQ).astype(np.float32)


def random_hsv_in_yiq(
    image: Any,
    max_delta_hue: float = 0,
    lower_saturation: float = 1,
    upper_saturation: float = 1,
    lower_value: float = 1,
    upper_value: float = 1,
    seed: int | None = None,
) -> Any:
    """`adjust_hsv_in_yiq` with a hue, saturation and value drawn uniformly.

    Args:
        image: RGB images, of shape [..., 3].
        max_delta_hue: the hue turns by an angle from -max_delta_hue to max_delta_hue, in radians.
        lower_saturation: the least factor of the saturation.
        upper_saturation: the largest factor of the saturation.
        lower_value: the least factor of the value.
        upper_value: the largest factor of the value.
        seed: of the random numbers.

    Raises ValueError for a negative bound, and for a lower bound above its upper one.
    """
    if max_delta_hue < 0:
        raise ValueError("max_delta must be non-negative.")
    for what, lower, upper in (
        ("saturation", lower_saturation, upper_saturation),
        ("value", lower_value, upper_value),
    ):
        if lower < 0:
            raise ValueError(f"lower_{what} must be non-negative.")
        if lower > upper:
            raise ValueError(f"lower_{what} must be < upper_{what}.")

    def drawn(lower: float, upper: float) -> Any:
        return lower if lower == upper else tf.random_uniform([], lower, upper, seed=seed)

    hue = 0 if max_delta_hue == 0 else tf.random_uniform([], -max_delta_hue, max_delta_hue, seed=seed)
    saturation = drawn(lower_saturation, upper_saturation)
    return adjust_hsv_in_yiq(image, hue, saturation, drawn(lower_value, upper_value))


def adjust_hsv_in_yiq(
    image: Any, delta_hue: Any = 0, scale_saturation: Any = 1, scale_value: Any = 1, name: str | None = None
) -> Any:
    """Images with their hue turned and their saturation and value scaled, in the space YIQ.

    Args:
        image: RGB images, of shape [..., 3], of an integer type in its whole range, or of floats in [0, 1].
        delta_hue: the angle in radians, a scalar.
        scale_saturation: the factor of the saturation, a scalar.
        scale_value: the factor of the value, a scalar.
        name: of the operation.

    Returns images of the same shape and type; floats are not cut to [0, 1]. Raises ValueError if the images
    have fewer than three axes or the last is not 3.
    """
    with tf.name_scope(name, "adjust_hsv_in_yiq", [image]):
        image = tf.convert_to_tensor(image, name="image")
        shape = image.get_shape().with_rank_at_least(3)
        shape[-1:].assert_is_compatible_with([3])
        dtype = image.dtype
        rgb = image if dtype == tf.float32 else tf.image.convert_image_dtype(image, tf.float32)
        hue = tf.convert_to_tensor(delta_hue, tf.float32, name="delta_h")
        value = tf.convert_to_tensor(scale_value, tf.float32, name="scale_v")
        chroma = value * tf.convert_to_tensor(scale_saturation, tf.float32, name="scale_s")
        cosine, sine, zero = chroma * tf.cos(hue), chroma * tf.sin(hue), tf.zeros([])
        turn = tf.reshape(tf.stack([value, zero, zero, zero, cosine, -sine, zero, sine, cosine]), [3, 3])
        # Rows are pixels: the transpose of TO_RGB · turn · TO_YIQ.
        whole = tf.matmul(
            tf.matmul(_TO_YIQ, turn, transpose_a=True, transpose_b=True), _TO_RGB, transpose_b=True
        )
        turned = tf.reshape(tf.matmul(tf.reshape(rgb, [-1, 3]), whole), tf.shape(rgb))
        turned.set_shape(shape)
        return tf.image.convert_image_dtype(turned, dtype)
