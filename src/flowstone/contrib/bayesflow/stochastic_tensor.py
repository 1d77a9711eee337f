"""Tensors that are draws of distributions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import flowstone as tf
from flowstone.contrib.bayesflow.stochastic_gradient_estimators import score_function

__all__ = [
    "BaseStochasticTensor",
    "MeanValue",
    "ObservedStochasticTensor",
    "SampleValue",
    "StochasticTensor",
    "get_current_value_type",
    "value_type",
]


STOCHASTIC_TENSOR_COLLECTION = "_stochastic_tensor_collection_"


class BaseStochasticTensor:
    """A tensor that depends on chance: the base of those below. Subclasses define the members."""

    def __init__(self) -> None:
        tf.add_to_collection(STOCHASTIC_TENSOR_COLLECTION, self)

    @property
    def name(self) -> str:
        """The scope of its operations."""
        raise NotImplementedError("name is defined by subclasses")

    @property
    def dtype(self) -> Any:
        """The type of the value."""
        raise NotImplementedError("dtype is defined by subclasses")

    @property
    def graph(self) -> Any:
        """The graph of the value."""
        raise NotImplementedError("graph is defined by subclasses")

    def value(self, name: str | None = None) -> Any:
        """The tensor."""
        raise NotImplementedError("value is defined by subclasses")

    def loss(self, sample_loss: Any) -> Any:
        """What is added to a loss so that its gradient reaches the parameters; None for nothing."""
        raise NotImplementedError("loss is defined by subclasses")


class _StochasticValueType:
    """What the value of a stochastic tensor is."""

    stop_gradient = False

    def declare_inputs(self, unused_stochastic_tensor: Any, unused_inputs_dict: Any) -> None:
        """Called with what a stochastic tensor was made of."""

    def pushed_above(self, unused_value_type: Any) -> None:
        """Called when another type takes its place."""

    def popped_above(self, unused_value_type: Any) -> None:
        """Called when another type gives its place back."""


class MeanValue(_StochasticValueType):
    """The mean of the distribution.

    Args:
        stop_gradient: whether no gradient flows through it.
    """

    def __init__(self, stop_gradient: bool = False) -> None:
        self._stop_gradient = stop_gradient

    @property
    def stop_gradient(self) -> bool:  # type: ignore[override]
        """Whether no gradient flows through it."""
        return self._stop_gradient


class SampleValue(_StochasticValueType):
    """Draws of the distribution.

    Args:
        shape: of the draws, before the batch.
        stop_gradient: whether no gradient flows through them.
    """

    def __init__(self, shape: Any = (), stop_gradient: bool = False) -> None:
        self._shape, self._stop_gradient = shape, stop_gradient

    @property
    def shape(self) -> Any:
        """The shape of the draws."""
        return self._shape

    @property
    def stop_gradient(self) -> bool:  # type: ignore[override]
        """Whether no gradient flows through them."""
        return self._stop_gradient


class NoValueTypeSetError(ValueError):
    """There is no `value_type` around."""


_value_types: list[Any] = []


@contextlib.contextmanager
def value_type(dist_value_type: Any) -> Iterator[None]:
    """Stochastic tensors that are made meanwhile have values of this type, such as ``SampleValue((4,))``."""
    if _value_types:
        _value_types[-1].pushed_above(dist_value_type)
    _value_types.append(dist_value_type)
    try:
        yield
    finally:
        _value_types.pop()
        if _value_types:
            _value_types[-1].popped_above(dist_value_type)


def get_current_value_type() -> Any:
    """The type of the `value_type` around. NoValueTypeSetError, a ValueError, without one."""
    if not _value_types:
        raise NoValueTypeSetError("No value type is set; did you forget `with value_type(...)`?")
    return _value_types[-1]


class StochasticTensor(BaseStochasticTensor):
    """A tensor that is a draw of a distribution, or its mean.

    Args:
        dist: the distribution.
        name: the scope of its operations.
        dist_value_type: what the value is; by default that of `value_type` around, else one draw.
        loss_fn: gives of (self, value, loss) what is added to a loss where gradients do not flow through the
            value; None for nothing.

    TypeError for another thing than a distribution or a type of values.
    """

    def __init__(
        self,
        dist: Any,
        name: str = "StochasticTensor",
        dist_value_type: Any = None,
        loss_fn: Any = score_function,
    ) -> None:
        if not isinstance(dist, tf.distributions.Distribution):
            raise TypeError("dist must be an instance of Distribution")
        if dist_value_type is None:
            dist_value_type = _value_types[-1] if _value_types else SampleValue()
        elif not isinstance(dist_value_type, _StochasticValueType):
            raise TypeError("dist_value_type must be a value type such as SampleValue")
        self._value_type, self._loss_fn, self._dist = dist_value_type, loss_fn, dist
        with tf.name_scope(name) as scope:
            self._name = scope
            self._value_type.declare_inputs(self, dist.parameters)
            self._value = self._create_value()
        super().__init__()

    def _is_stopped(self) -> bool:
        """Whether no gradient flows from the value to the parameters."""
        kind = self._value_type
        is_draw = isinstance(kind, SampleValue)
        fully = tf.distributions.FULLY_REPARAMETERIZED
        return bool(kind.stop_gradient or (is_draw and self._dist.reparameterization_type != fully))

    def _create_value(self) -> Any:
        kind = self._value_type
        if isinstance(kind, MeanValue):
            value = self._dist.mean()
        elif isinstance(kind, SampleValue):
            value = self._dist.sample(kind.shape)
        else:
            raise TypeError(f"Unrecognized Distribution Value Type: {kind}")
        return tf.stop_gradient(value) if self._is_stopped() else value

    @property
    def name(self) -> str:
        """The scope of its operations."""
        return self._name

    @property
    def graph(self) -> Any:
        """The graph of the value."""
        return self._value.graph

    @property
    def dtype(self) -> Any:
        """The type of the value."""
        return self._dist.dtype

    @property
    def distribution(self) -> Any:
        """The distribution."""
        return self._dist

    @property
    def value_type(self) -> Any:
        """What the value is."""
        return self._value_type

    def entropy(self, name: str = "entropy") -> Any:
        """The distribution's entropy."""
        return self._dist.entropy(name=name)

    def mean(self, name: str = "mean") -> Any:
        """The distribution's mean."""
        return self._dist.mean(name=name)

    def value(self, name: str | None = "value") -> Any:
        """The tensor."""
        return self._value

    def loss(self, final_loss: Any, name: str = "Loss") -> Any:
        """What is added to a loss, or to a list of losses; None where gradients flow through the value."""
        if self._loss_fn is None or not self._is_stopped():
            return None
        with tf.name_scope(self.name), tf.name_scope(name):
            return self._loss_fn(self, self._value, tf.convert_to_tensor(final_loss))


class ObservedStochasticTensor(StochasticTensor):
    """A stochastic tensor whose value was observed.

    Args:
        dist: the distribution.
        value: the observation, of the distribution's type, [..., *batch_shape, *event_shape].
        name: the scope of its operations; ``ObservedStochasticTensor`` by default.

    TypeError for another type, ValueError for a shape that is known not to fit.
    """

    def __init__(self, dist: Any, value: Any, name: str | None = None) -> None:
        self._observed = value
        super().__init__(
            dist, name=name or "ObservedStochasticTensor", dist_value_type=SampleValue(), loss_fn=None
        )

    def _create_value(self) -> Any:
        value = tf.identity(tf.convert_to_tensor(self._observed, dtype=self._dist.dtype))
        expected = self._dist.batch_shape.concatenate(self._dist.event_shape)
        found = value.shape
        if None not in (expected.ndims, found.ndims):
            if found.ndims < expected.ndims:
                raise ValueError(
                    f"Rank of observed value ({found.ndims}) must be >= rank of a sample from the "
                    f"distribution ({expected.ndims})."
                )
            last = found[found.ndims - expected.ndims :]
            if not last.is_compatible_with(expected):
                raise ValueError(
                    f"Shape of the observed value {found} is incompatible with draws {expected}."
                )
        return value

    def loss(self, final_loss: Any, name: str | None = None) -> Any:
        """None: an observation adds nothing."""
        return None


def _as_tensor(value: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Any:
    if dtype is not None and not tf.as_dtype(dtype).is_compatible_with(value.dtype):
        raise ValueError(f"A stochastic tensor of {value.dtype} cannot become one of {tf.as_dtype(dtype)}.")
    return value.value()


tf.register_tensor_conversion_function(BaseStochasticTensor, _as_tensor)
