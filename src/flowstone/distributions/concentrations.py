"""What distributions over k classes share that have a concentration for each class."""

from __future__ import annotations

from typing import Any

from flowstone.distributions.distribution import Distribution
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.control.checks import assert_less, assert_positive, assert_rank_at_least
from flowstone.ops.control.control_flow import with_dependencies
from flowstone.ops.numbers.reductions import reduce_sum


class ConcentratedDistribution(Distribution):
    """A distribution of vectors [k] by concentrations [*batch_shape, k], which give both its shapes."""

    _concentration: Tensor
    _total_concentration: Tensor

    def _set_concentration(self, concentration: Any, validate_args: bool) -> None:
        concentration = convert_to_tensor(concentration, name="concentration")
        self._concentration = _checked(concentration) if validate_args else concentration
        self._total_concentration = reduce_sum(self._concentration, -1)

    @property
    def concentration(self) -> Tensor:
        """The concentrations [*batch_shape, k]."""
        return self._concentration

    @property
    def total_concentration(self) -> Tensor:
        """Their sums [*batch_shape]."""
        return self._total_concentration

    def _batch_shape(self) -> Any:
        return self.total_concentration.shape

    def _batch_shape_tensor(self) -> Tensor:
        return shape(self.total_concentration)

    def _event_shape(self) -> Any:
        return self.concentration.shape.with_rank_at_least(1)[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return shape(self.concentration)[-1:]


def _checked(concentration: Tensor) -> Tensor:
    """The concentrations [..., k], checked to be positive, and k to be at least 2."""
    checks = [
        assert_positive(concentration, message="Concentration parameter must be positive."),
        assert_rank_at_least(concentration, 1, message="Concentration parameter must have >=1 dimensions."),
        assert_less(
            1, shape(concentration)[-1], message="Concentration parameter must have event_size >= 2."
        ),
    ]
    return with_dependencies(checks, concentration)  # type: ignore[no-any-return]
