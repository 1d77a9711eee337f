"""The base class of distributions.

A distribution has parameters, tensors whose broadcast shape is the *batch*: one distribution a member. A draw
from one has the *event* shape. A sample is [*sample_shape, *batch_shape, *event_shape], and a probability
[*sample_shape, *batch_shape]. Public methods open the scope ``name/method/`` and call the method of the same
name with an underscore, which a subclass defines. What it does not define is derived where it can be: the
logarithm of what has one, the exponential of a logarithm, a deviation from a variance; else it is a
NotImplementedError.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from flowstone.distributions.kullback_leibler import cross_entropy, kl_divergence
from flowstone.distributions.reparameterization import ReparameterizationType
from flowstone.distributions.sample_shapes import as_vector, integer_vector, is_scalar, static_sample_shape
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape, as_shape
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import reshape, shape

__all__ = ["Distribution"]

_Kind = TypeVar("_Kind", bound="Distribution")


class Distribution:
    """A batch of probability distributions.

    Args:
        dtype: of samples.
        reparameterization_type: FULLY_REPARAMETERIZED or NOT_REPARAMETERIZED.
        validate_args: whether steps check parameters and values, with InvalidArgumentError.
        allow_nan_stats: whether a statistic that is not defined is NaN; else it is InvalidArgumentError.
        parameters: the arguments of the subclass's ``__init__``; ``dict(locals())`` there.
        graph_parents: tensors that the distribution was made of. ValueError for another thing.
        name: the scope of its operations, the class's name by default.
    """

    def __init__(
        self,
        dtype: Any,
        reparameterization_type: ReparameterizationType,
        validate_args: bool,
        allow_nan_stats: bool,
        parameters: dict[str, Any] | None = None,
        graph_parents: list[Any] | None = None,
        name: str | None = None,
    ) -> None:
        for index, parent in enumerate(graph_parents or ()):
            if not isinstance(parent, Tensor):
                raise ValueError(f"Graph parent item {index} is not a Tensor; {parent}.")
        if not name or not name.endswith("/"):
            with get_default_graph().name_scope(name or type(self).__name__) as scope:
                name = scope
        self._name = name
        self._dtype = dtype
        self._reparameterization_type = reparameterization_type
        self._allow_nan_stats, self._validate_args = allow_nan_stats, validate_args
        self._initial_parameters = {
            key: value
            for key, value in (parameters or {}).items()
            if key != "self" and not key.startswith("__")
        }
        self._graph_parents = list(graph_parents or ())

    def __repr__(self) -> str:
        return (
            f"<tfp.distributions.{type(self).__name__} '{self.name}' batch_shape={self.batch_shape} "
            f"event_shape={self.event_shape} dtype={dtypes.as_dtype(self.dtype).name}>"
        )

    def __str__(self) -> str:
        shapes = {"batch_shape": self.batch_shape, "event_shape": self.event_shape}
        known = "".join(f" {key}={value}," for key, value in shapes.items() if value.ndims is not None)
        name = dtypes.as_dtype(self.dtype).name
        return f'tfp.distributions.{type(self).__name__}("{self.name}",{known} dtype={name})'

    @contextlib.contextmanager
    def _scope(self, name: str) -> Iterator[str]:
        graph = self._graph_parents[0].graph if self._graph_parents else get_default_graph()
        with graph.name_scope(self.name), graph.name_scope(name) as scope:
            yield scope

    def _lacks(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"{what} is not implemented: {type(self).__name__}")

    # ---- what it was made of

    @property
    def name(self) -> str:
        """The scope of its operations, with the final slash."""
        return self._name

    @property
    def dtype(self) -> Any:
        """The type of samples."""
        return self._dtype

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments it was made with."""
        return dict(self._initial_parameters)

    @property
    def reparameterization_type(self) -> ReparameterizationType:
        """Whether gradients flow from samples to parameters."""
        return self._reparameterization_type

    @property
    def allow_nan_stats(self) -> bool:
        """Whether a statistic that is not defined is NaN, rather than an error."""
        return self._allow_nan_stats

    @property
    def validate_args(self) -> bool:
        """Whether steps check parameters and values."""
        return self._validate_args

    def copy(self: _Kind, **override_parameters_kwargs: Any) -> _Kind:
        """A distribution of the same class and arguments but for those given. TypeError for unknown ones."""
        return type(self)(**{**self._initial_parameters, **override_parameters_kwargs})

    @classmethod
    def param_shapes(cls, sample_shape: Any, name: str = "DistributionParamShapes") -> dict[str, Tensor]:
        """For each parameter the shape, int32, with which a draw has the shape `sample_shape`."""
        with get_default_graph().name_scope(name):
            return cls._param_shapes(sample_shape)

    @classmethod
    def param_static_shapes(cls, sample_shape: Any) -> dict[str, TensorShape]:
        """As `param_shapes`, as TensorShapes. ValueError if `sample_shape` is not known."""
        if isinstance(sample_shape, TensorShape):
            if not sample_shape.is_fully_defined():
                raise ValueError("TensorShape sample_shape must be fully defined")
            sample_shape = sample_shape.as_list()
        shapes: dict[str, TensorShape] = {}
        for name, value in cls.param_shapes(sample_shape).items():
            known = static_value(value)
            if known is None:
                raise ValueError("sample_shape must be a fully-defined TensorShape or list/tuple")
            shapes[name] = TensorShape([int(size) for size in known])
        return shapes

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> dict[str, Tensor]:
        raise NotImplementedError("_param_shapes not implemented")

    @classmethod
    def _all_of_shape(cls, sample_shape: Any, *names: str) -> dict[str, Tensor]:
        same = (
            sample_shape
            if isinstance(sample_shape, Tensor)
            else convert_to_tensor(integer_vector(sample_shape, "Const"))
        )
        return dict.fromkeys(names, same)

    # ---- shapes

    @property
    def batch_shape(self) -> TensorShape:
        """What is known of the shape of the batch."""
        return as_shape(self._batch_shape())

    @property
    def event_shape(self) -> TensorShape:
        """What is known of the shape of one draw from one member."""
        return as_shape(self._event_shape())

    def _batch_shape(self) -> Any:
        return TensorShape(None)

    def _event_shape(self) -> Any:
        return TensorShape(None)

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The shape of the batch, an int32 vector."""
        with self._scope(name):
            known = self.batch_shape
            if known.is_fully_defined():
                return integer_vector(known.as_list(), "batch_shape")
            return self._batch_shape_tensor()

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Tensor:
        """The shape of one draw from one member, an int32 vector."""
        with self._scope(name):
            known = self.event_shape
            if known.is_fully_defined():
                return integer_vector(known.as_list(), "event_shape")
            return self._event_shape_tensor()

    def _batch_shape_tensor(self) -> Tensor:
        raise self._lacks("batch_shape_tensor")

    def _event_shape_tensor(self) -> Tensor:
        raise self._lacks("event_shape_tensor")

    def is_scalar_batch(self, name: str = "is_scalar_batch") -> Tensor:
        """Whether the batch has no dimensions, a bool scalar."""
        with self._scope(name):
            return is_scalar(self.batch_shape, self.batch_shape_tensor, "is_scalar_batch")

    def is_scalar_event(self, name: str = "is_scalar_event") -> Tensor:
        """Whether a draw has no dimensions, a bool scalar."""
        with self._scope(name):
            return is_scalar(self.event_shape, self.event_shape_tensor, "is_scalar_event")

    # ---- samples

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str = "sample") -> Tensor:
        """Independent draws [*sample_shape, *batch_shape, *event_shape]; `sample_shape` is a vector or a
        number.
        """
        return self._call_sample_n(sample_shape, seed, name)

    def _call_sample_n(self, sample_shape: Any, seed: int | None, name: str, **kwargs: Any) -> Tensor:
        with self._scope(name):
            given = integer_vector(sample_shape, "sample_shape") if sample_shape == () else sample_shape
            given = convert_to_tensor(given, dtypes.int32, name="sample_shape")
            vector, count = as_vector(given)
            draws: Tensor = self._sample_n(count, seed, **kwargs)
            rest = shape(draws)[1:]
            draws = reshape(draws, concat([vector, rest], 0))
            draws.set_shape(static_sample_shape(vector, self.batch_shape, self.event_shape))
            return draws

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        raise self._lacks("sample_n")

    # ---- probabilities

    def _of_value(self, value: Any, name: str, *ways: Callable[[Tensor], Tensor]) -> Tensor:
        """The first of the ways that is defined. The first one's error if none is."""
        with self._scope(name):
            value = convert_to_tensor(value, name="value", preferred_dtype=self.dtype)
            missing: NotImplementedError | None = None
            for way in ways:
                try:
                    return way(value)
                except NotImplementedError as error:
                    missing = missing or error
            raise missing or self._lacks(name)

    def log_prob(self, value: Any, name: str = "log_prob") -> Tensor:
        """The logarithm of the density, or of the probability of a discrete value."""
        return self._of_value(value, name, self._log_prob, lambda x: F.Log(self._prob(x)))

    def prob(self, value: Any, name: str = "prob") -> Tensor:
        """The density, or the probability of a discrete value."""
        return self._of_value(value, name, self._prob, lambda x: F.Exp(self._log_prob(x)))

    def log_cdf(self, value: Any, name: str = "log_cdf") -> Tensor:
        """The logarithm of the probability of draws up to `value`."""
        return self._of_value(value, name, self._log_cdf, lambda x: F.Log(self._cdf(x)))

    def cdf(self, value: Any, name: str = "cdf") -> Tensor:
        """The probability of draws up to `value`."""
        return self._of_value(value, name, self._cdf, lambda x: F.Exp(self._log_cdf(x)))

    def log_survival_function(self, value: Any, name: str = "log_survival_function") -> Tensor:
        """The logarithm of the probability of draws above `value`."""
        return self._of_value(value, name, self._log_survival_function, lambda x: F.Log1p(F.Neg(self.cdf(x))))

    def survival_function(self, value: Any, name: str = "survival_function") -> Tensor:
        """The probability of draws above `value`."""
        return self._of_value(value, name, self._survival_function, lambda x: 1.0 - self.cdf(x))

    def quantile(self, value: Any, name: str = "quantile") -> Tensor:
        """The x such that `value` is the probability of draws up to x."""
        return self._of_value(value, name, self._quantile)

    def _log_prob(self, value: Tensor) -> Tensor:
        raise self._lacks("log_prob")

    def _prob(self, value: Tensor) -> Tensor:
        raise self._lacks("prob")

    def _log_cdf(self, value: Tensor) -> Tensor:
        raise self._lacks("log_cdf")

    def _cdf(self, value: Tensor) -> Tensor:
        raise self._lacks("cdf")

    def _log_survival_function(self, value: Tensor) -> Tensor:
        raise self._lacks("log_survival_function")

    def _survival_function(self, value: Tensor) -> Tensor:
        raise self._lacks("survival_function")

    def _quantile(self, value: Tensor) -> Tensor:
        raise self._lacks("quantile")

    # ---- statistics

    def entropy(self, name: str = "entropy") -> Tensor:
        """The expectation of -log_prob, in nats."""
        with self._scope(name):
            return self._entropy()

    def mean(self, name: str = "mean") -> Tensor:
        """The expectation."""
        with self._scope(name):
            return self._mean()

    def mode(self, name: str = "mode") -> Tensor:
        """The most probable value."""
        with self._scope(name):
            return self._mode()

    def variance(self, name: str = "variance") -> Tensor:
        """The expectation of the squared distance to the mean, element by element of a draw."""
        with self._scope(name):
            try:
                return self._variance()
            except NotImplementedError as missing:
                try:
                    return F.Square(self._stddev())
                except NotImplementedError:
                    raise missing from None

    def stddev(self, name: str = "stddev") -> Tensor:
        """The square root of the variance."""
        with self._scope(name):
            try:
                return self._stddev()
            except NotImplementedError as missing:
                try:
                    return F.Sqrt(self._variance())
                except NotImplementedError:
                    raise missing from None

    def covariance(self, name: str = "covariance") -> Tensor:
        """The covariances [*batch_shape, k, k] of the elements of a draw [k]."""
        with self._scope(name):
            return self._covariance()

    def _entropy(self) -> Tensor:
        raise self._lacks("entropy")

    def _mean(self) -> Tensor:
        raise self._lacks("mean")

    def _mode(self) -> Tensor:
        raise self._lacks("mode")

    def _variance(self) -> Tensor:
        raise self._lacks("variance")

    def _stddev(self) -> Tensor:
        raise self._lacks("stddev")

    def _covariance(self) -> Tensor:
        raise self._lacks("covariance")

    # ---- two distributions

    def cross_entropy(self, other: Distribution, name: str = "cross_entropy") -> Tensor:
        """The expectation under this distribution of the other's -log_prob."""
        with self._scope(name):
            return cross_entropy(self, other, allow_nan_stats=self.allow_nan_stats)

    def kl_divergence(self, other: Distribution, name: str = "kl_divergence") -> Tensor:
        """The divergence KL(self || other); see `tf.distributions.kl_divergence`."""
        with self._scope(name):
            return kl_divergence(self, other, allow_nan_stats=self.allow_nan_stats)
