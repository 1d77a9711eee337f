"""The gamma distribution."""

from __future__ import annotations

import math
from typing import Any

from flowstone.distributions.distribution import Distribution
from flowstone.distributions.kullback_leibler import RegisterKL
from flowstone.distributions.parameters import (
    batch_tensor,
    checked_identities,
    static_batch,
    with_positive,
)
from flowstone.distributions.reparameterization import FULLY_REPARAMETERIZED
from flowstone.distributions.sample_shapes import integer_vector
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays.constants import constant, fill, ones
from flowstone.ops.control.checks import assert_less, assert_positive
from flowstone.ops.control.control_flow import with_dependencies
from flowstone.ops.control.type_checks import assert_same_float_dtype
from flowstone.ops.randomness.random import random_gamma

__all__ = ["Gamma"]


class Gamma(Distribution):
    """The density x^(concentration - 1) exp(-rate x) rate^concentration / Γ(concentration) of x > 0.

    Args:
        concentration: the shape parameter α, positive, floating.
        rate: the inverse scale β, positive; broadcasts with `concentration` to the batch.
        validate_args, allow_nan_stats, name: see `Distribution`.

    The mode is not defined where concentration <= 1. ValueError if the types differ or are not floating.
    """

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Gamma",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as scope:
            checks = [assert_positive(concentration), assert_positive(rate)] if validate_args else []
            self._concentration, self._rate = checked_identities(
                checks, concentration=concentration, rate=rate
            )
            assert_same_float_dtype([self._concentration, self._rate])
        static_batch(self._concentration, self._rate)
        super().__init__(
            dtype=self._concentration.dtype,
            reparameterization_type=FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._concentration, self._rate],
            name=scope,
        )

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> dict[str, Tensor]:
        return cls._all_of_shape(sample_shape, "concentration", "rate")

    @property
    def concentration(self) -> Tensor:
        """The shape parameter."""
        return self._concentration

    @property
    def rate(self) -> Tensor:
        """The inverse scale."""
        return self._rate

    def _batch_shape(self) -> Any:
        return static_batch(self._concentration, self._rate)

    def _batch_shape_tensor(self) -> Tensor:
        return batch_tensor(self._concentration, self._rate)

    def _event_shape(self) -> Any:
        return TensorShape([])

    def _event_shape_tensor(self) -> Tensor:
        return integer_vector([], "event_shape")

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        return random_gamma(shape=[n], alpha=self.concentration, beta=self.rate, dtype=self.dtype, seed=seed)

    def _log_prob(self, value: Tensor) -> Tensor:
        x = with_positive(value, self.validate_args)
        unnormalised = F.Xlogy(self.concentration - 1.0, x) - self.rate * x
        return unnormalised - (F.Lgamma(self.concentration) - self.concentration * F.Log(self.rate))

    def _cdf(self, value: Tensor) -> Tensor:
        x = with_positive(value, self.validate_args)
        return F.Igamma(self.concentration, self.rate * x)

    def _entropy(self) -> Tensor:
        constants = self.concentration - F.Log(self.rate) + F.Lgamma(self.concentration)
        return constants + (1.0 - self.concentration) * F.Digamma(self.concentration)

    def _mean(self) -> Tensor:
        return self.concentration / self.rate

    def _variance(self) -> Tensor:
        return self.concentration / F.Square(self.rate)

    def _stddev(self) -> Tensor:
        return F.Sqrt(self.concentration) / self.rate

    def _mode(self) -> Tensor:
        mode = (self.concentration - 1.0) / self.rate
        if self.allow_nan_stats:
            nan = fill(
                self.batch_shape_tensor(), constant(math.nan, self.dtype, name="nan/value"), name="nan"
            )
            return F.SelectV2(self.concentration > 1.0, mode, nan)
        message = "mode not defined when any concentration <= 1"
        check = assert_less(ones([], self.dtype), self.concentration, message=message)
        return with_dependencies([check], mode)  # type: ignore[no-any-return]


@RegisterKL(Gamma, Gamma)
def _(a: Gamma, b: Gamma, name: str | None = None) -> Tensor:
    """(α - α')ψ(α) + log Γ(α') - log Γ(α) + α'(log β - log β') + α(β'/β - 1)"""
    with get_default_graph().name_scope(name or "kl_gamma_gamma"):
        return (
            (a.concentration - b.concentration) * F.Digamma(a.concentration)
            + F.Lgamma(b.concentration)
            - F.Lgamma(a.concentration)
            + b.concentration * F.Log(a.rate)
            - b.concentration * F.Log(b.rate)
            + a.concentration * (b.rate / a.rate - 1.0)
        )
