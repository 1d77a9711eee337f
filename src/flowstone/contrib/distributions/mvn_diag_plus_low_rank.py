"""Normal distributions of vectors with a diagonal scale and a perturbation of low rank."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.distribution_util import make_diag_scale
from flowstone.contrib.distributions.mvn_linear_operator import MultivariateNormalLinearOperator
from flowstone.contrib.distributions.scalar_distribution import own_parameters

__all__ = ["MultivariateNormalDiagPlusLowRank"]


class MultivariateNormalDiagPlusLowRank(MultivariateNormalLinearOperator):
    """Normal vectors with the scale c I + diag(d) + U diag(e) Uᵀ.

    Args:
        loc: [..., k], floating; zeros by default.
        scale_diag: d [..., k].
        scale_identity_multiplier: the number c; ones by default if there is no d either.
        scale_perturb_factor: U [..., k, r]; no perturbation by default.
        scale_perturb_diag: e [..., r]; ones by default.
        validate_args, allow_nan_stats, name: see `Distribution`.

    ValueError if k cannot be told.
    """

    def __init__(
        self,
        loc: Any = None,
        scale_diag: Any = None,
        scale_identity_multiplier: Any = None,
        scale_perturb_factor: Any = None,
        scale_perturb_diag: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagPlusLowRank",
    ) -> None:
        parameters = dict(locals())
        has_low_rank = scale_perturb_factor is not None
        with tf.name_scope(name) as scope:
            factor = tf.convert_to_tensor(scale_perturb_factor, name="factor") if has_low_rank else None
            hint = None
            if factor is not None:
                hint = factor.shape[-2].value
                hint = tf.shape(factor)[-2] if hint is None else hint
            scale = make_diag_scale(
                loc,
                scale_diag,
                scale_identity_multiplier,
                shape_hint=hint,
                validate_args=validate_args,
                assert_positive=has_low_rank,
            )
            if factor is not None:
                scale = _updated(scale, factor, scale_perturb_diag)
        super().__init__(loc, scale, validate_args, allow_nan_stats, scope)
        self._initial_parameters = own_parameters(parameters)


def _updated(scale: Any, factor: Any, diagonal: Any) -> Any:
    """The scale with its perturbation of low rank."""
    return tf.linalg.LinearOperatorLowRankUpdate(
        scale,
        u=factor,
        diag_update=None if diagonal is None else tf.convert_to_tensor(diagonal, name="diag"),
        is_diag_update_positive=diagonal is None,
        is_non_singular=True,
        is_self_adjoint=True,
        is_positive_definite=True,
        is_square=True,
    )
