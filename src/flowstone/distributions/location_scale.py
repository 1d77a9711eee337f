"""What the normal and the Laplace distribution have in common: loc, scale and shapes."""

from __future__ import annotations

from typing import Any

from flowstone.distributions.distribution import Distribution
from flowstone.distributions.parameters import batch_tensor, checked_identities, static_batch
from flowstone.distributions.reparameterization import FULLY_REPARAMETERIZED
from flowstone.distributions.sample_shapes import integer_vector
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.control.checks import assert_positive
from flowstone.ops.control.type_checks import assert_same_float_dtype


class LocationScale(Distribution):
    """A scalar distribution of (x - loc) / scale that depends on neither parameter."""

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool,
        allow_nan_stats: bool,
        parameters: dict[str, Any],
        name: str,
    ) -> None:
        with get_default_graph().name_scope(name) as scope:
            checks = [assert_positive(scale)] if validate_args else []
            self._loc, self._scale = checked_identities(checks, loc=loc, scale=scale)
            assert_same_float_dtype([self._loc, self._scale])
        static_batch(self._loc, self._scale)
        super().__init__(
            dtype=self._scale.dtype,
            reparameterization_type=FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._loc, self._scale],
            name=scope,
        )

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> dict[str, Tensor]:
        return cls._all_of_shape(sample_shape, "loc", "scale")

    @property
    def loc(self) -> Tensor:
        """The location: the mean."""
        return self._loc

    @property
    def scale(self) -> Tensor:
        """The scale, positive."""
        return self._scale

    def _batch_shape(self) -> Any:
        return static_batch(self._loc, self._scale)

    def _batch_shape_tensor(self) -> Tensor:
        return batch_tensor(self._loc, self._scale)

    def _event_shape(self) -> Any:
        return TensorShape([])

    def _event_shape_tensor(self) -> Tensor:
        return integer_vector([], "event_shape")

    def _mode(self) -> Tensor:
        return self._mean()
