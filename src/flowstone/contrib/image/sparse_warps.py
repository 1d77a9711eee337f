"""Images bent so that some points move to given places and the others follow smoothly."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.image.dense_warps import dense_image_warp
from flowstone.contrib.image.polyharmonic_splines import interpolate_spline

__all__ = ["sparse_image_warp"]


def _boundary(height: int, width: int, points_per_edge: int) -> np.ndarray[Any, Any]:
    """The corners of an image and `points_per_edge` points between them, on each edge."""
    rows = np.linspace(0, height - 1, points_per_edge + 2)
    columns = np.linspace(0, width - 1, points_per_edge + 2)
    grid = np.stack(np.meshgrid(rows, columns, indexing="ij"), -1).reshape(-1, 2)
    edge = np.isin(grid[:, 0], rows[[0, -1]]) | np.isin(grid[:, 1], columns[[0, -1]])
    return grid[edge].astype(np.float32)


def sparse_image_warp(
    image: Any,
    source_control_point_locations: Any,
    dest_control_point_locations: Any,
    interpolation_order: int = 2,
    regularization_weight: float = 0.0,
    num_boundary_points: int = 0,
    name: str = "sparse_image_warp",
) -> tuple[Any, Any]:
    """Images with control points moved, and the flow that moves all others, a polyharmonic spline.

    Args:
        image: float32 tensor of shape [batch size, height, width, channels], height and width known.
        source_control_point_locations: float32 tensor of shape [batch size, n, 2]: rows and columns.
        dest_control_point_locations: float32 tensor of the same shape, where the points are to be.
        interpolation_order: the spline's order.
        regularization_weight: the spline's smoothing.
        num_boundary_points: how many points of each edge stay in place; 1 means the corners, 0 none.
        name: of the operation.

    Returns the images and the flow, of shape [batch size, height, width, 2]: what comes from where. Raises
    ValueError if the image's height or width is not known.
    """
    image = tf.convert_to_tensor(image)
    source = tf.convert_to_tensor(source_control_point_locations)
    destination = tf.convert_to_tensor(dest_control_point_locations)
    with tf.name_scope(name):
        batch_size, height, width, _ = image.get_shape().with_rank(4).as_list()
        if height is None or width is None:
            raise ValueError("sparse_image_warp takes images whose height and width are known")
        flows = destination - source
        if num_boundary_points > 0:
            count = tf.shape(image)[0] if batch_size is None else batch_size
            fixed = tf.tile(_boundary(height, width, num_boundary_points - 1)[np.newaxis], [count, 1, 1])
            destination = tf.concat([destination, fixed], 1)
            flows = tf.concat([flows, tf.zeros_like(fixed)], 1)
        grid = np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij"), -1)
        count = tf.shape(image)[0] if batch_size is None else batch_size
        pixels = tf.tile(grid.reshape(1, -1, 2).astype(np.float32), [count, 1, 1])
        flow = interpolate_spline(destination, flows, pixels, interpolation_order, regularization_weight)
        flow = tf.reshape(flow, [-1 if batch_size is None else batch_size, height, width, 2])
        return dense_image_warp(image, flow), flow
