"""The beta distribution."""

from __future__ import annotations

import math
from typing import Any

from flowstone.distributions.distribution import Distribution
from flowstone.distributions.kullback_leibler import RegisterKL
from flowstone.distributions.parameters import static_batch, with_positive
from flowstone.distributions.reparameterization import FULLY_REPARAMETERIZED
from flowstone.distributions.sample_shapes import gen_new_seed, integer_vector
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays.constants import constant, fill, ones, ones_like
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.control.checks import assert_less, assert_positive
from flowstone.ops.control.control_flow import with_dependencies
from flowstone.ops.control.type_checks import assert_same_float_dtype
from flowstone.ops.randomness.random import random_gamma

__all__ = ["Beta"]


class Beta(Distribution):
    """The density x^(concentration1 - 1) (1 - x)^(concentration0 - 1) / B(concentration1, concentration0)

    of 0 < x < 1, where B is the beta function.

    Args:
        concentration1, concentration0: α and β, positive, floating; they broadcast to the batch.
        validate_args, allow_nan_stats, name: see `Distribution`.

    The mode is not defined where a concentration is <= 1. ValueError if the types differ or a concentration
    is missing.
    """

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Beta",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as scope:
            message = "Concentration parameter must be positive."
            self._concentration1, self._concentration0 = (
                with_positive(convert_to_tensor(value, name=each), validate_args, message)
                for each, value in (("concentration1", concentration1), ("concentration0", concentration0))
            )
            assert_same_float_dtype([self._concentration1, self._concentration0])
            self._total_concentration = self._concentration1 + self._concentration0
        super().__init__(
            dtype=self._total_concentration.dtype,
            reparameterization_type=FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._concentration1, self._concentration0, self._total_concentration],
            name=scope,
        )

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> dict[str, Tensor]:
        return cls._all_of_shape(sample_shape, "concentration1", "concentration0")

    @property
    def concentration1(self) -> Tensor:
        """The concentration of x = 1."""
        return self._concentration1

    @property
    def concentration0(self) -> Tensor:
        """The concentration of x = 0."""
        return self._concentration0

    @property
    def total_concentration(self) -> Tensor:
        """The sum of both concentrations."""
        return self._total_concentration

    def _batch_shape(self) -> Any:
        return static_batch(self._total_concentration)

    def _batch_shape_tensor(self) -> Tensor:
        return shape(self._total_concentration)

    def _event_shape(self) -> Any:
        return TensorShape([])

    def _event_shape_tensor(self) -> Tensor:
        return integer_vector([], "event_shape")

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        wide1 = ones_like(self._total_concentration, dtype=self.dtype) * self.concentration1
        wide0 = ones_like(self._total_concentration, dtype=self.dtype) * self.concentration0
        gamma1 = random_gamma(shape=[n], alpha=wide1, dtype=self.dtype, seed=seed)
        gamma0 = random_gamma(shape=[n], alpha=wide0, dtype=self.dtype, seed=gen_new_seed(seed, "beta"))
        return gamma1 / (gamma1 + gamma0)

    def _with_valid_sample(self, x: Tensor) -> Tensor:
        if not self.validate_args:
            return x
        checks = [
            assert_positive(x, message="sample must be positive"),
            assert_less(x, ones([], self.dtype), message="sample must be less than `1`."),
        ]
        return with_dependencies(checks, x)  # type: ignore[no-any-return]

    def _log_prob(self, value: Tensor) -> Tensor:
        x = self._with_valid_sample(value)
        unnormalised = F.Xlogy(self.concentration1 - 1.0, x) + (self.concentration0 - 1.0) * F.Log1p(F.Neg(x))
        return unnormalised - self._log_normalization()

    def _log_normalization(self) -> Tensor:
        parts = F.Lgamma(self.concentration1) + F.Lgamma(self.concentration0)
        return parts - F.Lgamma(self.total_concentration)

    def _cdf(self, value: Tensor) -> Tensor:
        return F.Betainc(self.concentration1, self.concentration0, value)

    def _entropy(self) -> Tensor:
        a, b, total = self.concentration1, self.concentration0, self.total_concentration
        return (
            self._log_normalization()
            - (a - 1.0) * F.Digamma(a)
            - (b - 1.0) * F.Digamma(b)
            + (total - 2.0) * F.Digamma(total)
        )

    def _mean(self) -> Tensor:
        return self._concentration1 / self._total_concentration

    def _variance(self) -> Tensor:
        return self._mean() * (1.0 - self._mean()) / (1.0 + self.total_concentration)

    def _mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        mode = (a - 1.0) / (self.total_concentration - 2.0)
        if self.allow_nan_stats:
            nan = fill(
                self.batch_shape_tensor(), constant(math.nan, self.dtype, name="nan/value"), name="nan"
            )
            return F.SelectV2(F.LogicalAnd(a > 1.0, b > 1.0), mode, nan)
        checks = [
            assert_less(ones([], self.dtype), each, message=f"Mode undefined for {name} <= 1.")
            for name, each in (("concentration1", a), ("concentration0", b))
        ]
        return with_dependencies(checks, mode)  # type: ignore[no-any-return]


@RegisterKL(Beta, Beta)
def _(a: Beta, b: Beta, name: str | None = None) -> Tensor:
    """log B' - log B - ψ(α)(α' - α) - ψ(β)(β' - β) + ψ(α + β)(α' + β' - α - β)"""

    def difference(of: str) -> Tensor:
        term: Tensor = F.Digamma(getattr(a, of)) * (getattr(b, of) - getattr(a, of))
        return term

    with get_default_graph().name_scope(name or "kl_beta_beta"):
        divergence: Tensor = (
            b._log_normalization()
            - a._log_normalization()
            - difference("concentration1")
            - difference("concentration0")
            + difference("total_concentration")
        )
        return divergence
