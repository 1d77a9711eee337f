"""`Input`, a placeholder for batches, and the layer that it belongs to."""

from __future__ import annotations

from typing import Any

from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.layers.base import Layer
from flowstone.layers.calls import Node
from flowstone.ops.arrays.constants import placeholder
from flowstone.ops.sparse.sparse_placeholders import sparse_placeholder

__all__ = ["Input", "InputLayer"]


class InputLayer(Layer):
    """A layer whose output is fed: a placeholder for batches, or a given tensor.

    Args:
        input_shape: of one element of the batch, None for unknown sizes.
        batch_size: None for any.
        dtype: the element type.
        input_tensor: the output, instead of a placeholder.
        sparse: whether the placeholder is a SparseTensor.

    ValueError where neither a shape nor a tensor is given, or both.
    """

    def __init__(
        self,
        input_shape: Any = None,
        batch_size: int | None = None,
        dtype: Any = dtypes.float32,
        input_tensor: Any = None,
        sparse: bool = False,
        name: str | None = None,
    ) -> None:
        self._kind_name = "input"
        super().__init__(name=name, dtype=dtype if input_tensor is None else input_tensor.dtype)
        self.built, self.sparse, self.batch_size = True, sparse, batch_size
        self.is_placeholder = input_tensor is None
        if input_tensor is None:
            if input_shape is None:
                raise ValueError("Please provide to Input either a `shape` or a `tensor` argument.")
            make = sparse_placeholder if sparse else placeholder
            sizes = [batch_size, *TensorShape(input_shape).as_list()]
            input_tensor = make(dtypes.as_dtype(dtype), sizes, name=self.name)
        self._calls.append(Node(self, input_tensor, input_tensor))


def Input(
    shape: Any = None,
    batch_size: int | None = None,
    name: str | None = None,
    dtype: Any = dtypes.float32,
    sparse: bool = False,
    tensor: Any = None,
) -> Any:
    """A placeholder for batches of elements of `shape`, or `tensor` as it is, known as a layer's output.

    ValueError where neither is given.
    """
    return InputLayer(shape, batch_size, dtype, tensor, sparse, name).output
