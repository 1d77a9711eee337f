"""The Dirichlet-multinomial distribution."""

from __future__ import annotations

from typing import Any

from flowstone.distributions.concentrations import ConcentratedDistribution
from flowstone.distributions.parameters import log_combinations, with_counts
from flowstone.distributions.reparameterization import NOT_REPARAMETERIZED
from flowstone.distributions.sample_shapes import gen_new_seed
from flowstone.distributions.vectors import (
    covariance_of_shares,
    drawn_counts,
    with_column,
)
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import ones_like
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import reshape
from flowstone.ops.control.checks import assert_equal
from flowstone.ops.control.control_flow import with_dependencies
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.reductions import reduce_sum
from flowstone.ops.numbers.special_functions import lbeta
from flowstone.ops.randomness.random import random_gamma

__all__ = ["DirichletMultinomial"]


class DirichletMultinomial(ConcentratedDistribution):
    """How often each of k classes was drawn, with probabilities from a Dirichlet distribution.

    Args:
        total_count: the number of draws, floating; [*batch_shape].
        concentration: of the Dirichlet distribution, [*batch_shape, k], positive, floating.
        validate_args, allow_nan_stats, name: see `Distribution`.

    Samples are whole numbers of the concentrations' type.
    """

    def __init__(
        self,
        total_count: Any,
        concentration: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "DirichletMultinomial",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as scope:
            self._total_count = convert_to_tensor(total_count, name="total_count")
            if validate_args:
                self._total_count = with_counts(self._total_count)
            self._set_concentration(concentration, validate_args)
        super().__init__(
            dtype=self._concentration.dtype,
            reparameterization_type=NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._total_count, self._concentration],
            name=scope,
        )

    @property
    def total_count(self) -> Tensor:
        """The number of draws."""
        return self._total_count

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        totals, k = cast(self.total_count, dtypes.int32), self.event_shape_tensor()[0]
        gammas = random_gamma(shape=[n], alpha=self.concentration, dtype=self.dtype, seed=seed)
        logits = F.Log(gammas)
        totals = ones_like(logits[..., 0], dtype=dtypes.int32) * totals
        other_seed = gen_new_seed(seed, "dirichlet_multinomial")
        draws = drawn_counts(reshape(logits, [-1, k]), reshape(totals, [-1]), 1, other_seed, self.dtype)
        return reshape(draws, concat([[n], self.batch_shape_tensor(), [k]], 0))

    def _log_prob(self, value: Tensor) -> Tensor:
        counts = self._with_valid_sample(value)
        ordered = lbeta(self.concentration + counts) - lbeta(self.concentration)
        return ordered + log_combinations(self.total_count, counts)

    def _with_valid_sample(self, counts: Tensor) -> Tensor:
        if not self.validate_args:
            return counts
        counts = with_counts(counts)
        message = "counts last-dimension must sum to `self.total_count`"
        check = assert_equal(self.total_count, reduce_sum(counts, -1), message=message)
        return with_dependencies([check], counts)  # type: ignore[no-any-return]

    def _mean(self) -> Tensor:
        return self.total_count * (self.concentration / with_column(self.total_concentration))

    def _scale_and_share(self) -> tuple[Tensor, Tensor]:
        """√((1 + total / n) / (1 + total)) and the mean times that."""
        total = with_column(self.total_concentration)
        scale = F.Sqrt((1.0 + total / self.total_count) / (1.0 + total))
        return scale, scale * self._mean()

    def _covariance(self) -> Tensor:
        _, share = self._scale_and_share()
        return covariance_of_shares(share, share, self._variance())

    def _variance(self) -> Tensor:
        scale, share = self._scale_and_share()
        return share * (self.total_count * scale - share)
