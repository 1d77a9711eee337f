"""Normal distributions of vectors with a triangular scale."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.distribution_util import make_tril_scale
from flowstone.contrib.distributions.mvn_linear_operator import MultivariateNormalLinearOperator
from flowstone.contrib.distributions.scalar_distribution import own_parameters

__all__ = ["MultivariateNormalTriL"]


class MultivariateNormalTriL(MultivariateNormalLinearOperator):
    """Normal vectors with the lower triangular scale L, whose covariance is L Lᵀ.

    Args:
        loc: [..., k], floating; zeros by default.
        scale_tril: L [..., k, k]; what is above the diagonal is left out; the identity by default.
        validate_args, allow_nan_stats, name: see `Distribution`.

    ValueError if neither is given.
    """

    def __init__(
        self,
        loc: Any = None,
        scale_tril: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalTriL",
    ) -> None:
        parameters = dict(locals())
        if loc is None and scale_tril is None:
            raise ValueError("Must specify one or both of `loc`, `scale_tril`.")
        with tf.name_scope(name) as scope, tf.name_scope("init"):
            scale = make_tril_scale(loc, scale_tril, validate_args=validate_args)
        super().__init__(loc, scale, validate_args, allow_nan_stats, scope)
        self._initial_parameters = own_parameters(parameters)
