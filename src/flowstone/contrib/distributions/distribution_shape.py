"""Vectors [sample, batch, event] as columns of matrices [batch, event, sample], and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.distribution_util import rotate_transpose
from flowstone.distributions.sample_shapes import integer_vector

__all__ = ["DistributionShape", "through_columns"]

_SCOPE = "DistributionShape"


class DistributionShape:
    """The parts of the shapes of vectors whose batch and event have numbers of dimensions that are known.

    Args:
        batch_ndims: the number of dimensions of a batch.
        event_ndims: that of an event.
    """

    def __init__(self, batch_ndims: int, event_ndims: int) -> None:
        with tf.name_scope(_SCOPE), tf.name_scope("init"):
            self._batch = tf.constant(batch_ndims, name="batch_ndims")
            self._event = tf.constant(event_ndims, name="event_ndims")
        self._batch_ndims, self._event_ndims = batch_ndims, event_ndims

    def columns(self, x: Any) -> tuple[Any, Any]:
        """x as matrices [batch, event, all of the sample], and the sample's shape. x has a known rank."""
        with tf.name_scope(_SCOPE), tf.name_scope("make_batch_of_event_sample_matrices"):
            sample, batch, event = self._parts(x)
            with tf.name_scope("pick_vector"):
                tf.constant(False, name="cond")
            return rotate_transpose(tf.reshape(x, tf.concat([[-1], batch, event], 0)), -1), sample

    def vectors(self, matrices: Any, sample: Any) -> Any:
        """Matrices as vectors [sample, batch, event], given the sample's shape."""
        with tf.name_scope(_SCOPE), tf.name_scope("undo_make_batch_of_event_sample_matrices"):
            rotated = rotate_transpose(matrices, 1)
            _, batch, event = self._parts(rotated)
            return tf.reshape(rotated, tf.concat([sample, batch, event], 0))

    def _parts(self, x: Any) -> tuple[Any, Any, Any]:
        """The shapes of the sample, the batch and the event, int32 vectors."""
        with tf.name_scope(_SCOPE), tf.name_scope("get_shape"):
            with tf.name_scope(_SCOPE), tf.name_scope("get_shape"):
                with tf.name_scope(_SCOPE), tf.name_scope("get_shape"):
                    tf.constant(x.shape.ndims, name="ndims")
                count = x.shape.ndims - self._batch_ndims - self._event_ndims
                ndims = tf.constant(count, name="sample_ndims")
            zero = tf.constant(0, name="zero")
            middle = count + self._batch_ndims
            return (
                _part(x, x.shape[:count], [zero], ndims, "sample_shape"),
                _part(x, x.shape[count:middle], [ndims], self._batch, "batch_shape"),
                _part(x, x.shape[middle:], [ndims, self._batch], self._event, "event_shape"),
            )


def _part(x: Any, known: Any, before: list[Any], size: Any, name: str) -> Any:
    if known.is_fully_defined():
        return integer_vector(known.as_list(), name)
    return tf.slice(tf.shape(x), [sum(before)], [size])


def through_columns(shapes: DistributionShape | None, function: Callable[[Any], Any], x: Any) -> Any:
    """What a function of matrices [batch, k, n] makes of vectors [sample, batch, k], one column for each.

    Without `shapes`, or if the rank of x is not known, the batch broadcasts with that of x.
    """
    if shapes is None or x.shape.ndims is None:
        return tf.squeeze(function(x[..., None]), -1)
    matrices, sample = shapes.columns(x)
    return shapes.vectors(function(matrices), sample)
