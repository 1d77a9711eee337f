"""Images bent by a field of displacements."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["dense_image_warp"]


def dense_image_warp(image: Any, flow: Any, name: str = "dense_image_warp") -> Any:
    """The image whose point (j, i) is the input's at (j - flow[j, i, 0], i - flow[j, i, 1]), bilinearly.

    Args:
        image: [batch, height, width, channels], at least 2 high and wide.
        flow: [batch, height, width, 2] of floats: rows and columns. name: of the operation.

    Returns:
        a tensor of the image's shape and type; points outside take the nearest ones of the border.
    """
    with tf.name_scope(name):
        image, flow = tf.convert_to_tensor(image), tf.convert_to_tensor(flow)
        batch, height, width, channels = (tf.shape(image)[axis] for axis in range(4))
        columns, rows = tf.meshgrid(tf.range(width), tf.range(height))
        grid = tf.cast(tf.stack([rows, columns], axis=2), flow.dtype)
        points = tf.reshape(grid[None] - flow, [batch, height * width, 2])
        flat = tf.reshape(image, [batch * height * width, channels])
        floors, parts = [], []
        for axis, size in enumerate((height, width)):
            place = points[:, :, axis]
            last = tf.cast(size - 2, flow.dtype)
            floor = tf.minimum(tf.maximum(0.0, tf.floor(place)), last)
            floors.append(tf.cast(floor, tf.int32))
            part = tf.cast(place - floor, image.dtype)
            parts.append(tf.minimum(tf.maximum(0.0, part), 1.0)[:, :, None])
        starts = tf.reshape(tf.range(batch) * height * width, [batch, 1])

        def read(down: int, across: int) -> Any:
            places = starts + (floors[0] + down) * width + floors[1] + across
            return tf.gather(flat, places)

        top = read(0, 0) + parts[1] * (read(0, 1) - read(0, 0))
        bottom = read(1, 0) + parts[1] * (read(1, 1) - read(1, 0))
        return tf.reshape(top + parts[0] * (bottom - top), tf.shape(image))
