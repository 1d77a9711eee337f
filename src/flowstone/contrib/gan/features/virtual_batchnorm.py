"""Virtual batch normalisation: examples normalised by a fixed batch (Salimans et al. 2016)."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["VBN"]

_ZEROS, _ONES = tf.zeros_initializer(), tf.ones_initializer()


class VBN:
    """Normalises tensors by a reference batch and, for each example, the example itself.

    Args:
        reference_batch: tensor whose shape is known along `axis` and `batch_axis`.
        axis: the axis of features, of which each is normalised by itself.
        epsilon: is added to variances.
        center: whether there is a variable beta, which is added.
        scale: whether there is a variable gamma, which multiplies.
        beta_initializer: of beta.
        gamma_initializer: of gamma.
        beta_regularizer: of beta.
        gamma_regularizer: of gamma.
        trainable: whether beta and gamma are trained.
        name: a variable scope; by default VBN.
        batch_axis: the axis of examples.

    Raises ValueError if the axes are equal or out of range, or the number of features is not known.
    """

    def __init__(
        self,
        reference_batch: Any,
        axis: int = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = _ZEROS,
        gamma_initializer: Any = _ONES,
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        trainable: bool = True,
        name: str | None = None,
        batch_axis: int = 0,
    ) -> None:
        rank = reference_batch.shape.ndims
        self._axis = _checked_axis(axis, rank)
        self._batch_axis = _checked_axis(batch_axis, rank)
        if self._axis == self._batch_axis:
            raise ValueError("`axis` and `batch_axis` cannot be the same.")
        self._reference_batch = reference_batch
        self._epsilon = epsilon
        self._others = [each for each in range(rank) if each not in (self._axis, self._batch_axis)]
        features = reference_batch.shape[self._axis]
        with tf.variable_scope(name, "VBN", values=[reference_batch]) as scope:
            self._scope = scope
            together = sorted([*self._others, self._batch_axis])
            self._mean, variance = tf.nn.moments(reference_batch, together, keep_dims=True)
            self._mean_square = variance + tf.square(self._mean)
            self._variance = variance
            size = tf.to_float(tf.shape(reference_batch)[self._batch_axis])
            self._weight = 1.0 / (size + 1.0)
            self._beta = self._gamma = None
            if center:
                self._beta = self._variable("beta", features, beta_initializer, beta_regularizer, trainable)
            if scale:
                self._gamma = self._variable(
                    "gamma", features, gamma_initializer, gamma_regularizer, trainable
                )

    def _variable(self, name: str, size: Any, initializer: Any, regularizer: Any, trainable: bool) -> Any:
        return tf.get_variable(
            name, [size], initializer=initializer, regularizer=regularizer, trainable=trainable
        )

    def _normalised(self, inputs: Any, mean: Any, variance: Any) -> Any:
        shape = [1] * inputs.shape.ndims
        shape[self._axis] = self._reference_batch.shape.as_list()[self._axis]
        beta = None if self._beta is None else tf.reshape(self._beta, shape)
        gamma = None if self._gamma is None else tf.reshape(self._gamma, shape)
        return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, self._epsilon)

    def reference_batch_normalization(self) -> Any:
        """The reference batch, normalised by its own statistics."""
        with tf.variable_scope(self._scope):
            return self._normalised(self._reference_batch, self._mean, self._variance)

    def __call__(self, inputs: Any) -> Any:
        """Tensors with the reference's features, each example normalised together with the reference batch.

        Raises ValueError for another number of features.
        """
        inputs = tf.convert_to_tensor(inputs)
        inputs.shape[self._axis].assert_is_compatible_with(self._reference_batch.shape[self._axis])
        with tf.variable_scope(self._scope, values=[inputs]):
            own_mean = tf.reduce_mean(inputs, self._others, keepdims=True)
            own_square = tf.reduce_mean(tf.square(inputs), self._others, keepdims=True)
            mean = self._weight * own_mean + (1.0 - self._weight) * self._mean
            square = self._weight * own_square + (1.0 - self._weight) * self._mean_square
            return self._normalised(inputs, mean, square - tf.square(mean))


def _checked_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"Value of `axis` argument {axis} is out of range for input with rank {rank}")
    return axis % rank
