"""Batch normalization as the inverse of a bijector."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector

__all__ = ["BatchNormalization"]


class BatchNormalization(Bijector):
    """x = (y - mean) / √(variance + ε) γ + β, where y is the sample and x what is normalised of it.

    The inverse is the layer, with the statistics of the batch while training. `forward` uses the moving ones.

    Args:
        batchnorm_layer: a `tf.layers.BatchNormalization`; by default one whose γ is kept positive.
        training: whether the inverse uses the statistics of the batch, and updates the moving ones.
        validate_args: see `Bijector`.
        name: the scope of its operations.

    ValueError for a layer that is no BatchNormalization, or that renormalises or has virtual batches.
    """

    def __init__(
        self,
        batchnorm_layer: Any = None,
        training: bool = True,
        validate_args: bool = False,
        name: str = "batch_normalization",
    ) -> None:
        if batchnorm_layer is None:
            batchnorm_layer = tf.layers.BatchNormalization(
                gamma_constraint=lambda x: tf.nn.relu(x) + 1e-6, trainable=True
            )
        elif not isinstance(batchnorm_layer, tf.layers.BatchNormalization):
            raise ValueError("batchnorm_layer must be an instance of BatchNormalization layer.")
        if getattr(batchnorm_layer, "renorm", False):
            raise ValueError("BatchNorm Bijector does not support renormalization.")
        if getattr(batchnorm_layer, "virtual_batch_size", None):
            raise ValueError("BatchNorm Bijector does not support virtual batch sizes.")
        self.batchnorm, self._training = batchnorm_layer, training
        axis = batchnorm_layer.axis
        super().__init__(
            forward_min_event_ndims=len(axis) if isinstance(axis, (list, tuple)) else 1,
            validate_args=validate_args,
            name=name,
        )

    def _axes(self, value: Any) -> tuple[list[int], list[int]]:
        """The axes that have statistics of their own, and those that they are computed over."""
        rank, axis = value.shape.ndims, self.batchnorm.axis
        kept = [each % rank for each in (axis if isinstance(axis, (list, tuple)) else [axis])]
        return kept, [each for each in range(rank) if each not in kept]

    def _broadcast(self, parameter: Any, value: Any) -> Any:
        kept, _ = self._axes(value)
        sizes = [value.shape[each].value if each in kept else 1 for each in range(value.shape.ndims)]
        return None if parameter is None else tf.reshape(parameter, sizes)

    def _forward(self, x: Any) -> Any:
        self._build(x)
        layer = self.batchnorm
        mean = self._broadcast(layer.moving_mean, x)
        variance = self._broadcast(layer.moving_variance, x)
        if layer.center:
            x = x - self._broadcast(layer.beta, x)
        if layer.scale:
            x = x / self._broadcast(layer.gamma, x)
        return x * tf.sqrt(variance + layer.epsilon) + mean

    def _inverse(self, y: Any) -> Any:
        self._build(y)
        return self.batchnorm.apply(y, training=self._training)

    def _build(self, value: Any) -> None:
        if not self.batchnorm.built:
            self.batchnorm.build(value.shape)
            self.batchnorm.built = True

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return -self._inverse_log_det_jacobian(x, use_saved_statistics=True)

    def _inverse_log_det_jacobian(self, y: Any, use_saved_statistics: bool = False) -> Any:
        self._build(y)
        layer = self.batchnorm
        if use_saved_statistics or not self._training:
            variance = layer.moving_variance
        else:
            variance = tf.nn.moments(y, axes=self._axes(y)[1])[1]
        terms = -0.5 * tf.log(variance + layer.epsilon)
        if layer.gamma is not None:
            terms = terms + tf.log(layer.gamma)
        return tf.reduce_sum(terms) * tf.ones([], y.dtype)
