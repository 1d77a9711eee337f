"""The categorical distribution."""

from __future__ import annotations

from typing import Any

from flowstone.distributions.distribution import Distribution
from flowstone.distributions.kullback_leibler import RegisterKL
from flowstone.distributions.parameters import logits_and_probs, with_classes
from flowstone.distributions.reparameterization import NOT_REPARAMETERIZED
from flowstone.distributions.sample_shapes import integer_vector
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays.constants import ones, ones_like, zeros_like
from flowstone.ops.arrays.identities import identity
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.masks import sequence_mask
from flowstone.ops.arrays.rearranging import transpose
from flowstone.ops.arrays.shapes import expand_dims, rank, reshape, shape
from flowstone.ops.networks.softmax import log_softmax
from flowstone.ops.networks.sparse_cross_entropies import sparse_softmax_cross_entropy_with_logits
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.reductions import reduce_sum
from flowstone.ops.randomness.random_choice import multinomial

__all__ = ["Categorical"]


class Categorical(Distribution):
    """One of the classes 0 .. k-1.

    Args:
        logits: unnormalised log probabilities [*batch_shape, k], floating.
        probs: the probabilities, in place of `logits`.
        dtype: of samples.
        validate_args, allow_nan_stats, name: see `Distribution`.

    ValueError unless exactly one of `logits` and `probs` is given, and for scalars; TypeError unless it is
    floating.
    """

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Categorical",
    ) -> None:
        parameters = dict(locals())
        with get_default_graph().name_scope(name) as scope:
            self._logits, self._probs = logits_and_probs(logits, probs, True, validate_args)
            self._measure()
        super().__init__(
            dtype=dtypes.as_dtype(dtype),
            reparameterization_type=NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._logits, self._probs],
            name=scope,
        )

    def _measure(self) -> None:
        """Sets the ranks and sizes: constants where they are known."""
        graph, static = get_default_graph(), self._logits.shape.with_rank_at_least(1)
        if static.ndims is not None:
            self._batch_rank = convert_to_tensor(static.ndims - 1, dtypes.int32, name="batch_rank")
        else:
            with graph.name_scope("batch_rank"):
                self._batch_rank = rank(self._logits) - 1
        sizes = shape(self._logits, name="logits_shape")
        if static.ndims is not None and static[-1].value is not None:
            self._event_size = convert_to_tensor(static[-1].value, dtypes.int32, name="event_size")
        else:
            with graph.name_scope("event_size"):
                self._event_size = sizes[self._batch_rank]
        if static[:-1].is_fully_defined():
            self._batch_sizes = integer_vector(static[:-1].as_list(), "batch_shape")
        else:
            with graph.name_scope("batch_shape"):
                self._batch_sizes = sizes[:-1]

    @property
    def event_size(self) -> Tensor:
        """The number of classes, an int32 scalar."""
        return self._event_size

    @property
    def logits(self) -> Tensor:
        """The unnormalised log probabilities."""
        return self._logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._probs

    def _batch_shape(self) -> Any:
        return self._logits.shape[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return identity(self._batch_sizes)

    def _event_shape(self) -> Any:
        return TensorShape([])

    def _event_shape_tensor(self) -> Tensor:
        return integer_vector([], "event_shape")

    def _rows(self, parameter: Tensor) -> Tensor:
        return reshape(parameter, [-1, self._event_size])

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        rows = self.logits if self.logits.shape.ndims == 2 else self._rows(self.logits)
        kind = dtypes.int64 if self.dtype.size > 4 else dtypes.int32
        draws = transpose(multinomial(rows, n, seed=seed, output_dtype=kind))
        draws = reshape(draws, concat([[n], self.batch_shape_tensor()], 0))
        return cast(draws, self.dtype)  # type: ignore[no-any-return]

    def _together(self, classes: Tensor, parameter: Tensor) -> tuple[Tensor, Tensor]:
        """Classes, whole numbers now, and a parameter [*shape of the classes, k], broadcast together."""
        if not classes.dtype.is_integer:
            classes = cast(classes, dtypes.int32)
        shapes = classes.shape, parameter.shape[:-1]
        if all(each.is_fully_defined() for each in shapes) and shapes[0] == shapes[1]:
            return classes, parameter
        parameter = parameter * ones_like(expand_dims(classes, -1), dtype=parameter.dtype)
        classes = classes * ones(shape(parameter)[:-1], dtype=classes.dtype)
        return classes, parameter

    def _log_prob(self, value: Tensor) -> Tensor:
        if self.validate_args:
            value = with_classes(value)
        classes, logits = self._together(value, self.logits)
        return F.Neg(sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits))

    def _cdf(self, value: Tensor) -> Tensor:
        """The probability of the classes below `value`, without it."""
        if self.validate_args:
            value = with_classes(value)
        classes, probs = self._together(value, self.probs)
        rows = self._rows(probs)
        below = sequence_mask(reshape(classes, [-1]), self._event_size)
        sums = reduce_sum(F.Select(below, rows, zeros_like(rows)), -1)
        return reshape(sums, shape(classes))

    def _entropy(self) -> Tensor:
        return F.Neg(reduce_sum(log_softmax(self.logits) * self.probs, -1))

    def _mode(self) -> Tensor:
        largest = F.ArgMax(self.logits, self._batch_rank)
        largest = cast(largest, self.dtype)
        largest.set_shape(self.batch_shape)
        return largest  # type: ignore[no-any-return]


@RegisterKL(Categorical, Categorical)
def _(a: Categorical, b: Categorical, name: str | None = None) -> Tensor:
    """Σ p (log p - log q)"""
    with get_default_graph().name_scope(name or "kl_categorical_categorical"):
        difference = log_softmax(a.logits) - log_softmax(b.logits)
        return reduce_sum(F.Softmax(a.logits) * difference, -1)
