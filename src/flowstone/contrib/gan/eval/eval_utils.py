"""Many images side by side in one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import flowstone as tf

__all__ = ["image_grid", "image_reshaper"]


def image_grid(
    input_tensor: Any, grid_shape: Sequence[int], image_shape: Sequence[int] = (32, 32), num_channels: int = 3
) -> Any:
    """A batch of images as one image: of shape [1, rows · height, columns · width, channels].

    Args:
        input_tensor: tensor of rows · columns images.
        grid_shape: rows and columns.
        image_shape: height and width of an image.
        num_channels: the number of its channels.

    Raises ValueError if the grid does not hold as many images.
    """
    rows, columns = grid_shape
    if rows * columns != int(input_tensor.shape[0]):
        raise ValueError(
            f"Grid shape {tuple(grid_shape)} incompatible with minibatch size {input_tensor.shape[0]}."
        )
    height, width = image_shape
    images = tf.reshape(input_tensor, [rows, columns, height, width, num_channels])
    images = tf.transpose(images, [0, 2, 1, 3, 4])
    return tf.reshape(images, [1, rows * height, columns * width, num_channels])


def image_reshaper(images: Any, num_cols: int | None = None) -> Any:
    """Images as one image with `num_cols` columns, filled up with black ones.

    Args:
        images: a tensor of shape [n, height, width, channels], or a list of images.
        num_cols: by default the grid is as good as square.

    Returns a tensor of shape [1, rows · height, columns · width, channels].
    """
    listed = list(images) if isinstance(images, (list, tuple)) else tf.unstack(images)
    columns = math.ceil(math.sqrt(len(listed))) if num_cols is None else num_cols
    rows = math.ceil(len(listed) / columns)
    listed += [tf.zeros_like(listed[-1])] * (rows * columns - len(listed))
    joined = [tf.concat(listed[row * columns : (row + 1) * columns], 1) for row in range(rows)]
    return tf.expand_dims(tf.concat(joined, 0), 0)
