"""The distribution of what a bijector makes of draws from another distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.distributions.bijectors.identity import Identity
from flowstone.contrib.distributions.distribution_util import rotate_transpose
from flowstone.distributions import Distribution
from flowstone.distributions.sample_shapes import as_vector, integer_vector
from flowstone.framework.tensors.node import static_value

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """Y = g(X) for X of a distribution and a bijector g: log p(y) = log p(g⁻¹(y)) + log |det dg⁻¹/dy|.

    Args:
        distribution: of X.
        bijector: g; the identity by default.
        batch_shape: another batch: that many independent X, of a distribution without a batch.
        event_shape: another event: that many independent X, of a distribution of numbers.
        validate_args: whether steps check values.
        name: the scope of its operations; by default the bijector's name and the whole scope of the
            distribution, so outside of any scope around: `exp` of `s/Normal/` is `exps/Normal/`.

    ValueError if a shape is overridden that the distribution has. The entropy is known only if the
    determinant is the same everywhere; quantiles and cdf for growing g of numbers.
    """

    def __init__(
        self,
        distribution: Any,
        bijector: Any = None,
        batch_shape: Any = None,
        event_shape: Any = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        parameters = dict(locals())
        name = name or ("" if bijector is None else bijector.name) + distribution.name
        if bijector is None:
            bijector = Identity(validate_args=validate_args)
        with tf.name_scope(name) as scope:
            self._zero = tf.constant(0, name="zero")
            self._empty = integer_vector([], "empty")
            is_scalar = distribution.is_scalar_batch()
            self._override_batch = self._override(batch_shape, is_scalar, distribution.batch_shape, "batch")
            has_batch = self._has_sizes(self._override_batch)
            is_scalar = distribution.is_scalar_event()
            self._override_event = self._override(event_shape, is_scalar, distribution.event_shape, "event")
            has_event = self._has_sizes(self._override_event)
            no_batch = _not(has_batch)
            rotates = static_value(_and(has_event, no_batch, _not(distribution.is_scalar_batch())))
            self._rotates = rotates is None or bool(rotates)
            count = _count(self._sizes(self._override_event))
            end: Any = count if self._rotates else 0
            self._event_axes = tf.range(end - count, end)
        self._distribution, self._bijector = distribution, bijector
        super().__init__(
            dtype=distribution.dtype,
            reparameterization_type=distribution.reparameterization_type,
            validate_args=validate_args,
            allow_nan_stats=distribution.allow_nan_stats,
            parameters=parameters,
            name=scope,
        )

    def _override(self, shape: Any, is_scalar: Any, own: Any, what: str) -> Any:
        """The shape as an int32 vector; None if nothing is overridden."""
        if isinstance(shape, tf.TensorShape):
            shape = shape.as_list()
        if shape is None or (isinstance(shape, (list, tuple)) and not shape):
            shape = np.array([], np.int32)
        shape = tf.convert_to_tensor(shape, dtype=tf.int32, name=f"{what}_shape")
        if shape.shape.ndims not in (None, 1):
            raise ValueError(f"{what}_shape must be a vector, not of {shape.shape.ndims} dimensions.")
        is_empty = _equal(_count(shape), tf.constant(0))
        if static_value(is_empty):
            return None
        if static_value(_and(_not(is_scalar), _not(is_empty))):
            raise ValueError(f"{what}_shape overrides that of a distribution whose own is {own}.")
        return shape

    def _sizes(self, override: Any) -> Any:
        return self._empty if override is None else override

    def _has_sizes(self, override: Any) -> Any:
        return _not(_equal(_count(self._sizes(override)), self._zero))

    @property
    def distribution(self) -> Any:
        """The distribution of X."""
        return self._distribution

    @property
    def bijector(self) -> Any:
        """The function g."""
        return self._bijector

    # ---- shapes

    @staticmethod
    def _static(shape: Any) -> Any:
        known = static_value(shape)
        if known is not None:
            return tf.TensorShape([None if k is None else int(k) for k in known])
        rank = None if shape.shape.ndims is None else shape.shape[0].value
        return tf.TensorShape(None if rank is None else [None] * rank)

    def _event_shape_tensor(self) -> Any:
        own = self.distribution.event_shape_tensor() if self._override_event is None else self._override_event
        return self.bijector.forward_event_shape_tensor(own)

    def _event_shape(self) -> Any:
        override = self._override_event
        own = self.distribution.event_shape if override is None else self._static(override)
        return self.bijector.forward_event_shape(own)

    def _batch_shape_tensor(self) -> Any:
        own = self.distribution.batch_shape_tensor()
        return own if self._override_batch is None else self._override_batch

    def _batch_shape(self) -> Any:
        if self._override_batch is not None:
            return self._static(self._override_batch)
        return self.distribution.batch_shape

    def _x_event_rank(self) -> Any:
        """How many dimensions of an x the overridden event has."""
        return 0 if self._override_event is None else tf.size(self._override_event)

    def _event_ndims(self) -> Any:
        rank = self.event_shape.ndims
        return tf.size(self.event_shape_tensor()) if rank is None else rank

    # ---- samples

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str = "sample") -> Any:
        """Independent draws [*sample_shape, *batch_shape, *event_shape].

        They are the bijector's own results: probabilities of them need no inverse.
        """
        return self._transformed_sample(sample_shape, seed, name, {}, {})

    def _transformed_sample(
        self, sample_shape: Any, seed: Any, name: str, bijector_kwargs: Any, distribution_kwargs: Any
    ) -> Any:
        with self._scope(name):
            given = integer_vector(sample_shape, "sample_shape") if sample_shape == () else sample_shape
            vector, count = as_vector(tf.convert_to_tensor(given, dtype=tf.int32, name="sample_shape"))
            known = static_value(vector)
            x = self._base_draws(count, seed, distribution_kwargs)
            x = tf.reshape(x, tf.concat([vector, tf.shape(x)[1:]], axis=0))
            if isinstance(known, np.ndarray):
                event = self.distribution.event_shape
                if self._override_event is not None:
                    event = self._static(self._override_event)
                first = tf.TensorShape([int(size) for size in known])
                x.set_shape(first.concatenate(self.batch_shape).concatenate(event))
            return self.bijector.forward(x, **bijector_kwargs)

    def _base_draws(self, n: Any, seed: Any, distribution_kwargs: Any) -> Any:
        """n draws x, [n, *batch_shape, *event shape of x]."""
        count = tf.convert_to_tensor([n])
        first, last = (self._empty, count) if self._rotates else (count, self._empty)
        parts = [first, self._sizes(self._override_batch), self._sizes(self._override_event), last]
        known = [static_value(part) for part in parts]
        if all(isinstance(part, np.ndarray) for part in known):
            sizes = integer_vector(np.concatenate(known), "Const")
        else:
            sizes = tf.concat([[n] if part is count else part for part in parts], axis=0)
        x = self.distribution.sample(sizes, seed=seed, **distribution_kwargs)
        return rotate_transpose(x, -self._x_event_rank()) if self._rotates else x

    # ---- probabilities

    def _is_injective(self) -> bool:
        return bool(getattr(self.bijector, "_is_injective", True))

    def _log_prob(self, value: Any, bijector_kwargs: Any = None, distribution_kwargs: Any = None) -> Any:
        return self._density(value, bijector_kwargs or {}, distribution_kwargs or {}, is_log=True)

    def _prob(self, value: Any, bijector_kwargs: Any = None, distribution_kwargs: Any = None) -> Any:
        return self._density(value, bijector_kwargs or {}, distribution_kwargs or {}, is_log=False)

    def _density(self, y: Any, bijector_kwargs: Any, distribution_kwargs: Any, is_log: bool) -> Any:
        x = self.bijector.inverse(y, **bijector_kwargs)
        jacobian = self._jacobian(y, bijector_kwargs)
        if self._is_injective():
            density = self._density_at(x, jacobian, distribution_kwargs, is_log)
            if self._override_event is not None:
                self._set_density_shape(density, y)
            return density
        each = [self._density_at(a, b, distribution_kwargs, is_log) for a, b in zip(x, jacobian)]
        return tf.reduce_logsumexp(tf.stack(each), axis=0) if is_log else sum(each)

    def _density_at(self, x: Any, jacobian: Any, distribution_kwargs: Any, is_log: bool) -> Any:
        overrides = self._override_event is not None
        if overrides and self._rotates:
            x = rotate_transpose(x, self._x_event_rank())
        if is_log:
            log = self.distribution.log_prob(x, **distribution_kwargs)
            return (tf.reduce_sum(log, axis=self._event_axes) if overrides else log) + jacobian
        density = self.distribution.prob(x, **distribution_kwargs)
        return (tf.reduce_prod(density, axis=self._event_axes) if overrides else density) * tf.exp(jacobian)

    def _set_density_shape(self, density: Any, y: Any) -> None:
        ndims = self.event_shape.ndims
        if ndims is not None and y.shape.ndims is not None:
            outer = y.shape.with_rank_at_least(ndims)[: y.shape.ndims - ndims]
            density.set_shape(tf.broadcast_static_shape(outer, self.batch_shape))

    def _jacobian(self, y: Any, bijector_kwargs: Any) -> Any:
        if not hasattr(self.bijector, "inverse_min_event_ndims"):
            return self.bijector.inverse_log_det_jacobian(y, **bijector_kwargs)
        ndims = self._event_ndims()
        return self.bijector.inverse_log_det_jacobian(y, event_ndims=ndims, **bijector_kwargs)

    def _of_inverse(self, method: str, y: Any, bijector_kwargs: Any, distribution_kwargs: Any) -> Any:
        if self._override_event is not None:
            raise NotImplementedError(f"{method} is not implemented when overriding event_shape")
        if not self._is_injective():
            raise NotImplementedError(f"{method} is not implemented when bijector is not injective.")
        x = self.bijector.inverse(y, **(bijector_kwargs or {}))
        return getattr(self.distribution, method)(x, **(distribution_kwargs or {}))

    def _log_cdf(self, value: Any, bijector_kwargs: Any = None, distribution_kwargs: Any = None) -> Any:
        return self._of_inverse("log_cdf", value, bijector_kwargs, distribution_kwargs)

    def _cdf(self, value: Any, bijector_kwargs: Any = None, distribution_kwargs: Any = None) -> Any:
        return self._of_inverse("cdf", value, bijector_kwargs, distribution_kwargs)

    def _log_survival_function(
        self, value: Any, bijector_kwargs: Any = None, distribution_kwargs: Any = None
    ) -> Any:
        return self._of_inverse("log_survival_function", value, bijector_kwargs, distribution_kwargs)

    def _survival_function(
        self, value: Any, bijector_kwargs: Any = None, distribution_kwargs: Any = None
    ) -> Any:
        return self._of_inverse("survival_function", value, bijector_kwargs, distribution_kwargs)

    def _quantile(self, value: Any) -> Any:
        if self._override_event is not None:
            raise NotImplementedError("quantile is not implemented when overriding event_shape")
        if not self._is_injective():
            raise NotImplementedError("quantile is not implemented when bijector is not injective.")
        return self.bijector.forward(self.distribution.quantile(value))

    # ---- statistics

    def _entropy(self) -> Any:
        if not self.bijector.is_constant_jacobian:
            raise NotImplementedError("entropy is not implemented")
        if not self._is_injective():
            raise NotImplementedError("entropy is not implemented when bijector is not injective.")
        entropy = self.distribution.entropy()
        if self._override_event is not None:
            entropy = entropy * tf.cast(tf.reduce_prod(self._override_event), entropy.dtype)
        if self._override_batch is not None:
            own = self.distribution.batch_shape_tensor()
            entropy = tf.reshape(entropy, tf.concat([_ones(self._override_batch), own], axis=0))
            own = self.distribution.batch_shape_tensor()
            entropy = tf.tile(entropy, tf.concat([self._override_batch, _ones(own)], axis=0))
        shape = tf.concat([self.batch_shape_tensor(), self.event_shape_tensor()], axis=0)
        return entropy - self._jacobian(tf.zeros(shape, dtype=self.dtype), {})


# ---- what is said of shapes, constants where it is known


def _count(vector: Any) -> Any:
    known = vector.shape[0].value if vector.shape.ndims else None
    return tf.shape(vector)[0] if known is None else tf.constant(known)


def _ones(vector: Any) -> Any:
    is_known = vector.shape.is_fully_defined()
    return tf.ones(vector.shape if is_known else tf.shape(vector), vector.dtype)


def _equal(a: Any, b: Any) -> Any:
    known = static_value(a), static_value(b)
    return tf.equal(a, b) if None in known else tf.constant(bool(known[0] == known[1]))


def _not(x: Any) -> Any:
    known = static_value(x)
    return tf.logical_not(x) if known is None else tf.constant(not known)


def _and(*parts: Any) -> Any:
    known = [static_value(part) for part in parts]
    if any(value is not None and not value for value in known):
        return tf.constant(False)
    if None not in known:
        return tf.constant(True)
    return tf.reduce_all(tf.stack([part for part, value in zip(parts, known) if value is None]))
