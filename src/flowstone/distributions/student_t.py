"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

from flowstone.distributions.distribution import Distribution
from flowstone.distributions.parameters import batch_tensor, checked_identities, static_batch
from flowstone.distributions.reparameterization import FULLY_REPARAMETERIZED
from flowstone.distributions.sample_shapes import gen_new_seed, integer_vector
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays.constants import constant, fill, ones, ones_like
from flowstone.ops.arrays.identities import identity
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import expand_dims
from flowstone.ops.control.checks import assert_less, assert_positive
from flowstone.ops.control.control_flow import with_dependencies
from flowstone.ops.control.type_checks import assert_same_float_dtype
from flowstone.ops.numbers.special_functions import lbeta
from flowstone.ops.randomness.random import random_gamma, random_normal

__all__ = ["StudentT"]


class StudentT(Distribution):
    """The density (1 + z²/df)^(-(df + 1)/2) / Z with z = (x - loc) / scale.

    Args:
        df: the degrees of freedom, positive, floating.
        loc: the mean, where it is defined.
        scale: not the deviation; of either sign. The three broadcast to the batch.
        validate_args, allow_nan_stats, name: see `Distribution`.

    The mean and the variance are not defined where df <= 1; the variance is infinite where 1 < df <= 2.
    ValueError if the types differ or are not floating.
    """

    def __init__(
        self,
        df: Any,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentT",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as scope:
            checks = [assert_positive(df)] if validate_args else []
            (self._df,) = checked_identities(checks, df=df)
            self._loc, self._scale = checked_identities([], loc=loc, scale=scale)
            assert_same_float_dtype([self._df, self._loc, self._scale])
        static_batch(self._df, self._loc, self._scale)
        super().__init__(
            dtype=self._scale.dtype,
            reparameterization_type=FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._df, self._loc, self._scale],
            name=scope,
        )

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> dict[str, Tensor]:
        return cls._all_of_shape(sample_shape, "df", "loc", "scale")

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self._df

    @property
    def loc(self) -> Tensor:
        """The location."""
        return self._loc

    @property
    def scale(self) -> Tensor:
        """The scale."""
        return self._scale

    def _batch_shape(self) -> Any:
        return static_batch(self._df, self._loc, self._scale)

    def _batch_shape_tensor(self) -> Tensor:
        return batch_tensor(self._df, self._loc, self._scale)

    def _event_shape(self) -> Any:
        return TensorShape([])

    def _event_shape_tensor(self) -> Tensor:
        return integer_vector([], "event_shape")

    def _ones(self) -> Tensor:
        return ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        # A normal value over the root of a chi-squared one with df degrees of freedom, divided by df.
        sizes = concat([[n], self.batch_shape_tensor()], 0)
        normal = random_normal(sizes, dtype=self.dtype, seed=seed)
        df = self.df * self._ones()
        other_seed = gen_new_seed(seed, "student_t")
        squared = random_gamma([n], 0.5 * df, beta=0.5, dtype=self.dtype, seed=other_seed)
        return normal * F.Rsqrt(squared / df) * self.scale + self.loc

    def _log_prob(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / self.scale
        unnormalised = -0.5 * (self.df + 1.0) * F.Log1p(z**2.0 / self.df)
        return unnormalised - self._log_normalization()

    def _log_normalization(self) -> Tensor:
        scale = F.Log(F.Abs(self.scale)) + 0.5 * F.Log(self.df) + 0.5 * math.log(math.pi)
        return scale + F.Lgamma(0.5 * self.df) - F.Lgamma(0.5 * (self.df + 1.0))

    def _cdf(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / F.Abs(self.scale)
        tail = 0.5 * F.Betainc(0.5 * self.df, 0.5, self.df / (z**2.0 + self.df))
        return F.SelectV2(z < 0.0, tail, 1.0 - tail)

    def _entropy(self) -> Tensor:
        one = expand_dims(self._ones(), -1)
        halves = concat([one, one * expand_dims(self.df, -1)], -1) / 2.0
        constants = F.Log(F.Abs(self.scale)) + 0.5 * F.Log(self.df) + lbeta(halves)
        digammas = F.Digamma(0.5 * (self.df + 1.0)) - F.Digamma(0.5 * self.df)
        return constants + 0.5 * (self.df + 1.0) * digammas

    def _mean(self) -> Tensor:
        return self._where_defined(self.loc * self._ones(), "mean")

    def _variance(self) -> Tensor:
        finite = self.df > 2.0
        divisor = F.SelectV2(finite, self.df - 2.0, ones_like(self.df))
        variance = self._ones() * F.Square(self.scale) * self.df / divisor
        infinite = fill(self.batch_shape_tensor(), constant(math.inf, self.dtype), name="inf")
        return self._where_defined(F.SelectV2(finite, variance, infinite), "variance")

    def _where_defined(self, value: Tensor, what: str) -> Tensor:
        """The statistic where df > 1."""
        if self.allow_nan_stats:
            nan = fill(self.batch_shape_tensor(), constant(math.nan, self.dtype), name="nan")
            return F.SelectV2(self.df > 1.0, value, nan)
        message = f"{what} not defined for components of df <= 1"
        check = assert_less(ones([], self.dtype), self.df, message=message)
        return with_dependencies([check], value)  # type: ignore[no-any-return]

    def _mode(self) -> Tensor:
        return identity(self.loc)
