"""`tf.keras.backend`: what the package's backend takes from the ground below it only in part."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import flowstone as tf
from flowstone.keras import foundation, functions, sessions, tf_utils

__all__ = ["extend"]


def _resize_images(older: Callable[..., Any]) -> Callable[..., Any]:
    """As in TensorFlow 1.15, bilinear pixels are squares; in the package's `older` they are points."""

    def resize_images(
        x: Any, height_factor: int, width_factor: int, data_format: str, interpolation: str = "nearest"
    ) -> Any:
        if interpolation != "bilinear":
            return older(x, height_factor, width_factor, data_format, interpolation)
        if data_format == "channels_first":
            x = tf.transpose(x, [0, 2, 3, 1])
        factors = (1, height_factor, width_factor, 1)
        size = tf.shape(x)[1:3] * tf.constant([height_factor, width_factor])
        lengths = x.shape.as_list()
        x = tf.image.resize_bilinear(x, size, half_pixel_centers=True)
        x.set_shape([None if n is None else n * by for n, by in zip(lengths, factors, strict=True)])
        return tf.transpose(x, [0, 3, 1, 2]) if data_format == "channels_first" else x

    return resize_images


def _changed_is_keras_tensor(published: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Objects of classes that a library has registered as tensors are tensors, too."""

    def is_keras_tensor(x: Any) -> bool:
        """Whether it is the output of a layer; ValueError for what is no tensor."""
        return hasattr(x, "_keras_history") if tf_utils.is_symbolic_tensor(x) else published(x)

    return is_keras_tensor


def _changed_get_value(published: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def get_value(x: Any) -> Any:
        """The value of a variable or tensor; other objects, such as schedules, as they are."""
        return published(x) if hasattr(x, "eval") else x

    return get_value


def _changed_batch_dot(published: Callable[..., Any]) -> Callable[..., Any]:
    def batch_dot(x: Any, y: Any, axes: Any = None) -> Any:
        """The products of each example's arrays along one axis of each; those of vectors have [batch, 1]."""
        ranks = [x.shape.ndims, y.shape.ndims]
        first, second = (axes, axes) if isinstance(axes, int) else axes or (ranks[0] - 1, 1)
        if ranks == [2, 2] and first == second == 1:
            return tf.expand_dims(tf.reduce_sum(tf.multiply(x, y), 1), 1)
        if ranks == [3, 3] and {first, second} <= {1, 2}:
            return tf.matmul(x, y, adjoint_a=first == 1, adjoint_b=second == 2)
        return published(x, y, axes)

    return batch_dot


def local_conv1d(inputs: Any, kernel: Any, kernel_size: Any, strides: Any, data_format: Any = None) -> Any:
    """Sums over windows of [batch, times, size], each with a kernel of its own; [batch, windows, filters].

    `kernel`: [windows, elements of a window, filters].
    """
    count, size, filters = kernel.shape.as_list()
    begins = [i * strides[0] for i in range(count)]
    windows = [tf.reshape(inputs[:, begin : begin + kernel_size[0], :], (1, -1, size)) for begin in begins]
    found = tf.matmul(tf.concat(windows, 0), kernel)
    return tf.transpose(tf.reshape(found, (count, -1, filters)), (1, 0, 2))


def extend(module: ModuleType) -> None:
    """Gives `keras.backend` the functions that layers here ask it for."""
    names = vars(module)
    names["local_conv1d"] = local_conv1d
    names["batch_dot"] = _changed_batch_dot(names["batch_dot"])
    names["local_conv2d"].__globals__["batch_dot"] = names["batch_dot"]
    names["track_variable"] = sessions.track_variable
    names["is_keras_tensor"] = _changed_is_keras_tensor(names["is_keras_tensor"])
    names["get_value"] = _changed_get_value(names["get_value"])
    names["function"] = functions.function  # the package's initialises variables beforehand
    names["learning_phase"] = foundation.learning_phase
    names["rnn"] = foundation.rnn  # the package's asks which results the learning phase reaches
    names["resize_images"] = _resize_images(names["resize_images"])
