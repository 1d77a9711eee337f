"""Images as vectors, and labels as one-hot images."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["one_hot_mask", "one_hot_planes", "pixels_as_vector", "pool_as_vector"]


def pixels_as_vector(images: Any, scope: Any = None) -> Any:
    """The pixels of each image as a vector: of shape [batch size, height · width · depth]."""
    with tf.name_scope(scope, "PixelsAsVector", [images]):
        batch_size, height, width, depth = images.get_shape().as_list()
        return tf.reshape(images, [batch_size, height * width * depth])


def pool_as_vector(images: Any, scope: Any = None) -> Any:
    """The mean of each image's pixels: of shape [batch size, depth]."""
    with tf.name_scope(scope, "PoolAsVector", [images]):
        return tf.reduce_mean(images, [1, 2])


def one_hot_planes(labels: Any, num_classes: int, scope: Any = None) -> Any:
    """Labels of shape [batch size] as images of one pixel: of shape [batch size, 1, 1, num_classes]."""
    with tf.name_scope(scope, "OneHotPlanes", [labels]):
        (batch_size,) = labels.get_shape().as_list()
        batched = tf.contrib.layers.one_hot_encoding(labels, num_classes)
        return tf.reshape(batched, [batch_size, 1, 1, num_classes])


def one_hot_mask(labels: Any, num_classes: int, scope: Any = None) -> Any:
    """The labels of an image's pixels, of shape [height, width, 1], as one-hot vectors.

    Raises ValueError for another shape.
    """
    with tf.name_scope(scope, "OneHotMask", [labels]):
        height, width, depth = labels.get_shape().as_list()
        if depth != 1:
            raise ValueError(
                f"the labels of pixels have the shape [height, width, 1], not a depth of {depth}"
            )
        return tf.one_hot(tf.to_int32(tf.reshape(labels, [height, width])), num_classes)
