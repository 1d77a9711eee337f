"""The categorical distribution of one-hot vectors."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.distributions import Distribution, RegisterKL
from flowstone.distributions.parameters import logits_and_probs

__all__ = ["OneHotCategorical"]


def last_size(logits: Any) -> Any:
    """The number of classes, an int32 scalar, for which TensorFlow asks with the rank of the batch."""
    rank = logits.shape.ndims
    if rank is not None:
        tf.constant(rank - 1, name="batch_rank")
    else:
        with tf.name_scope("batch_rank"):
            _ = tf.rank(logits) - 1
    with tf.name_scope("event_size"):
        return tf.shape(logits)[-1]


class OneHotCategorical(Distribution):
    """Vectors [k] of zeros but for a one in the place of the class that was drawn.

    Args:
        logits: unnormalised log probabilities [..., k], floating.
        probs: probabilities, in their place.
        dtype: of draws.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = tf.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "OneHotCategorical",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._logits, self._probs = logits_and_probs(logits, probs, True, validate_args)
            self._event_size = last_size(self._logits)
        super().__init__(
            dtype=tf.as_dtype(dtype),
            reparameterization_type=tf.distributions.NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._logits, self._probs],
            name=scope,
        )

    @property
    def logits(self) -> Any:
        """The unnormalised log probabilities [*batch_shape, k]."""
        return self._logits

    @property
    def probs(self) -> Any:
        """The probabilities [*batch_shape, k]."""
        return self._probs

    @property
    def event_size(self) -> Any:
        """The number of classes, an int32 scalar."""
        return self._event_size

    def _batch_shape(self) -> Any:
        return self.logits.shape[:-1]

    def _batch_shape_tensor(self) -> Any:
        return tf.shape(self.logits)[:-1]

    def _event_shape(self) -> Any:
        return self.logits.shape.with_rank_at_least(1)[-1:]

    def _event_shape_tensor(self) -> Any:
        return tf.shape(self.logits)[-1:]

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        sizes = tf.concat([[n], tf.shape(self.logits)], axis=0)
        is_flat = self.logits.shape.ndims == 2
        flat = self.logits if is_flat else tf.reshape(self.logits, [-1, self.event_size])
        classes = tf.transpose(tf.multinomial(flat, n, seed=seed))
        return tf.reshape(tf.one_hot(classes, self.event_size, dtype=self.dtype), sizes)

    def _log_prob(self, value: Any) -> Any:
        value = self._one_hot(tf.cast(value, self.logits.dtype))
        log_probs = tf.nn.log_softmax(self.logits)
        # What is impossible and was not drawn counts as nothing.
        terms = tf.where(
            tf.broadcast_to(tf.equal(value, 0.0), tf.shape(value + log_probs)),
            tf.zeros_like(value + log_probs),
            value * log_probs,
        )
        return tf.reduce_sum(terms, axis=-1)

    def _one_hot(self, value: Any) -> Any:
        if not self.validate_args:
            return value
        one = tf.ones([], value.dtype)
        checks = [
            tf.assert_non_positive(value - one, message="last dimension of counts must be at most 1"),
            tf.assert_near(
                one, tf.reduce_sum(value, axis=-1), message="last dimension of counts does not sum to 1"
            ),
        ]
        with tf.control_dependencies(checks):
            return tf.identity(value)

    def _entropy(self) -> Any:
        log_probs = tf.nn.log_softmax(self.logits)
        return -tf.reduce_sum(log_probs * self.probs, axis=-1)

    def _mode(self) -> Any:
        size = self.logits.shape[-1].value
        return tf.one_hot(
            tf.argmax(self.logits, axis=-1), self.event_size if size is None else size, dtype=self.dtype
        )

    def _covariance(self) -> Any:
        probs = self.probs
        products = -tf.matmul(probs[..., None], probs[..., None, :])
        return tf.matrix_set_diag(products, self._variance())

    def _variance(self) -> Any:
        return self.probs * (1.0 - self.probs)


@RegisterKL(OneHotCategorical, OneHotCategorical)
def _kl_onehot(a: OneHotCategorical, b: OneHotCategorical, name: str | None = None) -> Any:
    """The sum of p_a (log p_a - log p_b)."""
    with tf.name_scope(name or "kl_categorical_categorical"):
        difference = tf.nn.log_softmax(a.logits) - tf.nn.log_softmax(b.logits)
        return tf.reduce_sum(tf.nn.softmax(a.logits) * difference, axis=-1)
