"""LSTMs over images: tensors of shape [batch size, height, width, depth], all known.

An image is read row by row and column by column: Visin et al., "ReNet: A Recurrent Neural Network Based
Alternative to Convolutional Networks", 2015.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.ndlstm import lstm1d as lstm1d

__all__ = [
    "get_blocks",
    "horizontal_lstm",
    "images_to_sequence",
    "reduce_to_final",
    "reduce_to_sequence",
    "separable_lstm",
    "sequence_to_images",
]


def _sizes(images: Any) -> list[int]:
    sizes: list[int] = images.get_shape().as_list()
    if len(sizes) != 4:
        raise ValueError(f"images have the shape [batch size, height, width, depth], not {sizes}")
    return sizes


def images_to_sequence(tensor: Any) -> Any:
    """The rows of images as sequences: of shape [width, batch size · height, depth]."""
    batch_size, height, width, depth = _sizes(tensor)
    return tf.reshape(tf.transpose(tensor, [2, 0, 1, 3]), [width, batch_size * height, depth])


def sequence_to_images(tensor: Any, num_image_batches: int) -> Any:
    """The images of which `images_to_sequence` made sequences; `num_image_batches` is their batch size."""
    width, rows, depth = tensor.get_shape().as_list()
    images = tf.reshape(tensor, [width, num_image_batches, rows // num_image_batches, depth])
    return tf.transpose(images, [1, 2, 0, 3])


def horizontal_lstm(images: Any, num_filters_out: int, scope: Any = None) -> Any:
    """Two LSTMs along the rows of images, one in each direction, whose outputs are joined.

    Returns images of depth `num_filters_out`, half of it from each; the second has the odd one.
    """
    with tf.variable_scope(scope, "HorizontalLstm", [images]):
        sequence = images_to_sequence(images)
        forward = num_filters_out // 2
        with tf.variable_scope("lr"):
            left = lstm1d.ndlstm_base(sequence, forward)
        with tf.variable_scope("rl"):
            right = lstm1d.ndlstm_base(sequence, num_filters_out - forward, reverse=True)
        return sequence_to_images(tf.concat([left, right], 2), _sizes(images)[0])


def get_blocks(images: Any, kernel_size: Sequence[int]) -> Any:
    """Images whose pixels are the blocks of others, `kernel_size` being a block's height and width.

    Returns a tensor of shape [batch size, height / block's height, width / block's width, depth · pixels of a
    block], rounded up: where blocks go beyond an image there are zeros.
    """
    with tf.variable_scope("image_blocks"):
        batch_size, height, width, depth = _sizes(images)
        rows, columns = kernel_size
        below, right = -height % rows, -width % columns
        if below or right:
            images = tf.pad(images, [[0, 0], [0, below], [0, right], [0, 0]])
        shape = [batch_size, (width + right) // columns, rows * columns * depth]
        strips = tf.split(images, (height + below) // rows, axis=1)
        return tf.stack([tf.reshape(tf.transpose(strip, [0, 2, 3, 1]), shape) for strip in strips], axis=1)


def separable_lstm(
    images: Any,
    num_filters_out: int,
    kernel_size: Sequence[int] | None = None,
    nhidden: int | None = None,
    scope: Any = None,
) -> Any:
    """LSTMs along the rows, then along the columns of images, in both directions.

    Args:
        images: float32 tensor of shape [batch size, height, width, depth].
        num_filters_out: the depth of the result.
        kernel_size: height and width of the blocks that are read as one pixel.
        nhidden: the depth between rows and columns; by default `num_filters_out`.
        scope: a variable scope.

    Returns images of depth `num_filters_out`, a pixel a block.
    """
    with tf.variable_scope(scope, "SeparableLstm", [images]):
        if nhidden is None:
            nhidden = num_filters_out
        if kernel_size is not None:
            images = get_blocks(images, kernel_size)
        hidden = horizontal_lstm(images, nhidden)
        with tf.variable_scope("vertical"):
            turned = horizontal_lstm(tf.transpose(hidden, [0, 2, 1, 3]), num_filters_out)
        return tf.transpose(turned, [0, 2, 1, 3])


def reduce_to_sequence(images: Any, num_filters_out: int, scope: Any = None) -> Any:
    """The outputs of an LSTM at the end of each column: of shape [batch size, width, num_filters_out]."""
    with tf.variable_scope(scope, "ReduceToSequence", [images]):
        batch_size, height, width, depth = _sizes(images)
        columns = tf.reshape(tf.transpose(images, [1, 0, 2, 3]), [height, batch_size * width, depth])
        reduced = lstm1d.sequence_to_final(columns, num_filters_out)
        return tf.reshape(reduced, [batch_size, width, num_filters_out])


def reduce_to_final(images: Any, num_filters_out: int, nhidden: int | None = None, scope: Any = None) -> Any:
    """A vector an image: an LSTM of size `nhidden` along each column, then one along their outputs."""
    with tf.variable_scope(scope, "ReduceToFinal", [images]):
        nhidden = nhidden or num_filters_out
        batch_size, height, width, depth = _sizes(images)
        columns = tf.reshape(tf.transpose(images, [1, 0, 2, 3]), [height, batch_size * width, depth])
        with tf.variable_scope("reduce1"):
            reduced = lstm1d.sequence_to_final(columns, nhidden)
            rows = tf.reshape(reduced, [batch_size, width, nhidden])
        with tf.variable_scope("reduce2"):
            return lstm1d.sequence_to_final(tf.transpose(rows, [1, 0, 2]), num_filters_out)
