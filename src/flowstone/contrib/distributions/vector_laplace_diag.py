"""Vectors of independent elements with Laplace distributions."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.distribution_util import make_diag_scale
from flowstone.contrib.distributions.scalar_distribution import own_parameters
from flowstone.contrib.distributions.vector_laplace_linear_operator import VectorLaplaceLinearOperator

__all__ = ["VectorLaplaceDiag"]


class VectorLaplaceDiag(VectorLaplaceLinearOperator):
    """The vectors (c I + diag(d)) x + loc; see `VectorLaplaceLinearOperator`.

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
        name: str = "VectorLaplaceDiag",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            with tf.name_scope("init"):
                scale = make_diag_scale(
                    loc, scale_diag, scale_identity_multiplier, validate_args=validate_args
                )
            super().__init__(loc, scale, validate_args, allow_nan_stats, scope)
        self._initial_parameters = own_parameters(parameters)
