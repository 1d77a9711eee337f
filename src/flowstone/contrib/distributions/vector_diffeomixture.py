"""Mixtures of infinitely many affine images of a vector, between two end points."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.distributions.bijectors.affine_linear_operator import AffineLinearOperator
from flowstone.contrib.distributions.bijectors.softmax_centered import SoftmaxCentered
from flowstone.contrib.distributions.distribution_util import (
    gen_new_seed,
    is_diagonal_scale,
    rotate_transpose,
    shapes_from_loc_and_scale,
)
from flowstone.distributions import Distribution

__all__ = [
    "VectorDiffeomixture",
    "quadrature_scheme_softmaxnormal_gauss_hermite",
    "quadrature_scheme_softmaxnormal_quantiles",
]


def quadrature_scheme_softmaxnormal_gauss_hermite(
    normal_loc: Any,
    normal_scale: Any,
    quadrature_size: int,
    validate_args: bool = False,
    name: str | None = None,
) -> Any:
    """Points and weights by Gauss and Hermite for expectations of softmax([x, 0]) of normal numbers x.

    Args:
        normal_loc: the mean [..., k - 1], floating, with k = 2.
        normal_scale: the standard deviation.
        quadrature_size: how many points.
        validate_args: nothing is checked.
        name: the scope of its operations.

    Returns the points [..., k, quadrature_size] and the weights [quadrature_size].
    """
    with tf.name_scope(name or "quadrature_scheme_softmaxnormal_gauss_hermite"):
        loc = tf.convert_to_tensor(normal_loc, name="normal_loc")
        scale = tf.convert_to_tensor(normal_scale, dtype=loc.dtype, name="normal_scale")
        points, weights = np.polynomial.hermite.hermgauss(deg=quadrature_size)
        dtype = loc.dtype.as_numpy_dtype
        probs = tf.convert_to_tensor((weights / np.sum(np.abs(weights))).astype(dtype), name="probs")
        x = loc[..., None] + (np.sqrt(2.0) * points).astype(dtype) * scale[..., None]
        return tf.nn.softmax(tf.concat([x, tf.zeros_like(x[..., :1, :])], axis=-2), axis=-2), probs


def quadrature_scheme_softmaxnormal_quantiles(
    normal_loc: Any,
    normal_scale: Any,
    quadrature_size: int,
    validate_args: bool = False,
    name: str | None = None,
) -> Any:
    """Points between quantiles of softmax([x, 0]) of normal numbers x, with equal weights.

    Args:
        normal_loc: the mean [..., k - 1], floating.
        normal_scale: the standard deviation.
        quadrature_size: how many points.
        validate_args: whether steps check the scale.
        name: the scope of its operations.

    Returns the points [..., k, quadrature_size] and the weights [quadrature_size].
    """
    with tf.name_scope(name or "softmax_normal_grid_and_probs"):
        loc = tf.convert_to_tensor(normal_loc, name="normal_loc")
        normal = tf.distributions.Normal(loc, tf.convert_to_tensor(normal_scale, loc.dtype), validate_args)
        edges = np.linspace(0.0, 1.0, num=quadrature_size + 3)[1:-1].astype(normal.dtype.as_numpy_dtype)
        edges = edges.reshape([-1] + [1] * (normal.batch_shape.ndims or 0))
        quantiles = rotate_transpose(SoftmaxCentered().forward(normal.quantile(edges)), -1)
        grid = (quantiles[..., :-1] + quantiles[..., 1:]) / 2.0
        probs = tf.fill([quadrature_size], tf.constant(1.0 / quadrature_size, dtype=normal.dtype))
        return grid, probs


class VectorDiffeomixture(Distribution):
    """Vectors Σ w_k (scale_k x + loc_k) for x [d] of independent numbers and shares w = softmax([z, 0]).

    z is normal with the mean mix_loc / temperature and the deviation 1 / temperature. The expectation over
    it is a sum over points of a quadrature (Kuusela et al., "Diffeomixture", as a mixture of finitely many).

    Args:
        mix_loc: [..., 1], floating.
        temperature: [..., 1], positive.
        distribution: of the elements of x, without a batch.
        loc: a list of two vectors [..., d], or None for zeros; by default both.
        scale: a list of two LinearOperators, positive definite.
        quadrature_size: how many points.
        quadrature_fn: gives the points [..., 2, quadrature_size] and their weights.
        validate_args, allow_nan_stats, name: see `Distribution`.

    ValueError for unlike lists, or mix_loc that is no vector; NotImplementedError for other than two.
    """

    def __init__(
        self,
        mix_loc: Any,
        temperature: Any,
        distribution: Any,
        loc: Any = None,
        scale: Any = None,
        quadrature_size: int = 8,
        quadrature_fn: Any = quadrature_scheme_softmaxnormal_quantiles,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "VectorDiffeomixture",
    ) -> None:
        parameters = dict(locals())
        if not scale or len(scale) < 2:
            raise ValueError(
                "Must specify list (or list-like object) of scale LinearOperators, one for each."
            )
        loc = [None] * len(scale) if loc is None else loc
        if len(loc) != len(scale):
            raise ValueError(f"loc/scale must be same-length lists; got lengths {len(loc)} and {len(scale)}.")
        if len(scale) != 2:
            raise NotImplementedError(
                f"Currently only bimixtures are supported; len(scale)={len(scale)} is not 2."
            )
        with tf.name_scope(name) as scope:
            dtype = scale[0].dtype.base_dtype
            loc = [None if each is None else tf.convert_to_tensor(each, dtype=dtype) for each in loc]
            self._endpoint_affine = [
                AffineLinearOperator(shift=shift, scale=each, validate_args=validate_args)
                for shift, each in zip(loc, scale)
            ]
            mix_loc = tf.convert_to_tensor(mix_loc, dtype=dtype, name="mix_loc")
            temperature = tf.convert_to_tensor(temperature, dtype=dtype, name="temperature")
            self._grid, probs = quadrature_fn(
                mix_loc / temperature, 1.0 / temperature, quadrature_size, validate_args
            )
            self._mixture_distribution = tf.distributions.Categorical(logits=tf.log(probs))
            self._interpolated_affine = self._interpolated(loc, scale, quadrature_size)
            self._set_shapes(loc, scale)
        self._distribution, self._quadrature_size = distribution, quadrature_size
        super().__init__(
            dtype=dtype,
            reparameterization_type=distribution.reparameterization_type,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            name=scope,
        )

    def _interpolated(self, loc: Any, scale: Any, count: int) -> list[Any]:
        """The affine function of each point of the quadrature."""
        functions = []
        for index in range(count):
            weights = [self._grid[..., each, index] for each in range(2)]
            given = [(w, shift) for w, shift in zip(weights, loc) if shift is not None]
            shift = tf.add_n([w[..., None] * each for w, each in given]) if given else None
            if all(is_diagonal_scale(each) for each in scale):
                diagonal = sum(w[..., None] * each.diag_part() for w, each in zip(weights, scale))
                operator = tf.linalg.LinearOperatorDiag(
                    diagonal, is_non_singular=True, is_positive_definite=True
                )
            else:
                dense = sum(w[..., None, None] * each.to_dense() for w, each in zip(weights, scale))
                operator = tf.linalg.LinearOperatorFullMatrix(dense, is_non_singular=True)
            functions.append(
                AffineLinearOperator(shift=shift, scale=operator, validate_args=self._is_validated())
            )
        return functions

    def _is_validated(self) -> bool:
        return self._endpoint_affine[0].validate_args

    def _set_shapes(self, loc: Any, scale: Any) -> None:
        shapes = [shapes_from_loc_and_scale(*each) for each in zip(loc, scale)]
        batches = [shape for shape, _ in shapes] + [self._grid.shape[:-2]]
        self._static_batch = functools.reduce(
            tf.broadcast_static_shape, [each for each in batches if isinstance(each, tf.TensorShape)]
        )
        dynamic = [each.as_list() if isinstance(each, tf.TensorShape) else each for each in batches[:-1]]
        vectors = [
            tf.convert_to_tensor(np.array(each, np.int32) if isinstance(each, list) else each)
            for each in dynamic
        ]
        self._batch = functools.reduce(tf.broadcast_dynamic_shape, [*vectors, tf.shape(self._grid)[:-2]])
        self._event = shapes[0][1]

    @property
    def mixture_distribution(self) -> Any:
        """The distribution that chooses a point of the quadrature."""
        return self._mixture_distribution

    @property
    def distribution(self) -> Any:
        """The distribution of the elements of x."""
        return self._distribution

    @property
    def grid(self) -> Any:
        """The shares [..., 2, quadrature_size]."""
        return self._grid

    @property
    def interpolate_weight(self) -> Any:
        """The shares [..., 2, quadrature_size]."""
        return self._grid

    @property
    def endpoint_affine(self) -> Any:
        """The two affine functions."""
        return self._endpoint_affine

    @property
    def interpolated_affine(self) -> Any:
        """The affine function of each point of the quadrature."""
        return self._interpolated_affine

    @property
    def quadrature_polynomial_degree(self) -> int:
        """How many points the quadrature has."""
        return self._quadrature_size

    def _batch_shape(self) -> Any:
        return self._static_batch

    def _batch_shape_tensor(self) -> Any:
        return self._batch

    def _event_shape(self) -> Any:
        return self._event if isinstance(self._event, tf.TensorShape) else tf.TensorShape([None])

    def _event_shape_tensor(self) -> Any:
        if isinstance(self._event, tf.TensorShape):
            return tf.constant(self._event.as_list(), dtype=tf.int32)
        return self._event

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        batch = tf.concat([[n], self.batch_shape_tensor()], axis=0)
        x = self.distribution.sample(tf.concat([batch, self.event_shape_tensor()], axis=0), seed=seed)
        chosen = self.mixture_distribution.sample(batch, seed=gen_new_seed(seed, "VectorDiffeomixture"))
        mask = tf.one_hot(chosen, self._quadrature_size, dtype=self.dtype)
        shares = [tf.reduce_sum(mask * self._grid[..., each, :], axis=-1)[..., None] for each in range(2)]
        return tf.add_n([share * f.forward(x) for share, f in zip(shares, self.endpoint_affine)])

    def _log_prob(self, value: Any) -> Any:
        terms = []
        for function in self.interpolated_affine:
            x = function.inverse(value)
            own = tf.reduce_sum(self.distribution.log_prob(x), axis=-1)
            terms.append(own - function.forward_log_det_jacobian(x, event_ndims=1))
        shares = tf.nn.log_softmax(self.mixture_distribution.logits)
        return tf.reduce_logsumexp(tf.stack(terms, axis=-1) + shares, axis=-1)

    def _base(self, statistic: Any) -> Any:
        """The statistic of an element of x as one of vectors [d]."""
        return tf.broadcast_to(statistic, self.event_shape_tensor())

    def _means(self) -> Any:
        """The mean at each point [..., quadrature_size, d], and the overall one [..., d]."""
        base = self._base(self.distribution.mean())
        sizes = tf.concat([self.batch_shape_tensor(), self.event_shape_tensor()], axis=0)
        means = tf.stack([tf.broadcast_to(f.forward(base), sizes) for f in self.interpolated_affine], axis=-2)
        return means, tf.reduce_sum(self.mixture_distribution.probs[..., None] * means, axis=-2)

    def _mean(self) -> Any:
        return self._means()[1]

    def _covariance(self) -> Any:
        base = tf.sqrt(self._base(self.distribution.variance()))
        probs = self.mixture_distribution.probs[..., None, None]
        within = []
        for function in self.interpolated_affine:
            factor = function.scale.to_dense() * base[..., None, :]
            within.append(tf.matmul(factor, factor, adjoint_b=True))
        means, mean = self._means()
        distances = means - mean[..., None, :]
        between = distances[..., None] * distances[..., None, :]
        return tf.reduce_sum(probs * tf.stack(within, axis=-3), axis=-3) + tf.reduce_sum(
            probs * between, axis=-3
        )

    def _variance(self) -> Any:
        return tf.matrix_diag_part(self._covariance())
