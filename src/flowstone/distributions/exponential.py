"""The exponential distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.distributions.gamma import Gamma
from flowstone.distributions.parameters import with_positive
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays.constants import ones
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.randomness.random import random_uniform

__all__ = ["Exponential"]


class Exponential(Gamma):
    """The density rate exp(-rate x) of x > 0: the gamma distribution of concentration 1.

    Args:
        rate: positive, floating; its shape is the batch.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    def __init__(
        self, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Exponential"
    ) -> None:
        parameters = {
            "rate": rate,
            "validate_args": validate_args,
            "allow_nan_stats": allow_nan_stats,
            "name": name,
        }
        with get_default_graph().name_scope(name) as scope:
            rate = convert_to_tensor(rate, name="rate")
        super().__init__(
            concentration=ones([], dtype=rate.dtype),
            rate=rate,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            name=scope,
        )
        self._initial_parameters = parameters

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> dict[str, Tensor]:
        return cls._all_of_shape(sample_shape, "rate")

    def _log_survival_function(self, value: Tensor) -> Tensor:
        return F.Neg(self.rate * with_positive(value, self.validate_args))

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        sizes = concat([[n], shape(self._rate)], 0)
        # Not zero, of which the logarithm would be infinite.
        least = np.finfo(self.dtype.as_numpy_dtype).tiny
        uniform = random_uniform(sizes, minval=least, maxval=1.0, seed=seed, dtype=self.dtype)
        return F.Neg(F.Log(uniform)) / self._rate
