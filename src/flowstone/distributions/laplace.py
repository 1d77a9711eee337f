"""The Laplace distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowstone.distributions.location_scale import LocationScale
from flowstone.distributions.normal_functions import log_cdf_laplace
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.arrays.constants import zeros_like
from flowstone.ops.arrays.joining import concat
from flowstone.ops.randomness.random import random_uniform

__all__ = ["Laplace"]


class Laplace(LocationScale):
    """The density exp(-|x - loc| / scale) / (2 scale).

    Args:
        loc: the mean and median, floating.
        scale: positive; broadcasts with `loc` to the batch.
        validate_args, allow_nan_stats, name: see `Distribution`.

    ValueError if the types differ or are not floating, or the shapes do not broadcast.
    """

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Laplace",
    ) -> None:
        parameters = dict(locals())
        super().__init__(loc, scale, validate_args, allow_nan_stats, parameters, name)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        sizes = concat([[n], self.batch_shape_tensor()], 0)
        kind = self.dtype.as_numpy_dtype
        # Not -1 itself, of which the logarithm below would be infinite.
        least = np.nextafter(kind(-1.0), kind(0.0))
        uniform = random_uniform(sizes, minval=least, maxval=1.0, dtype=self.dtype, seed=seed)
        return self.loc - self.scale * F.Sign(uniform) * F.Log1p(F.Neg(F.Abs(uniform)))

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def _log_prob(self, value: Tensor) -> Tensor:
        return F.Neg(F.Abs(self._z(value))) - (math.log(2.0) + F.Log(self.scale))

    def _log_cdf(self, value: Tensor) -> Tensor:
        return log_cdf_laplace(self._z(value))

    def _log_survival_function(self, value: Tensor) -> Tensor:
        return log_cdf_laplace(F.Neg(self._z(value)))

    def _cdf(self, value: Tensor) -> Tensor:
        z = self._z(value)
        return 0.5 + 0.5 * F.Sign(z) * (1.0 - F.Exp(F.Neg(F.Abs(z))))

    def _entropy(self) -> Tensor:
        return math.log(2.0) + 1.0 + F.Log(self.scale + zeros_like(self.loc))

    def _mean(self) -> Tensor:
        return self.loc + zeros_like(self.scale)

    def _stddev(self) -> Tensor:
        return math.sqrt(2.0) * self.scale + zeros_like(self.loc)
