"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

from flowstone.distributions.distribution import Distribution
from flowstone.distributions.parameters import log_combinations, logits_and_probs, with_counts
from flowstone.distributions.reparameterization import NOT_REPARAMETERIZED
from flowstone.distributions.vectors import covariance_of_shares, drawn_counts, with_column
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import ones_like
from flowstone.ops.arrays.identities import identity
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.rearranging import transpose
from flowstone.ops.arrays.shapes import reshape, shape
from flowstone.ops.control.checks import assert_equal
from flowstone.ops.control.control_flow import with_dependencies
from flowstone.ops.networks.softmax import log_softmax
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.reductions import reduce_sum

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each of k classes was drawn in `total_count` draws.

    Args:
        total_count: the number of draws, floating, of the type of the probabilities; [*batch_shape].
        logits: unnormalised log probabilities [*batch_shape, k], floating.
        probs: the probabilities, in place of `logits`.
        validate_args, allow_nan_stats, name: see `Distribution`.

    Samples are whole numbers of the probabilities' type. ValueError unless exactly one of `logits` and
    `probs` is given; TypeError unless it is floating.
    """

    def __init__(
        self,
        total_count: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Multinomial",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as scope:
            self._total_count = convert_to_tensor(total_count, name="total_count")
            if validate_args:
                self._total_count = with_counts(self._total_count)
            self._logits, self._probs = logits_and_probs(logits, probs, True, validate_args)
            self._mean_value = with_column(self._total_count) * self._probs
        super().__init__(
            dtype=self._probs.dtype,
            reparameterization_type=NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._total_count, self._logits, self._probs],
            name=scope,
        )

    @property
    def total_count(self) -> Tensor:
        """The number of draws."""
        return self._total_count

    @property
    def logits(self) -> Tensor:
        """The unnormalised log probabilities."""
        return self._logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._probs

    def _batch_shape(self) -> Any:
        return self._mean_value.shape.with_rank_at_least(1)[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return shape(self._mean_value)[:-1]

    def _event_shape(self) -> Any:
        return self._mean_value.shape.with_rank_at_least(1)[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return shape(self._mean_value)[-1:]

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        totals, k = cast(self.total_count, dtypes.int32), self.event_shape_tensor()[0]
        totals = ones_like(self.logits[..., 0], dtype=totals.dtype) * totals
        logits = ones_like(totals[..., None], dtype=self.logits.dtype) * self.logits
        rows = reshape(logits, [-1, k])
        draws = transpose(drawn_counts(rows, reshape(totals, [-1]), n, seed, self.dtype), [1, 0, 2])
        return reshape(draws, concat([[n], self.batch_shape_tensor(), [k]], 0))

    def _log_prob(self, value: Tensor) -> Tensor:
        counts = self._with_valid_sample(value)
        unnormalised = reduce_sum(counts * log_softmax(self.logits), -1)
        return unnormalised - F.Neg(log_combinations(self.total_count, counts))

    def _with_valid_sample(self, counts: Tensor) -> Tensor:
        if not self.validate_args:
            return counts
        counts = with_counts(counts)
        message = "counts must sum to `self.total_count`"
        check = assert_equal(self.total_count, reduce_sum(counts, -1), message=message)
        return with_dependencies([check], counts)  # type: ignore[no-any-return]

    def _mean(self) -> Tensor:
        return identity(self._mean_value)

    def _wide_probs(self) -> Tensor:
        return self.probs * ones_like(self.total_count)[..., None]

    def _covariance(self) -> Tensor:
        return covariance_of_shares(self._mean_value, self._wide_probs(), self._variance())

    def _variance(self) -> Tensor:
        return self._mean_value - self._mean_value * self._wide_probs()
