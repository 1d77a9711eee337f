"""Softmax in its forms, vectors of length one, gradients scaled on their way back."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.framework.arg_scope import add_arg_scope
from flowstone.contrib.framework.variables import model_variable
from flowstone.contrib.layers.utils import get_variable_collections, last_dimension

__all__ = ["poincare_normalize", "scale_gradient", "softmax", "spatial_softmax", "unit_norm"]


@add_arg_scope
def softmax(logits: Any, scope: Any = None) -> Any:
    """The softmax over the last dimension of logits of rank 2 at least.

    The scope is by default "softmax". ValueError for a smaller rank, or an unknown last size.
    """
    with tf.variable_scope(scope, "softmax", [logits]):
        logits = tf.convert_to_tensor(logits)
        num_logits = last_dimension(logits.shape, min_rank=2)
        predictions = tf.nn.softmax(tf.reshape(logits, [-1, num_logits]))
        predictions = tf.reshape(predictions, tf.shape(logits))
        predictions.set_shape(logits.shape)
        return predictions


@add_arg_scope
def spatial_softmax(
    features: Any, temperature: Any = None, name: str | None = None, variables_collections: Any = None,
    trainable: bool = True, data_format: str = "NHWC",
) -> Any:  # fmt: skip
    """Where each channel of an image is largest, softly: the mean position under a softmax over positions.

    Source: Finn et al., "Deep Spatial Autoencoders for Visuomotor Learning" (2016).

    Args:
        features: [batch, height, width, channels]; [batch, channels, height, width] for NCHW.
        temperature: of the softmax at first; None is 1. It is the variable ``temperature``.
        name: the scope; default "spatial_softmax".
        variables_collections, trainable: of that variable.

    Returns [batch, 2 * channels]: for each channel the expected row and column, between -1 and 1.
    ValueError for another layout.
    """
    if data_format not in ("NCHW", "NHWC"):
        raise ValueError("data_format has to be either NCHW or NHWC.")
    with tf.variable_scope(name, "spatial_softmax"):
        features = tf.convert_to_tensor(features)
        _, *known = features.shape.as_list()
        known_height, known_width, channels = known if data_format == "NHWC" else (*known[1:], known[0])
        sizes = tf.shape(features)
        first = 1 if data_format == "NHWC" else 2
        height = sizes[first] if known_height is None else known_height
        width = sizes[first + 1] if known_width is None else known_width
        temperature = model_variable(
            "temperature",
            shape=(),
            dtype=tf.float32,
            initializer=tf.ones_initializer()
            if temperature is None
            else tf.constant_initializer(temperature),
            collections=get_variable_collections(variables_collections, "temperature"),
            trainable=trainable,
        )
        with tf.name_scope("spatial_softmax_op", "spatial_softmax_op", [features]):
            return _expected_positions(features, temperature, height, width, channels, data_format)


def _expected_positions(
    features: Any, temperature: Any, height: Any, width: Any, channels: int, data_format: str
) -> Any:
    x_positions, y_positions = tf.meshgrid(
        tf.lin_space(-1.0, 1.0, num=height), tf.lin_space(-1.0, 1.0, num=width), indexing="ij"
    )
    x_positions = tf.reshape(x_positions, [height * width])
    y_positions = tf.reshape(y_positions, [height * width])
    if data_format == "NHWC":
        features = tf.transpose(features, [0, 3, 1, 2])
    rows = tf.reshape(features, [-1, height * width])
    attention = tf.nn.softmax(rows / temperature)
    expected_x = tf.reduce_sum(x_positions * attention, [1], keepdims=True)
    expected_y = tf.reduce_sum(y_positions * attention, [1], keepdims=True)
    keypoints = tf.reshape(tf.concat([expected_x, expected_y], 1), [-1, channels * 2])
    keypoints.set_shape([None, channels * 2])
    return keypoints


@add_arg_scope
def unit_norm(inputs: Any, dim: int, epsilon: float = 1e-7, scope: Any = None) -> Any:
    """The inputs divided by their Euclidean length along dimension `dim`.

    `epsilon` is added to the sum of squares. The scope is by default "UnitNorm". ValueError for inputs of
    unknown rank and a dimension that is negative or beyond it.
    """
    with tf.variable_scope(scope, "UnitNorm", [inputs]):
        inputs = tf.convert_to_tensor(inputs)
        if inputs.shape.ndims is None:
            raise ValueError("The input rank must be known.")
        if not 0 <= dim < inputs.shape.ndims:
            raise ValueError("dim must be positive but smaller than the input rank.")
        lengths = tf.sqrt(epsilon + tf.reduce_sum(tf.square(inputs), dim, keepdims=True))
        return tf.div(inputs, lengths)


def poincare_normalize(x: Any, axis: Any = 1, epsilon: float = 1e-5, name: str | None = None) -> Any:
    """Vectors along `axis` brought into the Poincaré ball: those longer than 1 - epsilon get that length.

    Source: Nickel and Kiela, "Poincaré Embeddings for Learning Hierarchical Representations" (2017).
    """
    with tf.name_scope(name, "poincare_normalize", [x]) as name:
        x = tf.convert_to_tensor(x, name="x")
        square_sum = tf.reduce_sum(tf.square(x), axis, keepdims=True)
        inverse = tf.rsqrt(square_sum) * (1.0 - epsilon)
        return tf.multiply(x, tf.minimum(inverse, 1.0), name=name)


def scale_gradient(inputs: Any, gradient_multiplier: Any, name: str | None = None) -> Any:
    """The inputs; the gradient that comes back is multiplied by `gradient_multiplier`."""

    @tf.custom_gradient
    def scaled(x: Any) -> Any:
        return tf.identity(x, name=name), lambda slope: slope * tf.cast(gradient_multiplier, slope.dtype)

    return scaled(tf.convert_to_tensor(inputs))
