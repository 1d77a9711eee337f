"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

from flowstone.distributions.kullback_leibler import RegisterKL
from flowstone.distributions.location_scale import LocationScale
from flowstone.distributions.normal_functions import log_ndtr, ndtr, ndtri
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.arrays.constants import constant, ones_like
from flowstone.ops.arrays.joining import concat
from flowstone.ops.randomness.random import random_normal

__all__ = ["Normal"]

_LOG_2PI = math.log(2.0 * math.pi)


class Normal(LocationScale):
    """The density exp(-z²/2) / (scale √(2π)) with z = (x - loc) / scale.

    Args:
        loc: the mean, floating.
        scale: the standard deviation, positive; broadcasts with `loc` to the batch.
        validate_args, allow_nan_stats, name: see `Distribution`.

    ValueError if the types differ or are not floating, or the shapes do not broadcast.
    """

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Normal",
    ) -> None:
        parameters = dict(locals())
        super().__init__(loc, scale, validate_args, allow_nan_stats, parameters, name)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        sizes = concat([[n], self.batch_shape_tensor()], 0)
        standard = random_normal(sizes, mean=0.0, stddev=1.0, dtype=self.loc.dtype, seed=seed)
        return standard * self.scale + self.loc

    def _z(self, x: Tensor) -> Tensor:
        with get_default_graph().name_scope("standardize"):
            return (x - self.loc) / self.scale

    def _log_prob(self, value: Tensor) -> Tensor:
        return -0.5 * F.Square(self._z(value)) - (0.5 * _LOG_2PI + F.Log(self.scale))

    def _log_cdf(self, value: Tensor) -> Tensor:
        return log_ndtr(self._z(value))

    def _cdf(self, value: Tensor) -> Tensor:
        return ndtr(self._z(value))

    def _log_survival_function(self, value: Tensor) -> Tensor:
        return log_ndtr(F.Neg(self._z(value)))

    def _survival_function(self, value: Tensor) -> Tensor:
        return ndtr(F.Neg(self._z(value)))

    def _quantile(self, value: Tensor) -> Tensor:
        z = ndtri(value)
        with get_default_graph().name_scope("reconstruct"):
            return z * self.scale + self.loc

    def _entropy(self) -> Tensor:
        scale = self.scale * ones_like(self.loc)
        return 0.5 * _LOG_2PI + 0.5 + F.Log(scale)

    def _mean(self) -> Tensor:
        return self.loc * ones_like(self.scale)

    def _stddev(self) -> Tensor:
        return self.scale * ones_like(self.loc)


@RegisterKL(Normal, Normal)
def _(a: Normal, b: Normal, name: str | None = None) -> Tensor:
    """(μ - ν)² / 2τ² + (r - 1 - log r) / 2 with r = σ²/τ²"""
    with get_default_graph().name_scope(name or "kl_normal_normal"):
        one, two, half = (constant(number, a.loc.dtype) for number in (1.0, 2.0, 0.5))
        variance, other = F.Square(a.scale), F.Square(b.scale)
        ratio = variance / other
        return F.SquaredDifference(a.loc, b.loc) / (two * other) + half * (ratio - one - F.Log(ratio))
