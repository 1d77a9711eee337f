"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

from flowstone.distributions.distribution import Distribution
from flowstone.distributions.kullback_leibler import RegisterKL
from flowstone.distributions.parameters import logits_and_probs, with_classes
from flowstone.distributions.reparameterization import NOT_REPARAMETERIZED
from flowstone.distributions.sample_shapes import integer_vector
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays.constants import ones_like
from flowstone.ops.arrays.identities import identity
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.networks.cross_entropies import sigmoid_cross_entropy_with_logits
from flowstone.ops.numbers.casts import cast
from flowstone.ops.randomness.random import random_uniform

__all__ = ["Bernoulli"]


class Bernoulli(Distribution):
    """1 with the probability `probs`, else 0.

    Args:
        logits: the log odds log(probs / (1 - probs)), floating; its shape is the batch.
        probs: the probabilities, in place of `logits`.
        dtype: of samples.
        validate_args, allow_nan_stats, name: see `Distribution`.

    ValueError unless exactly one of `logits` and `probs` is given; TypeError unless it is floating.
    """

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Bernoulli",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as scope:
            self._logits, self._probs = logits_and_probs(logits, probs, False, validate_args)
        super().__init__(
            dtype=dtypes.as_dtype(dtype),
            reparameterization_type=NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._logits, self._probs],
            name=scope,
        )

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> dict[str, Tensor]:
        return cls._all_of_shape(sample_shape, "logits")

    @property
    def logits(self) -> Tensor:
        """The log odds of 1."""
        return self._logits

    @property
    def probs(self) -> Tensor:
        """The probability of 1."""
        return self._probs

    def _batch_shape(self) -> Any:
        return self._logits.shape

    def _batch_shape_tensor(self) -> Tensor:
        return shape(self._logits)

    def _event_shape(self) -> Any:
        return TensorShape([])

    def _event_shape_tensor(self) -> Tensor:
        return integer_vector([], "event_shape")

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        sizes = concat([[n], self.batch_shape_tensor()], 0)
        uniform = random_uniform(sizes, seed=seed, dtype=self.probs.dtype)
        return cast(F.Less(uniform, self.probs), self.dtype)  # type: ignore[no-any-return]

    def _log_prob(self, value: Tensor) -> Tensor:
        if self.validate_args:
            value = with_classes(value, largest=1)
        event, logits = cast(value, self.logits.dtype), self.logits
        shapes = event.shape, logits.shape
        if not (all(each.is_fully_defined() for each in shapes) and shapes[0] == shapes[1]):
            logits, event = ones_like(event) * logits, ones_like(logits) * event
        return F.Neg(sigmoid_cross_entropy_with_logits(labels=event, logits=logits))

    def _entropy(self) -> Tensor:
        return F.Neg(self.logits) * (F.Sigmoid(self.logits) - 1.0) + F.Softplus(F.Neg(self.logits))

    def _mean(self) -> Tensor:
        return identity(self.probs)

    def _variance(self) -> Tensor:
        return self._mean() * (1.0 - self.probs)

    def _mode(self) -> Tensor:
        """1 if probs > 0.5, else 0."""
        return cast(self.probs > 0.5, self.dtype)  # type: ignore[no-any-return]


@RegisterKL(Bernoulli, Bernoulli)
def _(a: Bernoulli, b: Bernoulli, name: str | None = None) -> Tensor:
    """p log(p / q) + (1 - p) log((1 - p) / (1 - q)), of log odds"""
    with get_default_graph().name_scope(name or "kl_bernoulli_bernoulli"):
        ones_part = F.Softplus(F.Neg(b.logits)) - F.Softplus(F.Neg(a.logits))
        zeros_part = F.Softplus(b.logits) - F.Softplus(a.logits)
        return F.Sigmoid(a.logits) * ones_part + F.Sigmoid(F.Neg(a.logits)) * zeros_part
