"""The uniform distribution on an interval."""

from __future__ import annotations

import math
from typing import Any

from flowstone.distributions.distribution import Distribution
from flowstone.distributions.parameters import batch_tensor, checked_identities, static_batch
from flowstone.distributions.reparameterization import FULLY_REPARAMETERIZED
from flowstone.distributions.sample_shapes import integer_vector
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays.broadcasting import broadcast_dynamic_shape
from flowstone.ops.arrays.constants import ones, ones_like, zeros, zeros_like
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.control.checks import assert_less
from flowstone.ops.control.type_checks import assert_same_float_dtype
from flowstone.ops.randomness.random import random_uniform

__all__ = ["Uniform"]


class Uniform(Distribution):
    """The density 1 / (high - low) on [low, high), and zero elsewhere.

    Args:
        low, high: the ends, floating, low < high; they broadcast to the batch.
        validate_args, allow_nan_stats, name: see `Distribution`.

    With `validate_args`, InvalidArgumentError unless low < high. ValueError if the types differ or are not
    floating.
    """

    def __init__(
        self,
        low: Any = 0.0,
        high: Any = 1.0,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Uniform",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as scope:
            message = "uniform not defined when low >= high."
            checks = [assert_less(low, high, message=message)] if validate_args else []
            self._low, self._high = checked_identities(checks, low=low, high=high)
            assert_same_float_dtype([self._low, self._high])
        static_batch(self._low, self._high)
        super().__init__(
            dtype=self._low.dtype,
            reparameterization_type=FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._low, self._high],
            name=scope,
        )

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> dict[str, Tensor]:
        return cls._all_of_shape(sample_shape, "low", "high")

    @property
    def low(self) -> Tensor:
        """The lower end, which draws may be."""
        return self._low

    @property
    def high(self) -> Tensor:
        """The upper end, which no draw is."""
        return self._high

    def range(self, name: str = "range") -> Tensor:
        """high - low."""
        with self._scope(name):
            return self.high - self.low

    def _batch_shape(self) -> Any:
        return static_batch(self._low, self._high)

    def _batch_shape_tensor(self) -> Tensor:
        return batch_tensor(self._low, self._high)

    def _event_shape(self) -> Any:
        return TensorShape([])

    def _event_shape_tensor(self) -> Tensor:
        return integer_vector([], "event_shape")

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        sizes = concat([[n], self.batch_shape_tensor()], 0)
        samples = random_uniform(sizes, dtype=self.dtype, seed=seed)
        return self.low + self.range() * samples

    def _prob(self, value: Tensor) -> Tensor:
        wide = value * ones(self.batch_shape_tensor(), dtype=value.dtype)
        outside = F.LogicalOr(wide < self.low, wide >= self.high)
        density = F.SelectV2(outside, zeros_like(wide), ones_like(wide) / self.range())
        return F.SelectV2(F.IsNan(wide), wide, density)

    def _cdf(self, value: Tensor) -> Tensor:
        sizes = broadcast_dynamic_shape(shape(value), self.batch_shape_tensor())
        nothing, everything = zeros(sizes, dtype=self.dtype), ones(sizes, dtype=self.dtype)
        wide = value * everything
        inside = F.SelectV2(value < self.low, nothing, (wide - self.low) / self.range())
        return F.SelectV2(value >= self.high, everything, inside)

    def _entropy(self) -> Tensor:
        return F.Log(self.range())

    def _mean(self) -> Tensor:
        return (self.low + self.high) / 2.0

    def _variance(self) -> Tensor:
        return F.Square(self.range()) / 12.0

    def _stddev(self) -> Tensor:
        return self.range() / math.sqrt(12.0)
