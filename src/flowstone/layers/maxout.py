"""The maxout layer: the largest of groups of features (Goodfellow et al., 2013)."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.shape import TensorShape, as_shape
from flowstone.layers.base import Layer
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.numbers.reductions import reduce_max

__all__ = ["MaxOut", "maxout"]


class MaxOut(Layer):
    """The largest element of each of `num_units` groups of neighbouring features along dimension `axis`.

    ValueError where the number of features is not known, or no multiple of `num_units`.
    """

    def __init__(self, num_units: int, axis: int = -1, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, trainable=False, **kwargs)
        self.num_units, self.axis = num_units, axis

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Tensor:
        x = convert_to_tensor(inputs)
        dims = list(x.dims or ())
        axis = self.axis % len(dims)
        features = dims[axis]
        if features is None or features % self.num_units:
            raise ValueError(
                f"number of features({features}) is not a multiple of num_units({self.num_units})"
            )
        found = shape_of(x)
        sizes: list[Any] = [found[i] if size is None else size for i, size in enumerate(dims)]
        sizes[axis : axis + 1] = [self.num_units, features // self.num_units]
        y = reduce_max(F.Reshape(x, convert_to_tensor(sizes)), axis + 1)
        y.set_shape(self.compute_output_shape(x.shape))
        return y

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The static shape of the output for inputs of `input_shape`."""
        sizes = as_shape(input_shape).as_list()
        sizes[self.axis] = self.num_units
        return TensorShape(sizes)


def maxout(inputs: Any, num_units: int, axis: int = -1, name: str | None = None) -> Tensor:
    """The largest element of each of `num_units` groups of features; a `MaxOut` layer's only call."""
    result: Tensor = MaxOut(num_units, axis, name)(inputs)
    return result
