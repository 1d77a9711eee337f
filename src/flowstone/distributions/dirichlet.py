"""The Dirichlet distribution."""

from __future__ import annotations

import math
from typing import Any

from flowstone.distributions.concentrations import ConcentratedDistribution
from flowstone.distributions.kullback_leibler import RegisterKL
from flowstone.distributions.reparameterization import FULLY_REPARAMETERIZED
from flowstone.distributions.vectors import (
    covariance_of_shares,
    with_column,
)
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.arrays.constants import constant, fill, ones
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.control.checks import assert_less, assert_near, assert_positive
from flowstone.ops.control.control_flow import with_dependencies
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.reductions import reduce_all, reduce_sum
from flowstone.ops.numbers.special_functions import lbeta
from flowstone.ops.randomness.random import random_gamma

__all__ = ["Dirichlet"]


class Dirichlet(ConcentratedDistribution):
    """The density ∏ x_j^(concentration_j - 1) / B(concentration) of positive x [k] whose sum is 1.

    Args:
        concentration: [*batch_shape, k], positive, floating.
        validate_args, allow_nan_stats, name: see `Distribution`.

    The mode is not defined where any concentration is <= 1. With `validate_args`, k must be at least 2.
    ValueError for a scalar.
    """

    def __init__(
        self,
        concentration: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Dirichlet",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as scope:
            self._set_concentration(concentration, validate_args)
        super().__init__(
            dtype=self._concentration.dtype,
            reparameterization_type=FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._concentration, self._total_concentration],
            name=scope,
        )

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        gammas = random_gamma(shape=[n], alpha=self.concentration, dtype=self.dtype, seed=seed)
        return gammas / reduce_sum(gammas, -1, keepdims=True)

    def _log_prob(self, value: Tensor) -> Tensor:
        x = self._with_valid_sample(value)
        return reduce_sum(F.Xlogy(self.concentration - 1.0, x), -1) - lbeta(self.concentration)

    def _with_valid_sample(self, x: Tensor) -> Tensor:
        if not self.validate_args:
            return x
        message = "sample last-dimension must sum to `1`"
        checks = [
            assert_positive(x, message="samples must be positive"),
            assert_near(ones([], self.dtype), reduce_sum(x, -1), message=message),
        ]
        return with_dependencies(checks, x)  # type: ignore[no-any-return]

    def _entropy(self) -> Tensor:
        k = cast(self.event_shape_tensor()[0], self.dtype)
        total = self.total_concentration
        constants: Tensor = lbeta(self.concentration) + (total - k) * F.Digamma(total)
        return constants - reduce_sum((self.concentration - 1.0) * F.Digamma(self.concentration), -1)

    def _mean(self) -> Tensor:
        return self.concentration / with_column(self.total_concentration)

    def _scale_and_share(self) -> tuple[Tensor, Tensor]:
        """1 / √(1 + total) and the mean times that."""
        scale = F.Rsqrt(1.0 + with_column(self.total_concentration))
        return scale, scale * self._mean()

    def _covariance(self) -> Tensor:
        _, share = self._scale_and_share()
        return covariance_of_shares(share, share, self._variance())

    def _variance(self) -> Tensor:
        scale, share = self._scale_and_share()
        return share * (scale - share)

    def _mode(self) -> Tensor:
        k = cast(self.event_shape_tensor()[0], self.dtype)
        mode = (self.concentration - 1.0) / (with_column(self.total_concentration) - k)
        if self.allow_nan_stats:
            nan = fill(shape(mode), constant(math.nan, self.dtype, name="nan/value"), name="nan")
            defined = reduce_all(self.concentration > 1.0, -1, keepdims=True)
            return F.SelectV2(defined, mode, nan)
        message = "Mode undefined when any concentration <= 1"
        check = assert_less(ones([], self.dtype), self.concentration, message=message)
        return with_dependencies([check], mode)  # type: ignore[no-any-return]


@RegisterKL(Dirichlet, Dirichlet)
def _(a: Dirichlet, b: Dirichlet, name: str | None = None) -> Tensor:
    """Σ (α - α')(ψ(α) - ψ(Σ α)) - log B(α) + log B(α')"""
    with get_default_graph().name_scope(name or "kl_dirichlet_dirichlet"):
        total = F.Digamma(reduce_sum(a.concentration, -1, keepdims=True))
        digammas = F.Digamma(a.concentration) - total
        terms = reduce_sum((a.concentration - b.concentration) * digammas, -1)
        return terms - lbeta(a.concentration) + lbeta(b.concentration)
