"""Normal distributions of vectors with independent elements."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.distribution_util import make_diag_scale
from flowstone.contrib.distributions.mvn_linear_operator import MultivariateNormalLinearOperator
from flowstone.contrib.distributions.scalar_distribution import own_parameters

__all__ = ["MultivariateNormalDiag", "MultivariateNormalDiagWithSoftplusScale"]


class MultivariateNormalDiag(MultivariateNormalLinearOperator):
    """Normal vectors with the scale c I + diag(d).

    Args:
        loc: [..., k], floating; zeros by default.
        scale_diag: d [..., k].
        scale_identity_multiplier: the number c; ones by default if there is no d either.
        validate_args, allow_nan_stats, name: see `Distribution`.

    ValueError if k cannot be told.
    """

    def __init__(
        self,
        loc: Any = None,
        scale_diag: Any = None,
        scale_identity_multiplier: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiag",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope, tf.name_scope("init"):
            scale = make_diag_scale(loc, scale_diag, scale_identity_multiplier, validate_args=validate_args)
        super().__init__(loc, scale, validate_args, allow_nan_stats, scope)
        self._initial_parameters = own_parameters(parameters)


class MultivariateNormalDiagWithSoftplusScale(MultivariateNormalDiag):
    """`MultivariateNormalDiag` of the scale diag(softplus(d))."""

    def __init__(
        self,
        loc: Any,
        scale_diag: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagWithSoftplusScale",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            diagonal = tf.nn.softplus(scale_diag)
            super().__init__(loc, diagonal, None, validate_args, allow_nan_stats, scope)
        self._initial_parameters = own_parameters(parameters)
