"""A Poisson distribution whose rate is log-normal."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.distributions.distribution_util import gen_new_seed, rotate_transpose
from flowstone.contrib.distributions.poisson import Poisson
from flowstone.distributions import Distribution

__all__ = [
    "PoissonLogNormalQuadratureCompound",
    "quadrature_scheme_lognormal_gauss_hermite",
    "quadrature_scheme_lognormal_quantiles",
]


def quadrature_scheme_lognormal_gauss_hermite(
    loc: Any, scale: Any, quadrature_size: int, validate_args: bool = False, name: str | None = None
) -> Any:
    """Points and weights by Gauss and Hermite for expectations of a log-normal rate: points of its logarithm.

    Args:
        loc: the mean of the logarithm, floating [...].
        scale: its standard deviation.
        quadrature_size: how many points.
        validate_args: nothing is checked.
        name: the scope of its operations.

    Returns the points [..., quadrature_size] and the weights [quadrature_size].
    """
    with tf.name_scope(name or "poisson_lognormal_quadrature_gauss_hermite"):
        points, weights = np.polynomial.hermite.hermgauss(deg=quadrature_size)
        loc = tf.convert_to_tensor(loc, name="loc")
        dtype = loc.dtype.as_numpy_dtype
        scale = tf.convert_to_tensor(scale, dtype=loc.dtype, name="scale")
        points = points.astype(dtype) * np.asarray(np.sqrt(2.0), dtype)
        weights = (weights / np.sum(np.abs(weights))).astype(dtype)
        grid = loc[..., None] + scale[..., None] * points
        return grid, tf.convert_to_tensor(weights, name="probs")


def quadrature_scheme_lognormal_quantiles(
    loc: Any, scale: Any, quadrature_size: int, validate_args: bool = False, name: str | None = None
) -> Any:
    """Points between quantiles of a log-normal distribution, with equal weights.

    Args:
        loc: the mean of the logarithm, floating [...].
        scale: its standard deviation.
        quadrature_size: how many points.
        validate_args: whether steps check the scale.
        name: the scope of its operations.

    Returns the points [..., quadrature_size] and the weights [quadrature_size].
    """
    with tf.name_scope(name or "quadrature_scheme_lognormal_quantiles"):
        base = tf.distributions.Normal(loc, scale, validate_args=validate_args)
        edges = np.linspace(0.0, 1.0, num=quadrature_size + 3)[1:-1].astype(base.dtype.as_numpy_dtype)
        edges = edges.reshape([-1] + [1] * (base.batch_shape.ndims or 0))
        quantiles = tf.exp(base.quantile(edges))
        quantiles = rotate_transpose(quantiles, -1)
        grid = (quantiles[..., :-1] + quantiles[..., 1:]) / 2.0
        grid.set_shape(base.batch_shape.concatenate([quadrature_size]))
        probs = tf.fill([quadrature_size], tf.constant(1.0 / quadrature_size, dtype=base.dtype))
        return grid, probs


class PoissonLogNormalQuadratureCompound(Distribution):
    """A mixture of Poisson distributions that stands for one with a log-normal rate.

    Args:
        loc: the mean of the logarithm of the rate, floating.
        scale: its standard deviation.
        quadrature_size: how many Poisson distributions.
        quadrature_fn: gives the logarithms of their rates, and their weights, of the first three arguments.
        validate_args, allow_nan_stats, name: see `Distribution`.
        quadrature_polynomial_degree: TensorFlow 1.4's word for `quadrature_size`.

    TypeError if the types of `loc` and `scale` differ.
    """

    def __init__(
        self,
        loc: Any,
        scale: Any,
        quadrature_size: int = 8,
        quadrature_fn: Any = quadrature_scheme_lognormal_quantiles,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "PoissonLogNormalQuadratureCompound",
        quadrature_polynomial_degree: int | None = None,
    ) -> None:
        parameters = dict(locals())
        if parameters.pop("quadrature_polynomial_degree") is not None:
            quadrature_size = parameters["quadrature_size"] = quadrature_polynomial_degree or 0
            quadrature_fn = parameters["quadrature_fn"] = quadrature_scheme_lognormal_gauss_hermite
        with tf.name_scope(name) as scope:
            self._loc = None if loc is None else tf.convert_to_tensor(loc, name="loc")
            dtype = None if self._loc is None else self._loc.dtype
            self._scale = None if scale is None else tf.convert_to_tensor(scale, dtype=dtype, name="scale")
            self._grid, probs = quadrature_fn(loc, scale, quadrature_size, validate_args)
            if self._grid.dtype.base_dtype != probs.dtype.base_dtype:
                raise TypeError("Quadrature grid and probs must have the same dtype.")
            self._distribution = Poisson(log_rate=self._grid, validate_args=validate_args)
            self._mixture_distribution = tf.distributions.Categorical(logits=tf.log(probs))
            self._quadrature_size = quadrature_size
        super().__init__(
            dtype=self._grid.dtype,
            reparameterization_type=tf.distributions.NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._grid, probs],
            name=scope,
        )

    @property
    def mixture_distribution(self) -> Any:
        """The distribution that chooses a rate."""
        return self._mixture_distribution

    @property
    def distribution(self) -> Any:
        """The Poisson distributions, in the last dimension of the batch."""
        return self._distribution

    @property
    def loc(self) -> Any:
        """The mean of the logarithm of the rate."""
        return self._loc

    @property
    def scale(self) -> Any:
        """The standard deviation of the logarithm of the rate."""
        return self._scale

    @property
    def quadrature_size(self) -> int:
        """How many Poisson distributions there are."""
        return self._quadrature_size

    @property
    def quadrature_polynomial_degree(self) -> int:
        """How many Poisson distributions there are."""
        return self._quadrature_size

    def _batch_shape(self) -> Any:
        return self._grid.shape[:-1]

    def _batch_shape_tensor(self) -> Any:
        return tf.shape(self._grid)[:-1]

    def _event_shape(self) -> Any:
        return tf.TensorShape([])

    def _event_shape_tensor(self) -> Any:
        return tf.constant([], dtype=tf.int32)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        sizes = tf.concat([[n], self.batch_shape_tensor()], axis=0)
        own_seed = gen_new_seed(seed, "poisson_lognormal_quadrature_compound")
        chosen = self.mixture_distribution.sample(sizes, seed=own_seed)
        mask = tf.one_hot(chosen, self.quadrature_size, dtype=self.dtype)
        rate = tf.reduce_sum(self.distribution.rate * mask, axis=-1)
        return tf.random_poisson(rate, [], dtype=self.dtype, seed=seed)

    def _log_prob(self, value: Any) -> Any:
        own = self.distribution.log_prob(value[..., None])
        return tf.reduce_logsumexp(tf.nn.log_softmax(self.mixture_distribution.logits) + own, axis=-1)

    def _mean(self) -> Any:
        return tf.reduce_sum(self.mixture_distribution.probs * self.distribution.rate, axis=-1)

    def _variance(self) -> Any:
        probs = self.mixture_distribution.probs
        rate = self.distribution.rate
        spread = tf.squared_difference(rate, self._mean()[..., None])
        return tf.reduce_sum(probs * (spread + rate), axis=-1)
