"""Sizes of operators that are given as numbers or tensors: rows, columns and batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.control.checks import assert_non_negative
from flowstone.ops.linear_operators.dense import broadcast_batch


def as_size(value: Any, name: str) -> tuple[Tensor, int | None]:
    """A number of rows, as a tensor and, where it is known, as an int. TypeError, ValueError for others."""
    tensor = convert_to_tensor(value, name=name)
    if not tensor.dtype.is_integer:
        raise TypeError(f"Argument {name} must be integer type.  Found: {tensor.dtype.name}")
    known = static_value(tensor)
    if tensor.dims:
        raise ValueError(f"Argument {name} must be a 0-D Tensor.  Found: {tensor.shape}")
    if known is not None and known < 0:
        raise ValueError(f"Argument {name} must be non-negative.  Found: {known}")
    if tensor.dtype is not dtypes.int32:
        tensor = F.Cast(tensor, DstT=dtypes.int32)
    return tensor, None if known is None else int(known)


class BatchShape:
    """The dimensions before the matrices, given as a list or a vector: `dims` as far as known, `tensor`."""

    def __init__(self, value: Any, name: str = "batch_shape") -> None:
        self._tensor: Tensor | None = None
        self.dims: Dims = ()
        if value is None:
            return
        self._tensor = convert_to_tensor(value, dtypes.int32, name=name)
        if self.tensor.dims is not None and len(self.tensor.dims) != 1:
            raise ValueError(f"Argument {name} must be a 1-D Tensor.  Found: {self.tensor.shape}")
        known = static_value(self.tensor)
        rank = None if self.tensor.dims is None else self.tensor.dims[0]
        self.dims = None if rank is None else (None,) * rank
        if isinstance(known, np.ndarray):
            if (known < 0).any():
                raise ValueError(f"Argument {name} must be non-negative.  Found: {known}")
            self.dims = tuple(int(n) for n in known)

    @property
    def tensor(self) -> Tensor:
        """The dimensions as a vector; made for who asks if none were given."""
        return convert_to_tensor([], dtypes.int32) if self._tensor is None else self._tensor

    def spread(self, x: Tensor) -> Tensor:
        """x [..., m, n] broadcast to these dimensions."""
        return x if self.dims == () else broadcast_batch(x, self.dims, self.tensor)


def checked_size(size: Tensor) -> Tensor:
    """The size, once the step has found that it is not negative."""
    check = assert_non_negative(size, message="num_rows must be non-negative")
    with size.graph.control_dependencies([check]):
        return F.Identity(size)
