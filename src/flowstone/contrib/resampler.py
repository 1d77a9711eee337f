"""`tf.contrib.resampler`: values of images between their pixels."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["resampler"]


def resampler(data: Any, warp: Any, name: str = "resampler") -> Any:
    """Samples images at places between pixels, bilinearly; beyond the borders there are zeros.

    Args:
        data: [batch, height, width, channels], floating.
        warp: the places (x, y) in pixels, [batch, ..., 2], of the same type.
        name: the scope of its operations.

    Returns [batch, ..., channels]. Gradients flow to both. UnimplementedError if the shapes are known to be
    others.
    """
    with tf.name_scope(name):
        data = tf.convert_to_tensor(data, name="data")
        warp = tf.convert_to_tensor(warp, name="warp")
        _check_shapes(data.shape, warp.shape)
        sizes, places = tf.shape(data), tf.shape(warp)
        height, width = sizes[1], sizes[2]
        outer = warp.shape[:-1].concatenate(data.shape.with_rank(4)[3:])
        points = tf.reshape(warp, tf.stack([sizes[0], -1, 2]))
        x, y = points[..., 0], points[..., 1]
        x0, y0 = tf.floor(x), tf.floor(y)
        total: Any = 0
        for dx in (0, 1):
            for dy in (0, 1):
                column, row = x0 + dx, y0 + dy
                weight = (x - x0 if dx else 1 - (x - x0)) * (y - y0 if dy else 1 - (y - y0))
                total = total + weight[..., None] * _pixels(data, column, row, height, width)
        result = tf.reshape(total, tf.concat([places[:-1], sizes[3:]], axis=0))
        result.set_shape(outer)
        return result


def _pixels(data: Any, column: Any, row: Any, height: Any, width: Any) -> Any:
    """The pixels [batch, n, channels] in whole columns and rows, zeros outside."""
    column, row = (tf.cast(tf.clip_by_value(each, -2.0, 2.0**30), tf.int32) for each in (column, row))
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    flat = tf.clip_by_value(row, 0, height - 1) * width + tf.clip_by_value(column, 0, width - 1)
    sizes = tf.shape(data)
    first = tf.range(sizes[0])[:, None] * (height * width)
    pixels = tf.gather(tf.reshape(data, tf.stack([-1, sizes[3]])), flat + first)
    return pixels * tf.cast(inside, data.dtype)[..., None]


def _check_shapes(data: Any, warp: Any) -> None:
    if data.ndims not in (None, 4):
        raise tf.errors.UnimplementedError(
            None,
            None,
            "Only bilinear interpolation is currently supported. The input data shape must be [batch_size, "
            f"data_height, data_width, data_channels], but is: {data}",
        )
    if warp.ndims is not None and (warp.ndims < 2 or warp[-1].value not in (None, 2)):
        raise tf.errors.UnimplementedError(
            None,
            None,
            "Only bilinear interpolation is supported, warping coordinates must be 2D; warp shape last entry "
            f"should be 2, but shape vector is: {warp}",
        )
